"""A task and how it is solved, in one object, so that nobody carries task, process and policy around separately."""

import abc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from reticent.audit.policy_audit import PolicyAudit, audit_answers, audit_on_recordings, audit_policy
from reticent.audit.trace_files import write_traces
from reticent.audit.trial import QUICK_EPISODES, AuditOptions, silent
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.evaluate.claim import Claim, three_parts
from reticent.evaluate.estimate import Estimate, mean
from reticent.evaluate.evaluation import PILOT, Evaluation, check_episodes, enough, summarise
from reticent.fit.recorded import fitted_readings
from reticent.policy.answer import Answer
from reticent.policy.lookahead import ValueFunction
from reticent.policy.policy import Policy
from reticent.policy.saved import policy_file
from reticent.policy.store import PolicyFile
from reticent.problem.model import Model
from reticent.problem.monitoring import Monitoring
from reticent.problem.task import Task
from reticent.process.ongoing import OngoingProcess
from reticent.process.process import Process
from reticent.process.rollout import Episode, simulate, simulate_traced
from reticent.solution.ongoing import OngoingSolution
from reticent.solution.page import Subject, write_page
from reticent.solve.certificate import (
    DEFAULT,
    PLAIN_EPISODES,
    Candidate,
    Certificate,
    Effort,
    PolicyInProcess,
    Report,
    certify,
)
from reticent.study.provenance import provenance


@dataclass(frozen=True)
class Recorded:
    """Recordings to replay: readings, or the folder (and its map) that a model was fitted to a part of."""

    data: Readings | str | Path
    map: str | Path | None

    def readings(self, model: Model) -> Readings:
        """The readings, as the model was fitted to them."""
        return self.data if isinstance(self.data, Readings) else fitted_readings(model, Path(self.data), self.map)


@dataclass(frozen=True, eq=False)
class Solution(Candidate):
    """A task and how it is solved: what `solve` and `load` return, and what `Solution.of` makes of your own policy.

    `task`, `process` and `policy` belong together; `made` says how and by what the solution was made. There are two
    kinds: readings released by a policy (`Released`), and one answer by a public rule (`Answered`, whose process and
    policy are those of private reading). Both simulate, evaluate, certify, audit and save alike.

    Args:
        task: The task (of `Solution.of`).
        policy: The policy for it (of `Solution.of`).

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> task = rt.Task(tells_useful(), rt.Confidence(0.8))
        >>> solution = rt.Solution.of(task, rt.OneStepLookahead(rt.Process.of(task)))
        >>> found = solution.evaluate(episodes=1_000, seed=0)
        >>> found.cost.value, found.violation_rate.value
        (1.0, 0.0)
    """

    task: Task
    process: Process
    policy: Policy
    made: dict[str, Any]

    @overload
    @staticmethod
    def of(task: Task, policy: Policy) -> "Released": ...
    @overload
    @staticmethod
    def of(task: Monitoring, policy: Policy) -> OngoingSolution: ...
    @staticmethod
    def of(task: Task | Monitoring, policy: Policy) -> "Released | OngoingSolution":
        """The task, acted in by this policy."""
        if isinstance(task, Monitoring):
            return OngoingSolution(task, OngoingProcess(task), policy)
        return Released(task, policy.acts_in(Process.of(task)), policy, {})

    @abc.abstractmethod
    def simulate(self, episodes: int, seed: int) -> Episode:
        """Records of independent episodes as the provider sees them. Deterministic given the seed."""

    @abc.abstractmethod
    def simulate_traced(self, episodes: int, seed: int, path: Path) -> Episode:
        """The same records, and what was released in the file `path` (Parquet)."""

    @abc.abstractmethod
    def file(self) -> PolicyFile:
        """What `save` writes."""

    @abc.abstractmethod
    def _audited(self, episodes: int, options: AuditOptions, recorded: Recorded | None) -> PolicyAudit:
        """The audit of simulated sessions, or of sessions that replay recordings."""

    def evaluate(
        self,
        episodes: int = 100_000,
        seed: int = 1,
        traces: str | Path | None = None,
        precision: float | None = None,
    ) -> Evaluation:
        """Cost, stopping time, accuracies and violations by simulation.

        `traces`: a file for what was released. `precision`: no more episodes than make the interval of the mean cost
        reach this far to each side, as judged by the first 8,192.
        """
        check_episodes(episodes, precision)
        if precision is not None:
            pilot = self.simulate(min(episodes, PILOT), seed)
            episodes = min(episodes, enough(pilot, precision))
            if traces is None and episodes == len(pilot.cost):
                return summarise(pilot, seed)
        if traces is None:
            return summarise(self.simulate(episodes, seed), seed)
        return summarise(self.simulate_traced(episodes, seed, Path(traces)), seed)

    def certify(
        self, seed: int = 0, effort: Effort = DEFAULT, report: Report = lambda doing, done, total: None
    ) -> Certificate:
        """How far from optimal this is: a lower bound on the cost of every policy, beside the cost of this one."""
        return certify(self.task, self, seed, effort, report)

    def audit(
        self,
        episodes: int = 20_000,
        seed: int = 0,
        quick: bool = False,
        page: str | Path | None = None,
        data: "Readings | str | Path | None" = None,
        map: str | Path | None = None,
        progress: Any = silent,
    ) -> PolicyAudit:
        """Attack what is released: who learns the secret, how surely, with what evidence.

        `page`: a folder for the report. `quick`: a first look at 4,000 episodes at most. `data`: recordings to replay
        in place of readings drawn from the model, as readings or as the folder (with its `map`) that the model was
        fitted to a part of. `progress` is told what is being done.
        """
        recorded = None if data is None else Recorded(data, map)
        episodes = min(episodes, QUICK_EPISODES) if quick else episodes
        found = self._audited(episodes, AuditOptions(seed, quick, progress), recorded)
        if page is not None:
            write_page(Path(page), found.to_json(), Subject("Audit of a policy", "a policy in memory", "-"), seed)
        return found

    def save(self, path: str | Path) -> None:
        """Write a policy file; an `InputError` where the policy, bound or enforcement is of a kind no file can hold."""
        self.file().save(path)


