"""Methods that learn: agents, lookahead on an iterated value, and the lower bound by a refined one."""

import json
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, ClassVar

from reticent.evaluate.evaluation import summarise
from reticent.evaluate.ledgers import averaged
from reticent.policy.actor import Actor
from reticent.policy.answer import private_task
from reticent.policy.lookahead import Lookahead
from reticent.policy.policy import Policy
from reticent.problem.bound import Bound, Unbounded
from reticent.problem.enforcement import ENFORCEMENTS, Enforcement, KernelChoice, Mask, Penalty
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.actor_critic import A2C, Recipe, train
from reticent.solve.answer import answer
from reticent.solve.certificate import dual_bound, relaxed_task
from reticent.solve.refine import DEFAULT, refined_policy
from reticent.solve.value_iteration import Settings, value_iteration
from reticent.study.choices import Choices
from reticent.study.method import Evaluate, Method, Report

# The averaged ledger needs the information of every sensor at each step, which takes several times as long.
LEDGER_EPISODES = 8_192


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


def paper_agent(choices: Choices) -> Agent:
    """The paper's agent, with what the paper does not say of it."""
    rates = {"actor_rate": choices.actor_rate, "critic_rate": choices.critic_rate}
    return Agent("a2c", replace(A2C, discount=choices.discount, entropy=choices.entropy, **rates))


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
