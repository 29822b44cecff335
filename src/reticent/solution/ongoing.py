"""A monitoring task and the policy for it, in one object."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent.audit.moving_audit import audit_moving
from reticent.audit.moving_days import traces_of_days, write_days
from reticent.audit.moving_verdict import MovingAudit
from reticent.audit.trace_scan import LEAST_WIDTH, MOST_NUMBERS
from reticent.audit.trial import AuditOptions
from reticent.errors import InputError
from reticent.evaluate.lock_up import lock_up
from reticent.evaluate.monitoring import Monitored, check_days, summarise_days
from reticent.policy.policy import Policy
from reticent.policy.saved_ongoing import ongoing_file
from reticent.policy.store import PolicyFile
from reticent.problem.monitoring import Monitoring
from reticent.process.days import Day, play_days
from reticent.process.ongoing import OngoingProcess
from reticent.solution.page import Subject, write_days_page, write_page
from reticent.study.provenance import provenance


@dataclass(frozen=True, eq=False)
class OngoingSolution:
    """A monitoring task and the policy for it: what `solve`, `load` and `Solution.of` make of a problem that goes on.

    `task`, `process` and `policy` belong together; `made` says how and by what the policy was made.

    Example:
        >>> from reticent.problem.synthetic import two_binary_sensors
        >>> moves = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.8, 0.2], [0.2, 0.8]]}
        >>> task = rt.Monitoring(two_binary_sensors().moving(moves), rt.Confidence(0.7), horizon=100)
        >>> found = rt.solve(task, "lookahead").evaluate(days=4)
        >>> found.highest_smoother < 0.7
        True
    """

    task: Monitoring
    process: OngoingProcess
    policy: Policy
    made: dict[str, Any] = field(default_factory=dict)

    def simulate(self, days: int, seed: int) -> Day:
        """Independent days, step by step. Deterministic given the seed."""
        return play_days(self.process, self.policy.act, days, seed)

    def evaluate(
        self, days: int = 100, seed: int = 1, traces: str | Path | None = None, page: str | Path | None = None
    ) -> Monitored:
        """Cost, accuracies, silence and what is known of the secret, by simulated days.

        `traces`: a file for what was sent. `page`: a folder for a page about the day.
        """
        check_days(days)
        played = self.simulate(days, seed)
        found = summarise_days(self.process, played, seed)
        if traces is not None:
            write_days(Path(traces), self.task, played)
        if page is not None:
            about = {"confidence_limit": self._limit, "made": self.made}
            write_days_page(Path(page), {**found.to_json(), **about})
        return found

    def lock_up(self, seed: int = 0) -> str | None:
        """A sentence where the chain is too slow for the bound, by a few simulated days; None where it is not."""
        return lock_up(self.process, seed)

    def audit(
        self,
        days: int = 100,
        seed: int = 0,
        quick: bool = False,
        page: str | Path | None = None,
        progress: Any = lambda doing: None,
    ) -> MovingAudit:
        """Attack what is sent, by attackers who look back: how surely is the secret of a moment known?

        Each simulated day is of another person. `page`: a folder for the report. `quick`: without the network.
        """
        check_days(days)
        most = MOST_NUMBERS // LEAST_WIDTH // self.task.horizon
        if days > most:
            raise InputError(f"There is room for {most:,} days of {self.task.horizon:,} steps, not for {days:,}.")
        progress(f"playing {days:,} days")
        traces = traces_of_days(self.task, self.simulate(days, seed))
        options = AuditOptions(seed, quick, progress)
        found = audit_moving(traces, self.task.model, self._limit, options)
        if page is not None:
            write_page(Path(page), found.to_json(), Subject("Audit of a policy", "a policy in memory", "-"), seed)
        return found

    def file(self) -> PolicyFile:
        """What `save` writes."""
        return ongoing_file(self.policy, self.task, {**self.made, **provenance()})

    def save(self, path: str | Path) -> None:
        """Write a policy file; an `InputError` where the policy, bound or enforcement is of a kind no file can hold."""
        self.file().save(path)

    @property
    def _limit(self) -> float | None:
        return self.task.bound.posterior_limit(len(self.task.model.secrets))
