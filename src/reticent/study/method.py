"""Methods of a study: how the policy of a cell is made, and what there is to evaluate."""

import abc
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, ClassVar

import jax.numpy as jnp

from reticent.errors import InputError
from reticent.evaluate.evaluation import summarise
from reticent.evaluate.ledgers import averaged
from reticent.policy.actor import Actor
from reticent.policy.answer import private_task
from reticent.policy.heuristics import BASELINES, OneStepLookahead
from reticent.policy.lookahead import Lookahead
from reticent.policy.policy import NoProtection, Policy
from reticent.problem.bound import Bound, Unbounded
from reticent.problem.enforcement import ENFORCEMENTS, Enforcement, KernelChoice, Mask, Penalty
from reticent.problem.mechanisms import MECHANISMS, Mechanism
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate
from reticent.solve.actor_critic import A2C, PPO, Progress, Recipe, train
from reticent.solve.answer import answer
from reticent.solve.baselines import tuned_baseline
from reticent.solve.certificate import dual_bound, relaxed_task
from reticent.solve.refine import DEFAULT, refined_policy
from reticent.solve.value_iteration import Settings, value_iteration
from reticent.study.choices import USUAL_CHOICES, Choices

# From episodes and seed to numbers, each an estimate, or a list of one per class.
Evaluate = Callable[[int, int], dict[str, Any]]
Report = Callable[[int, Progress], None]
# Far beyond where the agents stop; it cuts baselines whose threshold the belief can no longer reach.
LONGEST_EPISODE = 50
# The no-PUT policy of the paper releases this many readings of random sensors, whatever they reveal.
READINGS_WITHOUT_PROTECTION = 10
# The averaged ledger needs the information of every sensor at each step, which takes several times as long.
LEDGER_EPISODES = 8_192
# Tuning draws from seeds of its own, far from those of training.
TUNING_SEED = 10_000
# Variants of a comparator are chosen by these episodes.
CHOOSING_SEED, COMPARED_EPISODES = 15_000, 8_192


class Method(abc.ABC):
    """How the policy of a cell is made. Final classes are frozen dataclasses with a `name`, that of spec files.

    `horizon`: after so many releases an episode is cut. `answers`: it can make answers in place of readings. `learns`:
    it can learn a price of information. `recorded`: it is also for recordings; `coded`: there it sends codes of the
    finite model, whatever the enforcement.
    """

    name: str
    horizon: ClassVar[int] = LONGEST_EPISODE
    answers: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    recorded: ClassVar[bool] = False
    coded: ClassVar[bool] = False

    @property
    def recipe_text(self) -> str | None:
        """How an agent is trained, in full; nothing for what is no agent."""
        return None

    def effort(self, steps: int, rounds: int) -> int:
        """What a training runs: environment steps, rounds, or nothing."""
        del steps, rounds
        return 0

    def unsuited(self, bound: Bound, enforcement: Enforcement) -> str | None:
        """Why a bound is not kept in this way by this method, if it is not."""
        del bound
        if not (enforcement.releases or self.answers):
            return f"Answers need the method value-iteration, not {self.name}."
        if enforcement.priced and not self.learns:
            return f"A multiplier is learned, which {self.name} does not do."
        return None

    def prepare(self, task: Task, seed: int, effort: int) -> Evaluate:
        """Make the policy for a finite model; then evaluating it."""
        process, policy = self.policy(Process.of(task), seed, effort)

        def evaluate(episodes: int, of: int) -> dict[str, Any]:
            found = summarise(simulate(process, policy.act, episodes, of), of).to_json()
            return {**found, **self.beside(process, policy, episodes, of)}

        return evaluate

    def beside(self, process: Process, policy: Any, episodes: int, seed: int) -> dict[str, Any]:
        """Estimates that are made beside the evaluation, by the names of their columns."""
        del process, policy, episodes, seed
        return {}

    @abc.abstractmethod
    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Policy]:
        """The policy, and the process that it acts in."""

    def mechanism(self, task: Task, seed: int) -> Mechanism | None:
        """What stands between a reading and what is sent, beside the enforcement; usually nothing."""
        del task, seed
        return None

    def steps_on_recordings(self, steps: int) -> int:
        """The environment steps that a training on recordings runs."""
        del steps
        return 0

    def on_recordings(self, process: Process, seed: int, steps: int, report: Report) -> Policy:
        """The policy for recordings, where `recorded`: of readings as they are, or of codes with a finite model."""
        del process, seed, steps, report
        raise InputError("This method makes no policy for recordings: take one that a recordings' study names.")


