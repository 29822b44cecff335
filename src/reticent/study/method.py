"""Methods of a study: how the policy of a cell is made, and what there is to evaluate."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

from reticent.errors import InputError
from reticent.evaluate.evaluation import summarise
from reticent.policy.policy import Policy
from reticent.problem.bound import Bound
from reticent.problem.enforcement import Enforcement
from reticent.problem.mechanisms import Mechanism
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate
from reticent.solve.actor_critic import Progress

# From episodes and seed to numbers, each an estimate, or a list of one per class.
Evaluate = Callable[[int, int], dict[str, Any]]
Report = Callable[[int, Progress], None]
# Far beyond where the agents stop; it cuts baselines whose threshold the belief can no longer reach.
LONGEST_EPISODE = 50
# Tuning draws from seeds of its own, far from those of training.
TUNING_SEED = 10_000


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
