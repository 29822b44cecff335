"""Which entries continue the chains in a ledger: what every back end decides before it writes."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reticent.gateway.entry import Entry
from reticent.gateway.ledger import Head, LedgerTrouble


def judged(
    entries: Sequence[Entry], heads: Mapping[str, Head], stored: Callable[[str, int], str | None]
) -> list[bool | None]:
    """For each entry: None, it continues its subject's chain and is to be written; True, it is stored already; False,
    its number is taken or a predecessor is refused.

    `heads` are the newest entries on disk, of subjects that have one; `stored` looks up the hash of an entry. An entry
    that builds on one the ledger does not have was decided from another ledger: then nothing is written at all.
    """
    newest, refused = dict(heads), set()
    verdicts: list[bool | None] = []
    for entry in entries:
        head = newest.get(entry.subject)
        if entry.subject in refused:
            verdicts.append(False)
        elif head is not None and entry.number <= head.number:
            same = stored(entry.subject, entry.number) == entry.hash
            verdicts.append(same)
            refused |= set() if same else {entry.subject}
        elif (entry.number, entry.before) == _next(head):
            verdicts.append(None)
            newest[entry.subject] = Head(entry.number, entry.hash)
        else:
            raise LedgerTrouble(_older_copy(head, entry))
    return verdicts


def runs(entries: Iterable[Entry]) -> list[tuple[str, int, int]]:
    """Subject, first and last number of each run of consecutive entries, ordered by subject: gateways that take row
    locks in one order cannot deadlock."""
    found: list[tuple[str, int, int]] = []
    for subject, number in sorted({(entry.subject, entry.number) for entry in entries}):
        if found and (found[-1][0], found[-1][2] + 1) == (subject, number):
            found[-1] = (subject, found[-1][1], number)
        else:
            found.append((subject, number, number))
    return found


def _next(head: Head | None) -> tuple[int, str]:
    """Number, and hash of the entry before, that the next entry of a chain has."""
    return (0, "") if head is None else (head.number + 1, head.hash)


def _older_copy(head: Head | None, entry: Entry) -> str:
    ends = f"ends at entry {head.number}" if head else "has no entry"
    return (
        f"The ledger {ends} of subject {entry.subject!r}, but the gateway has seen entry {entry.number - 1} there, or "
        "another one with its number: an older copy was restored, or the ledger was rewritten. Restore the newest copy "
        "and restart the gateway."
    )
