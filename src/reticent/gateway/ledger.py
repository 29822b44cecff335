"""The ledger: what was released, remembered before anything leaves.

Append-only, and hash-chained per subject: each entry holds the hash of the one before it. The pair (subject, number)
can be taken once, so of two gateways that serve one subject only one releases. A ledger is a file (`sqlite.py`) or a
PostgreSQL database that several gateways share (`postgres.py`).
"""

import abc
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from reticent.gateway.entry import COLUMNS, NONSENSE, Entry, encodable, entry_of

if TYPE_CHECKING:
    from reticent.gateway.runtime import Standing

POSTGRES = ("postgresql://", "postgres://")
PAGE = 256
CLOSED = "This ledger has been closed."
MEND = "Mend it with `reticent ledger repair LEDGER --against EXPORT`, then `reticent ledger holds lift`."
# No subject has this name.
EVERYBODY = ""
# Begins a note on a subject whose clock was ahead, in the table of holds; no subject that a gateway serves has a slash.
CLOCK = "clock/"
HOLD = "INSERT INTO held VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET why = excluded.why"
# A run of entries first..last of a subject has left. Only a run that begins where the last one ended moves the mark.
MARK = """
INSERT INTO delivered VALUES (?, CASE WHEN ? = 0 THEN ? ELSE -1 END) ON CONFLICT (subject)
DO UPDATE SET number = ? WHERE delivered.number BETWEEN ? - 1 AND ? - 1
"""
# Changes a row that means nothing, so that trying to write changes nothing else.
PROBE = "INSERT INTO delivered VALUES ('', 0) ON CONFLICT (subject) DO UPDATE SET number = 1 - delivered.number"
FIELDS = ", ".join(f"entries.{name}" for name in COLUMNS)
# One step along the index per subject, not per entry.
ALL_SUBJECTS = """
WITH RECURSIVE everybody(subject) AS (
    SELECT min(subject) FROM entries UNION ALL
    SELECT (SELECT min(subject) FROM entries WHERE subject > everybody.subject) FROM everybody
    WHERE everybody.subject IS NOT NULL
)
"""


class LedgerTrouble(Exception):  # noqa: N818  (the state of a thing, not a mistake in a call)
    """The ledger cannot be written or read now; one sentence for the operator. Nothing may leave meanwhile.

    The call can be tried again. What was given to a call that raised this may be on disk or not: ask `last` before
    going on.
    """


class Damaged(LedgerTrouble):
    """A row cannot be read as the entry that was written. It concerns one subject: the others may go on.

    `subject` is None where the row does not say whose it is.
    """

    def __init__(self, subject: Any, sentence: str) -> None:
        super().__init__(sentence)
        self.subject: str | None = subject if isinstance(subject, str) and subject and encodable(subject) else None


@dataclass(frozen=True)
class Counts:
    """How much there is of one subject."""

    entries: int
    releases: int
    sessions: int


class Readable(NamedTuple):
    """The entries that could be read, of each subject up to the first that is damaged; and what is damaged."""

    entries: list[Entry]
    damaged: list[Damaged]


