"""A batch: what is decided about the messages that are handled together, before any of it is on disk."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from reticent.gateway.entry import Entry
from reticent.gateway.outcomes import Outcome
from reticent.gateway.subjects import SubjectState


@dataclass(eq=False)
class Batch:
    """Decisions of one call of `Gateway.handle`; none is in effect until the entries are on disk.

    `held` are the holds in the ledger of the subjects concerned, `states` the new states of subjects, `due` where
    decisions are to be made, and `outcomes` what became of the messages so far.
    """

    now: float
    held: dict[str, str] = field(default_factory=dict)
    states: dict[str, SubjectState] = field(default_factory=dict)
    due: dict[str, Any] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def revoke(self, entries: Iterable[Entry], outcome: Outcome) -> None:
        """The releases among these entries do not happen: as many messages have this outcome instead."""
        for entry in entries:
            if entry.symbol is not None:
                self.outcomes[self.outcomes.index("released")] = outcome
