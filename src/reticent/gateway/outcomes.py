"""Outcomes of messages: counted, and logged where they are unusual."""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from reticent.gateway.events import Events
from reticent.gateway.messages import Reason

_log = logging.getLogger("reticent.gateway")

Outcome = Literal[
    "released",
    "gathered",
    "not asked",
    "resting",
    "nothing left",
    "paused",
    "trouble",
    "unknown",
    "unfit",
    "impossible",
    "refused",
    "blocked",
    "taken",
    "clock",
    "ahead",
    "stale",
    "duplicate",
]
SECONDS_BETWEEN_LOGS = 10.0
UNUSABLE = "the asked sensor sent a reading that cannot be released; the provider can notice that nothing came"
WHY: dict[Outcome | Reason, str] = {
    "clock": "the subject's newest entry in the ledger is ahead of this gateway's clock; set the clocks right, and it "
    "goes on by itself at that time or, with `reticent ledger holds lift`, at once",
    "unfit": UNUSABLE,
    "impossible": UNUSABLE,
}
# Frequent in normal operation: counted, but not logged.
USUAL: frozenset[Outcome] = frozenset(("released", "gathered", "not asked", "resting", "nothing left", "paused"))
# Outcomes of a reading of the asked sensor that could not be released.
ASKED_BUT_UNUSABLE: frozenset[Outcome] = frozenset(("unknown", "unfit", "impossible"))


class OutcomeCounters:
    """The counters of a gateway; each unusual outcome is logged at most once in SECONDS_BETWEEN_LOGS."""

    def __init__(self, events: Events) -> None:
        self.counters: Counter[str] = Counter(received=0, released=0, stopped=0)
        self._events = events
        self._logged: dict[str, float] = {}

    def count(self, outcomes: Sequence[Outcome | Reason], said: str = "") -> None:
        """Count what became of messages; `said` explains it in the log."""
        found = Counter(outcomes)
        self.counters.update(found)
        for outcome in found.keys() - USUAL:
            if time.monotonic() - self._logged.get(outcome, float("-inf")) > SECONDS_BETWEEN_LOGS:
                self._logged[outcome] = time.monotonic()
                why = said or WHY.get(outcome)
                _log.warning("Dropped: %s, %d so far%s.", outcome, self.counters[outcome], f" ({why})" if why else "")
        if found:
            self._events.tell({"kind": "counters"})
