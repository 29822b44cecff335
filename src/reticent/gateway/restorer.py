"""The current state of a subject: as remembered, or restored from the ledger where that may know more."""

import logging
from dataclasses import dataclass, replace

from reticent.gateway.batch import Batch
from reticent.gateway.holds import DRIFTED, quarantine
from reticent.gateway.ledger import Damaged, Ledger, LedgerTrouble
from reticent.gateway.moving_turns import AnyTurns
from reticent.gateway.settings import Settings
from reticent.gateway.subjects import Subject, SubjectState

_log = logging.getLogger("reticent.gateway")


@dataclass(frozen=True)
class Restorer:
    """Finds the states of subjects at the start of a batch."""

    ledger: Ledger
    turns: AnyTurns
    settings: Settings

    def state(self, name: str, subject: Subject, batch: Batch) -> SubjectState:
        """The state of a subject, which is read from the ledger only if that may differ from what is remembered."""
        known = subject.state
        if known is not None and not subject.unsure and known.held == batch.held.get(name):
            return known
        try:
            found = self._restored(name, known, batch)
        except Damaged as error:
            quarantine(self.ledger, error, batch.held)
            found = replace(known or self.turns.restored(None), decision=None, held=batch.held[name])
        if found.blocked:
            _log.warning("Subject %r: %s", name, found.blocked)
        subject.state, subject.unsure = found, False
        return found

    def _restored(self, name: str, known: SubjectState | None, batch: Batch) -> SubjectState:
        """The state by the ledger. Without drift check, a hold for drift is lifted."""
        found = self.turns.restored(self.ledger.last(name))
        if batch.held.get(name) == DRIFTED and not self.settings.drift_check:
            self.ledger.hold(name, None)
            del batch.held[name]
        held, unusable = batch.held.get(name), found.unusable
        if known is not None:
            found = no_older(name, known, found)
            if known.held and not held:
                # The hold was lifted by hand: drift is measured anew.
                found = replace(found, tallies={})
        return replace(found, held=held, unusable=unusable)


def no_older(name: str, known: SubjectState, found: SubjectState) -> SubjectState:
    """The newer of the remembered state and the ledger's; raises if the ledger's is older: a copy was restored."""
    if (found.entries, found.hash) == (known.entries, known.hash):
        return known
    if found.entries > known.entries:
        return replace(found, tallies=known.tallies)
    raise LedgerTrouble(
        f"The ledger holds fewer entries of subject {name!r} than it did: an older copy was put in its place. Restore "
        "the newest copy, and releases go on by themselves."
    )