@dataclass(frozen=True, eq=False)
class Released(Solution):
    """Readings, or what stands for them, are released one by one, as the policy chooses."""

    def simulate(self, episodes: int, seed: int) -> Episode:
        return simulate(self.process, self.policy.act, episodes, seed)

    def simulate_traced(self, episodes: int, seed: int, path: Path) -> Episode:
        records, sent = simulate_traced(self.process, self.policy.act, episodes, seed)
        write_traces(path, self.task, self.process, records, sent)
        return records

    def cost(self, episodes: int | None, seed: int, value: ValueFunction | None = None) -> Estimate:
        return PolicyInProcess(self.process, self.policy).cost(episodes, seed, value)

    def file(self) -> PolicyFile:
        return policy_file(self.policy, self.task, {**self.made, **provenance()})

    def _audited(self, episodes: int, options: AuditOptions, recorded: Recorded | None) -> PolicyAudit:
        promise = three_parts(self.task.promised, Claim.made_with(self.made))
        if recorded is None:
            found = audit_policy(self.task, self.process, self.policy, episodes, options)
        else:
            readings = recorded.readings(self.task.model)
            found = audit_on_recordings(self.task, self.process, self.policy, readings, episodes, options)
        return replace(found, promise=promise)


@dataclass(frozen=True, eq=False)
class Answered(Solution):
    """No reading is released, but one guess of U, at a time and from a public rule that keep the bound."""

    answer: Answer

    @classmethod
    def by(cls, answer: Answer, made: dict[str, Any]) -> "Answered":
        """The task of this rule, answered by it."""
        return cls(answer.task, answer.private.process, answer.private, made, answer)

    def simulate(self, episodes: int, seed: int) -> Episode:
        return self.answer.simulate(episodes, seed)

    def simulate_traced(self, episodes: int, seed: int, path: Path) -> Episode:
        raise InputError("This policy answers and releases no readings, so there are no traces to write.")

    def cost(self, episodes: int | None, seed: int, value: ValueFunction | None = None) -> Estimate:
        del value
        return mean(np.asarray(self.simulate(episodes or PLAIN_EPISODES, seed).cost))

    def file(self) -> PolicyFile:
        return policy_file(self.answer, self.task, {**self.made, **provenance()})

    def _audited(self, episodes: int, options: AuditOptions, recorded: Recorded | None) -> PolicyAudit:
        if recorded is not None:
            raise InputError("This policy answers and releases no readings: there is nothing to replay.")
        return audit_answers(self.task, self.answer, episodes, options)
