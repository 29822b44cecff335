"""Methods that learn nothing but a threshold: rules of thumb, mechanisms of others, and no protection."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp

from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.policy import NoProtection, Policy
from reticent.problem.bound import Bound, Unbounded
from reticent.problem.enforcement import Enforcement
from reticent.problem.mechanisms import MECHANISMS, Mechanism
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate
from reticent.solve.baselines import tuned_baseline
from reticent.study.method import TUNING_SEED, Evaluate, Method, Report

# The no-PUT policy of the paper releases this many readings of random sensors, whatever they reveal.
READINGS_WITHOUT_PROTECTION = 10
# Variants of a comparator are chosen by these episodes.
CHOOSING_SEED, COMPARED_EPISODES = 15_000, 8_192


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
