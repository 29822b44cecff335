"""Methods: how a task is solved. Each is a frozen record; its numbers are the options of `solve`."""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from reticent.errors import InputError
from reticent.policy.answer import private_task
from reticent.policy.lookahead import Lookahead
from reticent.problem.enforcement import AnswerOnly
from reticent.problem.monitoring import Monitoring
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solution.solution import Answered, Released, Solution
from reticent.solve.actor_critic import A2C, PPO, Recipe
from reticent.solve.answer import answer
from reticent.solve.lattice import Bracket, solve_lattice
from reticent.solve.training import ActorCriticTraining, Report, Training, ValueTraining, trained
from reticent.solve.tree import solve_tree
from reticent.solve.value_iteration import DEFAULT, Settings

Record = TypeVar("Record")


@dataclass(frozen=True)
class Run:
    """One use of a method: its seed, who is told how it goes, and where its state is saved meanwhile."""

    seed: int
    report: Report
    checkpoint: Path | None

    def trained(self, name: str, training: Training, task: Task | Monitoring) -> tuple[Any, dict[str, Any]]:
        """The policy, and how it was made."""
        of = None if self.checkpoint is None else {"method": name, "task": task.to_json()}
        policy, done = trained(training, self.report, self.checkpoint, of)
        return policy, {"method": name, **training.settings, "done": done}


class Method(abc.ABC):
    """How a task is solved."""

    @abc.abstractmethod
    def having(self, options: Mapping[str, Any]) -> "Method":
        """The method with some of its numbers changed; an `InputError` for what it does not have."""

    @abc.abstractmethod
    def solve(self, task: Task, run: Run) -> Solution | Bracket:
        """The task solved or, by methods that make no policy, a bracket of its optimal cost."""


@dataclass(frozen=True)
class ActorCritic(Method):
    """An agent that learns from simulated episodes: PPO, or the paper's A2C."""

    name: str
    recipe: Recipe
    steps: int = 1_000_000

    def having(self, options: Mapping[str, Any]) -> "ActorCritic":
        own = {name: value for name, value in options.items() if name == "steps"}
        rest = {name: value for name, value in options.items() if name != "steps"}
        return replace(self, recipe=changed(self.recipe, rest, "steps"), **own)

    def solve(self, task: Task, run: Run) -> Released:
        if not task.enforcement.releases:
            raise InputError(f"Answers are made by the method 'value-iteration', not by {self.name!r}.")
        process = Process.of(task)
        policy, made = run.trained(self.name, ActorCriticTraining(process, self.recipe, self.steps, run.seed), task)
        return Released(task, policy.acts_in(process), policy, made)


@dataclass(frozen=True)
class ValueIteration(Method):
    """Lookahead on a value that rounds of value iteration with the known model have found."""

    name: str = "value-iteration"
    settings: Settings = DEFAULT

    def having(self, options: Mapping[str, Any]) -> "ValueIteration":
        return replace(self, settings=changed(self.settings, options))

    def solve(self, task: Task, run: Run) -> Solution:
        if self.settings.kernels == "value" and not task.enforcement.replaces:
            raise InputError(f"Value kernels go with withhold and coarsen, not with {task.enforcement.name!r}.")
        if not task.enforcement.releases:
            private, made = self._policy(task, private_task(task), run)
            return Answered.by(answer(task, private, run.seed), made)
        policy, made = self._policy(task, task, run)
        return Released(task, policy.process, policy, made)

    def _policy(self, task: Task, acted_in: Task, run: Run) -> tuple[Lookahead, dict[str, Any]]:
        return run.trained(self.name, ValueTraining(Process.of(acted_in), self.settings, run.seed), task)


@dataclass(frozen=True)
class Answering(ValueIteration):
    """One answer in place of readings, whichever way the task kept its bound: value iteration for private reading."""

    name: str = "answer"

    def solve(self, task: Task, run: Run) -> Solution:
        return super().solve(replace(task, enforcement=AnswerOnly()), run)


@dataclass(frozen=True)
class Lattice(Method):
    """The optimal cost of a small task whose readings are sent as they are, from the lattice of counts."""

    horizon: int | None = None
    max_nodes: int = 10_000_000

    def having(self, options: Mapping[str, Any]) -> "Lattice":
        return changed(self, options)

    def solve(self, task: Task, run: Run) -> Bracket:
        return solve_lattice(task, self.horizon, max_nodes=self.max_nodes)


@dataclass(frozen=True)
class Tree(Method):
    """The optimal cost of a small task under any enforcement, for at most `horizon` releases."""

    horizon: int = 4
    max_nodes: int = 1_000_000

    def having(self, options: Mapping[str, Any]) -> "Tree":
        return changed(self, options)

    def solve(self, task: Task, run: Run) -> Bracket:
        return solve_tree(Process.of(task), self.horizon, self.max_nodes)


METHODS: dict[str, Method] = {
    "ppo": ActorCritic("ppo", PPO),
    "a2c": ActorCritic("a2c", A2C),
    "value-iteration": ValueIteration(),
    "answer": Answering(),
    "lattice": Lattice(),
    "tree": Tree(),
}


def changed(record: Record, options: Mapping[str, Any], *more: str) -> Record:
    """The record with these fields changed."""
    known = [*more, *(each.name for each in fields(record) if each.name != "name")]  # type: ignore[arg-type]
    if unknown := sorted(set(options) - set(known)):
        raise InputError(f"This method has no option {unknown[0]!r}; it has {', '.join(known)}.")
    return replace(record, **options)  # type: ignore[type-var]