class Ledger(abc.ABC):
    """Append-only and durable. One thread uses it: the first that calls anything but `close`.

    `shared`: several gateways may write it.
    """

    shared = False
    _thread: int | None = None

    @abc.abstractmethod
    def append(self, entries: Sequence[Entry]) -> list[bool]:
        """Write entries in one transaction; on return they are on disk. Those of one subject come in their order.

        False: another gateway has taken that number of that subject, or a predecessor in this call was refused;
        nothing of it may leave. An entry that is there already, to the last digit, counts as written: so a call that
        broke off can be made again.
        """

    @abc.abstractmethod
    def mark_delivered(self, entries: Sequence[Entry]) -> None:
        """These entries have left. One whose predecessor has not is not marked, and will be sent again after it."""

    @abc.abstractmethod
    def mend(self, entries: Sequence[Entry]) -> None:
        """Write these entries over what was damaged of them, in one transaction. Takes the rights of the owner."""

    @abc.abstractmethod
    def hold(self, name: str, why: str | None) -> None:
        """Remember why nothing of a subject, or of EVERYBODY, is released, or that there is no reason any more.

        On return it is on disk. It is no part of the chain: whoever may write the ledger may lift it.
        """

    @abc.abstractmethod
    def probe(self) -> None:
        """Raise what a write would raise now; changes nothing that means anything."""

    @abc.abstractmethod
    def check(self) -> None:
        """Look at how it lies on disk, which reading alone may not notice; slow."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of it. Closing twice is fine."""

    @abc.abstractmethod
    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query answers; a question mark in it stands for each value."""

    def last(self, subject: str) -> Entry | None:
        """The newest entry of a subject."""
        rows = self._rows(f"SELECT {FIELDS} FROM entries WHERE subject = ? ORDER BY number DESC LIMIT 1", subject)
        return checked(rows[0]) if rows else None

    def at(self, subject: str, number: int) -> Entry | None:
        """The entry of a subject with this number."""
        rows = self._rows(f"SELECT {FIELDS} FROM entries WHERE subject = ? AND number = ?", subject, number)
        return checked(rows[0]) if rows else None

    def held(self, names: Iterable[str]) -> dict[str, str]:
        """Of these subjects, and of EVERYBODY, those of whom nothing is released, and why."""
        rows: list[tuple[Any, ...]] = []
        for some in _pages(sorted(set(names))):
            marks = ", ".join("?" * len(some))
            rows += self._rows(f"SELECT name, why FROM held WHERE why IS NOT NULL AND name IN ({marks})", *some)
        return {name: str(why) for name, why in rows}

    def holds(self) -> dict[str, str]:
        """All of whom nothing is released, and why."""
        rows = self._rows("SELECT name, why FROM held WHERE why IS NOT NULL ORDER BY name")
        return {str(name): str(why) for name, why in rows if not str(name).startswith(CLOCK)}

    def undelivered(self) -> Readable:
        """On disk, perhaps never sent, in order of subject and number. To send them again leaks nothing new."""
        rows = self._rows(
            f"{ALL_SUBJECTS} SELECT {FIELDS} FROM everybody "
            "LEFT JOIN delivered ON delivered.subject = everybody.subject "
            "JOIN entries ON entries.subject = everybody.subject AND entries.number > coalesce(delivered.number, -1) "
            "ORDER BY entries.subject, entries.number"
        )
        return _readable(rows)

    def between(self, subject: str, first: int, beyond: int) -> Readable:
        """The entries of a subject from number `first` up to, and without, `beyond`."""
        where = "subject = ? AND number >= ? AND number < ? ORDER BY number"
        return _readable(self._rows(f"SELECT {FIELDS} FROM entries WHERE {where}", subject, first, beyond))

    def delivered_up_to(self, subjects: Iterable[str]) -> dict[str, int]:
        """Of these subjects the number of the last entry that has left with all before it; -1 where none has."""
        found = dict.fromkeys(subjects, -1)
        for some in _pages(sorted(found)):
            marks = ", ".join("?" * len(some))
            rows = self._rows(f"SELECT subject, number FROM delivered WHERE subject IN ({marks})", *some)
            # A mark that is damaged counts as none: what was sent is sent again.
            found |= {name: number for name, number in rows if isinstance(number, int)}
        return found

    def released_at(self, subject: str, measured: float) -> bool:
        """Whether a reading of a subject that was measured at this very time was released."""
        query = "SELECT 1 FROM entries WHERE subject = ? AND measured = ? LIMIT 1"
        return bool(self._rows(query, subject, measured))

    def subjects(self) -> list[str]:
        """Who is in it, in order of code points."""
        names = [name for (name,) in self._rows(f"{ALL_SUBJECTS} SELECT subject FROM everybody") if name is not None]
        if strange := [name for name in names if not (isinstance(name, str) and encodable(name))]:
            raise LedgerTrouble(f"There are entries of {strange[0]!r}, which is no subject: the ledger was edited.")
        return names

    def counts(self, subject: str) -> Counts:
        """How much there is of a subject."""
        query = "SELECT count(*), count(symbol), count(DISTINCT session) FROM entries WHERE subject = ?"
        return Counts(*self._rows(query, subject)[0])

    def entries(self, subject: str | None = None) -> Iterator[Entry]:
        """All entries, or those of one subject, in order of subject and number. Streamed: no page stays in memory."""
        # The first page has no lower end: a number below 0 was never written, and must be seen.
        first, further = (
            f"SELECT {FIELDS} FROM entries WHERE subject = ? {beyond} ORDER BY number LIMIT {PAGE}"
            for beyond in ("", "AND number > ?")
        )
        for each in self.subjects() if subject is None else [subject]:
            rows = self._rows(first, each)
            while rows:
                yield from map(checked, rows)
                rows = self._rows(further, each, rows[-1][1])

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_its_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.get_ident()
        elif self._thread != threading.get_ident():
            raise RuntimeError("A ledger is used from one thread, and this is another one: hand the work over to it.")


def open_ledger(where: str, read_only: bool = False, beside: bool = False) -> Ledger:
    """The ledger at a path or postgresql://... URL, made if there is none. Read-only it may be open elsewhere.

    `beside`: to lift holds or mend entries while a gateway may use it; nothing is released by whoever opens it so.
    """
    if where.startswith(POSTGRES):
        from reticent.gateway.postgres import PostgresLedger

        return PostgresLedger(where, read_only)
    from reticent.gateway.sqlite import SqliteLedger

    return SqliteLedger(where, read_only, beside)


def standing_of(entry: Entry) -> "Standing":
    """What the provider knows since this entry."""
    import numpy as np

    from reticent.gateway.runtime import Standing

    # A release counts itself: the step after it is one further.
    made = entry.step if entry.symbol is None else entry.step + 1
    return Standing(np.array(entry.belief, dtype=float), entry.spent_bits, entry.session, made)


def checked(row: Sequence[Any]) -> Entry:
    """The entry of a row, if it still has the hash that was written with it."""
    try:
        entry, stored = entry_of(row)
        same = entry.hash == stored
    except NONSENSE as error:
        sentence = f"Entry {_shown(row[1])} of subject {_shown(row[0])} cannot be read: it is damaged. {MEND}"
        raise Damaged(row[0], sentence) from error
    if not same:
        raise Damaged(
            entry.subject,
            f"Entry {entry.number} of subject {entry.subject!r} does not have the hash that was written with it: "
            f"it was edited, or the file is damaged. {MEND}",
        )
    return entry


def _readable(rows: Iterable[Sequence[Any]]) -> Readable:
    """The entries of rows in order of subject and number."""
    entries: list[Entry] = []
    damaged: dict[Any, Damaged] = {}
    for row in rows:
        if row[0] in damaged:
            continue
        try:
            entries.append(checked(row))
        except Damaged as error:
            damaged[row[0]] = error
    return Readable(entries, list(damaged.values()))


def _pages(names: Sequence[str]) -> Iterator[list[str]]:
    """So many at once as any database takes."""
    left = iter(names)
    while page := list(islice(left, PAGE)):
        yield page


def _shown(value: Any) -> str:
    """What stands in a row in place of what was written, short enough for a sentence."""
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def runs(entries: Iterable[Entry]) -> list[tuple[str, int, int]]:
    """Subject, first and last number of each unbroken run, in order of subject: so two gateways wait for each other in
    the same order."""
    found: list[tuple[str, int, int]] = []
    for subject, number in sorted({(entry.subject, entry.number) for entry in entries}):
        if found and (found[-1][0], found[-1][2] + 1) == (subject, number):
            found[-1] = (subject, found[-1][1], number)
        else:
            found.append((subject, number, number))
    return found


def marks(entries: Iterable[Entry]) -> list[tuple[Any, ...]]:
    """The values of MARK for each run."""
    return [(subject, first, last, last, first, last) for subject, first, last in runs(entries)]


Head = tuple[int, str]
NO_HEAD: Head = (-1, "")


def judged(
    entries: Sequence[Entry], heads: Mapping[str, Head], stored: Callable[[str, int], str | None]
) -> list[bool | None]:
    """What can be said before writing: None, it continues its subject's chain; True, it is there already; False, its
    number is taken or a predecessor is refused.

    `heads` are number and hash of the newest entries on disk. Whoever knows of a newer one, or of another hash, has
    read a ledger that this one is not: then nothing is written at all.
    """
    newest, refused = dict(heads), set()
    verdicts: list[bool | None] = []
    for entry in entries:
        number, head = newest.get(entry.subject, NO_HEAD)
        if entry.subject in refused:
            verdicts.append(False)
        elif entry.number <= number:
            same = stored(entry.subject, entry.number) == entry.hash
            verdicts.append(same)
            refused |= set() if same else {entry.subject}
        elif (entry.number, entry.before) == (number + 1, head):
            verdicts.append(None)
            newest[entry.subject] = (entry.number, entry.hash)
        else:
            raise LedgerTrouble(
                f"The ledger ends at entry {number} of subject {entry.subject!r}, but the gateway has seen entry "
                f"{entry.number - 1} there or another one in its place: an older copy was put back, or it was "
                "rewritten. Put the newest copy back and start the gateway again."
            )
    return verdicts