@dataclass(frozen=True)
class Agent(Method):
    """An actor-critic agent, by its recipe."""

    recorded: ClassVar[bool] = True
    name: str
    recipe: Recipe

    @property
    def recipe_text(self) -> str:
        return json.dumps(asdict(self.recipe))

    def effort(self, steps: int, rounds: int) -> int:
        del rounds
        return self.recipe.steps_run(steps)

    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Actor]:
        return process, train(process, effort, seed, self.recipe)

    def beside(self, process: Process, policy: Actor, episodes: int, seed: int) -> dict[str, Any]:
        """The ledger of the paper's theorem 3, where information is limited."""
        if not process.bound.on_spending:
            return {}
        return asdict(averaged(process, policy, min(episodes, LEDGER_EPISODES), seed))

    @property
    def recipe_on_recordings(self) -> Recipe:
        """The same with inputs that a learned belief has, too, and fewer environments."""
        inputs = "described" if self.recipe.inputs == "rich" else self.recipe.inputs
        return replace(self.recipe, inputs=inputs, environments=128)

    def steps_on_recordings(self, steps: int) -> int:
        return self.recipe_on_recordings.steps_run(steps)

    def on_recordings(self, process: Process, seed: int, steps: int, report: Report) -> Policy:
        return train(process, steps, seed, self.recipe_on_recordings, report)


@dataclass(frozen=True)
class Iterated(Method):
    """Lookahead on a learned value; under a guarantee with label kernels, or with kernels that carry that value."""

    answers: ClassVar[bool] = True
    name: str
    kernels: KernelChoice

    def effort(self, steps: int, rounds: int) -> int:
        del steps
        return rounds

    def unsuited(self, bound: Bound, enforcement: Enforcement) -> str | None:
        if self.kernels == "value" and not enforcement.replaces:
            replacing = " and ".join(name for name, each in ENFORCEMENTS.items() if each.replaces)
            return f"Value kernels go with {replacing}, not with {enforcement.name}."
        return super().unsuited(bound, enforcement)

    def prepare(self, task: Task, seed: int, effort: int) -> Evaluate:
        if task.enforcement.releases:
            return super().prepare(task, seed, effort)
        return _answering(task, seed, effort)

    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Policy]:
        policy = value_iteration(process, seed, Settings(rounds=effort, kernels=self.kernels))
        return policy.process, policy


@dataclass(frozen=True)
class Baseline(Method):
    """A rule of thumb, with its stopping threshold tuned."""

    learns: ClassVar[bool] = False
    name: str

    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Policy]:
        del effort
        return process, tuned_baseline(self.name, process, TUNING_SEED + seed)


@dataclass(frozen=True)
class OneStep(Method):
    """Lookahead of one step, tuned; but on recordings it stops only where a release costs more than it is worth."""

    learns: ClassVar[bool] = False
    recorded: ClassVar[bool] = True
    name: str = "one-step lookahead"

    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Policy]:
        del effort
        return process, tuned_baseline(self.name, process, TUNING_SEED + seed)

    def on_recordings(self, process: Process, seed: int, steps: int, report: Report) -> Policy:
        del seed, steps, report
        return OneStepLookahead(process, jnp.asarray(1.0))


@dataclass(frozen=True)
class Comparator(Method):
    """A mechanism of others, the same at every step, with lookahead of one step; the variant of least cost is taken."""

    learns: ClassVar[bool] = False
    recorded: ClassVar[bool] = True
    coded: ClassVar[bool] = True
    name: str

    def unsuited(self, bound: Bound, enforcement: Enforcement) -> str | None:
        if enforcement.replaces:
            return f"{self.name!r} replaces every reading already, so it does not go with {enforcement.name}."
        return super().unsuited(bound, enforcement)

    def mechanism(self, task: Task, seed: int) -> Mechanism:
        tried = MECHANISMS[self.name](task.model)
        return min(tried, key=lambda each: self._cost(replace(task, model=each.model(task.model)), seed))

    def _cost(self, task: Task, seed: int) -> float:
        process, policy = self.policy(Process.of(task), seed, 0)
        # Other episodes than the threshold was tuned on.
        return float(simulate(process, policy.act, COMPARED_EPISODES, CHOOSING_SEED + seed).cost.mean())

    def prepare(self, task: Task, seed: int, effort: int) -> Evaluate:
        mechanism = self.mechanism(task, seed)
        evaluate = super().prepare(replace(task, model=mechanism.model(task.model)), seed, effort)
        return lambda episodes, of: {**evaluate(episodes, of), "variant": mechanism.variant}

    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Policy]:
        del effort
        return process, tuned_baseline(OneStep.name, process, TUNING_SEED + seed)

    def on_recordings(self, process: Process, seed: int, steps: int, report: Report) -> Policy:
        return OneStep().on_recordings(process, seed, steps, report)


