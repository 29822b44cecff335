"""Training in pieces, so that it can show progress, be saved while it runs, and be resumed."""

import abc
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from reticent.policy.actor import Actor
from reticent.policy.lookahead import Lookahead
from reticent.policy.policy import Policy
from reticent.process.process import Process
from reticent.process.rollout import AnyProcess
from reticent.solve import actor_critic, value_iteration
from reticent.solve.actor_critic import Recipe
from reticent.solve.checkpoint import load_checkpoint, save_checkpoint
from reticent.solve.value_iteration import Settings

# A killed training loses at most this much.
SECONDS_BETWEEN_SAVES = 5.0


@dataclass(frozen=True)
class Progress:
    """How far a training is: `done` of `total` steps or rounds, and how it goes, in words."""

    done: int
    total: int
    unit: Literal["steps", "rounds"]
    how: str


Report = Callable[[Progress], None]


class Training(abc.ABC):
    """A way to make a policy for a process. `state` is all that it carries on from piece to piece."""

    unit: ClassVar[Literal["steps", "rounds"]]
    seed: int

    @property
    @abc.abstractmethod
    def settings(self) -> dict[str, Any]:
        """The numbers that the policy depends on, beside the process."""

    @property
    @abc.abstractmethod
    def total(self) -> int:
        """How many steps or rounds it takes, at most."""

    @abc.abstractmethod
    def fresh(self) -> Any:
        """The state at the beginning."""

    @abc.abstractmethod
    def done(self, state: Any) -> int:
        """How many steps or rounds led to this state."""

    @abc.abstractmethod
    def pieces(self, state: Any) -> Iterator[tuple[Any, str]]:
        """The state after each further piece, and how it goes."""

    @abc.abstractmethod
    def policy(self, state: Any) -> Policy:
        """The policy that this state has reached."""


@dataclass(frozen=True, eq=False)
class ActorCriticTraining(Training):
    """An agent, from `steps` environment steps."""

    unit: ClassVar[Literal["steps", "rounds"]] = "steps"
    process: AnyProcess
    recipe: Recipe
    steps: int
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        return {**asdict(self.recipe), "seed": self.seed, "steps": self.total}

    @property
    def total(self) -> int:
        return self.recipe.steps_run(self.steps)

    def fresh(self) -> actor_critic.TrainState:
        return actor_critic.initialise(self.process, self.recipe, self.seed)

    def done(self, state: actor_critic.TrainState) -> int:
        return int(state.update) * self.recipe.steps_per_update

    def pieces(self, state: actor_critic.TrainState) -> Iterator[tuple[actor_critic.TrainState, str]]:
        for reached, progress in actor_critic.training(self.process, self.recipe, state, self.steps):
            ends = isinstance(self.process, Process)
            cost, of = (progress.cost_per_episode, "episode") if ends else (progress.cost_per_step, "step")
            yield reached, f"cost {float(cost):.2f} per {of}"

    def policy(self, state: actor_critic.TrainState) -> Actor:
        return actor_critic.policy_of(self.process, self.recipe, state)


@dataclass(frozen=True, eq=False)
class ValueTraining(Training):
    """Lookahead on a value, from rounds of value iteration."""

    unit: ClassVar[Literal["steps", "rounds"]] = "rounds"
    process: Process
    how: Settings
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        return {**asdict(self.how), "seed": self.seed}

    @property
    def total(self) -> int:
        return self.how.rounds

    def fresh(self) -> value_iteration.IterationState:
        return value_iteration.initialise(self.process, self.how, self.seed)

    def done(self, state: value_iteration.IterationState) -> int:
        return int(state.round)

    def pieces(self, state: value_iteration.IterationState) -> Iterator[tuple[value_iteration.IterationState, str]]:
        for reached, residual in value_iteration.iterate(self.process, self.how, state):
            yield reached, f"residual {residual:.3f}"

    def policy(self, state: value_iteration.IterationState) -> Lookahead:
        return value_iteration.policy_of(self.process, self.how, state)


def trained(training: Training, report: Report, checkpoint: Path | None = None, of: Any = None) -> tuple[Policy, int]:
    """The policy, and how many steps or rounds it took. `report` is called before the first piece and after each.

    `checkpoint` is a file that the state is written to now and then, with what it is `of` (as JSON): a training of the
    same goes on from there, and removes it at its end.
    """
    settings, state = {**training.settings, "of": of}, training.fresh()
    if checkpoint is not None:
        state = load_checkpoint(checkpoint, state, settings) or state
    report(Progress(training.done(state), training.total, training.unit, ""))
    saved = time.perf_counter()
    for reached, how in training.pieces(state):
        state = reached
        report(Progress(training.done(state), training.total, training.unit, how))
        if checkpoint is not None and time.perf_counter() - saved > SECONDS_BETWEEN_SAVES:
            save_checkpoint(checkpoint, state, settings)
            saved = time.perf_counter()
    return training.policy(state), training.done(state)
