"""Writes a batch to the ledger; only then do its decisions take effect."""

import logging
import time
from collections.abc import Sequence

from reticent.gateway.batch import Batch
from reticent.gateway.entry import Entry
from reticent.gateway.guards import Troubles
from reticent.gateway.holds import quarantine
from reticent.gateway.ledger import Damaged, Ledger, LedgerTrouble
from reticent.gateway.sessions import EXHAUSTED
from reticent.gateway.subjects import Subjects

_log = logging.getLogger("reticent.gateway")

SECONDS_BETWEEN_TRIES = 5.0


class BatchWriter:
    """Makes batches durable. `newest_time`: the latest time that this gateway started or wrote at, by its own clock."""

    def __init__(self, ledger: Ledger, subjects: Subjects, troubles: Troubles, started: float) -> None:
        self._ledger, self._subjects, self._troubles = ledger, subjects, troubles
        self.newest_time = started
        self._try_ledger_at = 0.0

    def write(self, batch: Batch) -> list[Entry]:
        """Write the entries of the batch in one transaction; returns those on disk, which may leave."""
        # Holds first: should the gateway end before the entries are written, the subject is silent all the same.
        self._hold_blocked(batch)
        if not batch.entries:
            self._try_ledger()
            self._settle(batch, set())
            return []
        kept = self._append(batch)
        self._troubles.put("ledger", None)
        self.newest_time = max(self.newest_time, batch.now)
        refused = _where(batch.entries, kept, False)
        # Another gateway has released something of these subjects: what was decided here is void.
        batch.revoke(refused, "taken")
        self._settle(batch, {entry.subject for entry in refused})
        return _where(batch.entries, kept, True)

    def abandon(self, batch: Batch, error: LedgerTrouble) -> None:
        """Nothing of the batch takes effect. It may be on disk all the same, so its subjects are restored next time."""
        for name in batch.states:
            self._subjects.of(name).unsure = True
        self._troubles.put("ledger", str(error))
        batch.outcomes = [outcome for outcome in batch.outcomes if outcome != "released"]

    def _append(self, batch: Batch) -> list[bool]:
        """Which entries are on disk. A subject that turns out to be damaged is left out, and the rest tried again."""
        while True:
            try:
                return self._ledger.append(batch.entries)
            except Damaged as error:
                quarantine(self._ledger, error, batch.held)
                own = [entry for entry in batch.entries if entry.subject == error.subject]
                batch.revoke(own, "blocked")
                if not own:
                    raise
                batch.entries = [entry for entry in batch.entries if entry.subject != error.subject]
                del batch.states[own[0].subject]
                self._subjects.of(own[0].subject).unsure = True

    def _hold_blocked(self, batch: Batch) -> None:
        """Store the new holds of this batch, so that they outlive the gateway and its memory."""
        for name, state in batch.states.items():
            if state.held and state.held != batch.held.get(name):
                _log.warning("Subject %r: %s", name, state.blocked)
                self._ledger.hold(name, state.held)

    def _try_ledger(self) -> None:
        """After trouble with the ledger and with nothing to write, probe now and then whether it can be written."""
        if self._troubles.has("ledger") and time.monotonic() >= self._try_ledger_at:
            self._try_ledger_at = time.monotonic() + SECONDS_BETWEEN_TRIES
            self._ledger.probe()
            self._troubles.put("ledger", None)

    def _settle(self, batch: Batch, refused: set[str]) -> None:
        """The states of the batch take effect, except for refused subjects, which are restored next time."""
        for name, state in batch.states.items():
            subject = self._subjects.of(name)
            if name in refused:
                subject.unsure = True
                continue
            if state.exhausted and not (subject.state and subject.state.exhausted):
                _log.warning("Subject %r: %s", name, EXHAUSTED)
            subject.state = state


def _where(entries: Sequence[Entry], kept: Sequence[bool], wanted: bool) -> list[Entry]:
    return [entry for entry, written in zip(entries, kept, strict=True) if written == wanted]