@dataclass(frozen=True)
class Unprotected(Method):
    """Readings of random sensors, whatever they reveal: the paper's no-PUT case."""

    horizon: ClassVar[int] = READINGS_WITHOUT_PROTECTION
    learns: ClassVar[bool] = False
    recorded: ClassVar[bool] = True
    name: str = "no protection"

    def unsuited(self, bound: Bound, enforcement: Enforcement) -> str | None:
        if bound != Unbounded():
            return f"Without protection no bound is kept: {self.name!r} goes with unbounded = true."
        return super().unsuited(bound, enforcement)

    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Policy]:
        del seed, effort
        return process, NoProtection()

    def on_recordings(self, process: Process, seed: int, steps: int, report: Report) -> Policy:
        del process, seed, steps, report
        return NoProtection()


@dataclass(frozen=True)
class LowerBound(Method):
    """Not a policy, but the cost that none can go below, by a clairvoyant who plans on a refined value; beside it what
    the paper's theorem 2 gives with the same value. Where information is limited on every path, both are of the problem
    in which it is limited on average."""

    name: str = "lower bound"

    def effort(self, steps: int, rounds: int) -> int:
        del steps
        return rounds

    def unsuited(self, bound: Bound, enforcement: Enforcement) -> str | None:
        easier = enforcement.relaxation(bound)
        # An easier problem must still limit the same.
        if enforcement.priced or easier is None or (bound != Unbounded() and easier[0] == Unbounded()):
            kept = f"{Penalty.name}, or under {Mask.name} on information"
            return f"A lower bound is computed under {kept}, not under {enforcement.name}."
        return super().unsuited(bound, enforcement)

    def prepare(self, task: Task, seed: int, effort: int) -> Evaluate:
        process, policy = self.policy(Process.of(relaxed_task(task)[0]), seed, effort)

        def evaluate(episodes: int, of: int) -> dict[str, Any]:
            lower, _, theorem = dual_bound(process, policy.value, episodes, of)
            return {"cost": asdict(lower), "theorem_2": {"value": theorem, "low": None, "high": None}}

        return evaluate

    def policy(self, process: Process, seed: int, effort: int) -> tuple[Process, Lookahead]:
        settings = replace(DEFAULT, rounds=effort, iteration=replace(DEFAULT.iteration, rounds=effort))
        policy = refined_policy(process, seed, settings)
        return policy.process, policy


def _answering(task: Task, seed: int, rounds: int) -> Evaluate:
    """The task's rule for answers, over a private policy by value iteration."""
    # The device reads in private, whatever the bound: one policy serves them all.
    private = _private_policy(json.dumps(private_task(task).to_json()), seed, rounds)
    rule = answer(task, private, seed)
    return lambda episodes, of: summarise(rule.simulate(episodes, of), of).to_json()


@cache
def _private_policy(task: str, seed: int, rounds: int) -> Lookahead:
    """The policy of a task without bound, once per process; `task` is its JSON."""
    return value_iteration(Process.of(Task.from_json(json.loads(task))), seed, Settings(rounds=rounds))


def paper_agent(choices: Choices) -> Agent:
    """The paper's agent, with what the paper does not say of it."""
    rates = {"actor_rate": choices.actor_rate, "critic_rate": choices.critic_rate}
    return Agent("a2c", replace(A2C, discount=choices.discount, entropy=choices.entropy, **rates))


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Agent("ppo", PPO),
        paper_agent(USUAL_CHOICES),
        Iterated("value-iteration", "label"),
        Iterated("value-kernels", "value"),
        *(OneStep() if name == OneStep.name else Baseline(name) for name in BASELINES),
        *(Comparator(name) for name in MECHANISMS),
        Unprotected(),
        LowerBound(),
    )
}
