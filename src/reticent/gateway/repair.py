"""Restores damaged entries from an export.

Only what was damaged or is gone is written, and only where it fits the entries beside it: nothing that was spent is
forgotten, and nothing that can be read is changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from reticent.gateway.entry import Entry
from reticent.gateway.ledger import Damaged, Ledger


@dataclass
class Repair:
    """The entries that were restored, and what could not be restored, as sentences."""

    mended: list[Entry] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def repair(ledger: Ledger, exported: Iterable[Entry]) -> Repair:
    """Restore what the entries of an export can restore. They come in order of subject and number."""
    found, before = Repair(), None
    for entry in exported:
        if before is None or (before.subject, before.number + 1) != (entry.subject, entry.number):
            before = _readable(ledger, entry.subject, entry.number - 1)
        here = _readable(ledger, entry.subject, entry.number)
        if here is None and not _fits(ledger, before, entry):
            found.refused.append(f"Entry {entry.number} of subject {entry.subject!r} does not fit those beside it.")
        elif here is None:
            found.mended.append(entry)
        elif here.hash != entry.hash:
            found.refused.append(f"Entry {entry.number} of subject {entry.subject!r} is whole, and another one.")
        before = here or entry
    if found.refused:
        # The export is of another ledger, or this one was rewritten: that is for somebody to look at.
        return Repair([], found.refused)
    if found.mended:
        ledger.mend(found.mended)
    return found


def _readable(ledger: Ledger, subject: str, number: int) -> Entry | None:
    try:
        return ledger.at(subject, number)
    except Damaged:
        return None


def _fits(ledger: Ledger, before: Entry | None, entry: Entry) -> bool:
    """Whether the chain goes through it, as far as its neighbours can be read."""
    after = _readable(ledger, entry.subject, entry.number + 1)
    return (before is None or before.hash == entry.before) and (after is None or after.before == entry.hash)
