"""Methods for problems that go on."""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reticent.errors import InputError
from reticent.policy.ongoing import CheapestStep
from reticent.problem.monitoring import Monitoring
from reticent.process.ongoing import OngoingProcess
from reticent.solution.methods import ActorCritic, Run, changed
from reticent.solution.ongoing import OngoingSolution
from reticent.solve.actor_critic import A2C, LONG_RUN
from reticent.solve.long_run import long_run
from reticent.solve.training import ActorCriticTraining, Progress


class OngoingMethod(abc.ABC):
    """How a monitoring task is solved."""

    @abc.abstractmethod
    def having(self, options: Mapping[str, Any]) -> "OngoingMethod":
        """The method with some of its numbers changed; an `InputError` for what it does not have."""

    @abc.abstractmethod
    def solve(self, task: Monitoring, run: Run) -> OngoingSolution:
        """The task solved."""


@dataclass(frozen=True)
class LongRun(OngoingMethod):
    """An agent that learns from simulated days, on the discounted cost."""

    agent: ActorCritic

    def having(self, options: Mapping[str, Any]) -> "LongRun":
        return replace(self, agent=self.agent.having(options))

    def solve(self, task: Monitoring, run: Run) -> OngoingSolution:
        recipe = self.agent.recipe
        if not 0 < recipe.discount < 1:
            raise InputError(
                f"The discount is {recipe.discount:g}, but a problem that goes on has no end to sum costs up "
                "to. Choose one between 0 and 1, such as 0.98."
            )
        process = OngoingProcess(task)
        training = ActorCriticTraining(process, recipe, self.agent.steps, run.seed)
        policy, made = run.trained(self.agent.name, training, task)
        return OngoingSolution(task, process, policy, made)


@dataclass(frozen=True)
class StepByStep(OngoingMethod):
    """One-step lookahead, which needs no training."""

    def having(self, options: Mapping[str, Any]) -> "StepByStep":
        if options:
            raise InputError(f"This method has no options, so none is called {sorted(options)[0]!r}.")
        return self

    def solve(self, task: Monitoring, run: Run) -> OngoingSolution:
        process = OngoingProcess(task)
        return OngoingSolution(task, process, CheapestStep(process), {"method": "lookahead"})


@dataclass(frozen=True)
class Weighing(OngoingMethod):
    """Lookahead on the value for the long run, whose two weights are found over some simulated days."""

    days: int = 32

    def having(self, options: Mapping[str, Any]) -> "Weighing":
        return changed(self, options)

    def solve(self, task: Monitoring, run: Run) -> OngoingSolution:
        tell = lambda done, total, how: run.report(Progress(done, total, "rounds", how))  # noqa: E731
        found = long_run(task, self.days, run.seed, tell)
        made = {"method": "long-run", "days": self.days, "seed": run.seed}
        return OngoingSolution(found.task, found.process, found.policy, made)


ONGOING_METHODS: dict[str, OngoingMethod] = {
    "ppo": LongRun(ActorCritic("ppo", LONG_RUN)),
    "a2c": LongRun(ActorCritic("a2c", A2C)),
    "long-run": Weighing(),
    "lookahead": StepByStep(),
}
