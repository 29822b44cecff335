"""What ledgers in SQL databases share: statements, queries, and reading rows as entries.

A question mark in a query stands for a value, as in SQLite; other back ends translate it.
"""

import abc
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from reticent.gateway.chain import runs
from reticent.gateway.entry import COLUMNS, NONSENSE, Entry, encodable, entry_of
from reticent.gateway.ledger import CLOCK, MEND, Counts, Damaged, Ledger, LedgerTrouble, Readable

PAGE = 256
CLOSED = "This ledger has been closed."
HOLD = "INSERT INTO held VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET why = excluded.why"
# Marks a run of entries first..last of a subject as sent, if it begins no later than right after the marked ones. A
# mark of -1 stands for none: the run did not begin with the first entry.
MARK = """
INSERT INTO delivered VALUES (?, CASE WHEN ? = 0 THEN ? ELSE -1 END) ON CONFLICT (subject)
DO UPDATE SET number = ? WHERE delivered.number BETWEEN ? - 1 AND ? - 1
"""
# Writes a row of no subject, so that an attempt to write changes nothing else.
PROBE = "INSERT INTO delivered VALUES ('', 0) ON CONFLICT (subject) DO UPDATE SET number = 1 - delivered.number"
FIELDS = ", ".join(f"entries.{name}" for name in COLUMNS)
# Distinct subjects, by one index lookup each; SELECT DISTINCT would visit every entry.
ALL_SUBJECTS = """
WITH RECURSIVE everybody(subject) AS (
    SELECT min(subject) FROM entries UNION ALL
    SELECT (SELECT min(subject) FROM entries WHERE subject > everybody.subject) FROM everybody
    WHERE everybody.subject IS NOT NULL
)
"""


class SqlLedger(Ledger):
    """A ledger in tables `entries`, `delivered` and `held`; a back end provides the connection and what writes."""

    _thread: int | None = None

    @abc.abstractmethod
    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; a question mark in it stands for each value."""

    def last(self, subject: str) -> Entry | None:
        rows = self._rows(f"SELECT {FIELDS} FROM entries WHERE subject = ? ORDER BY number DESC LIMIT 1", subject)
        return checked(rows[0]) if rows else None

    def at(self, subject: str, number: int) -> Entry | None:
        rows = self._rows(f"SELECT {FIELDS} FROM entries WHERE subject = ? AND number = ?", subject, number)
        return checked(rows[0]) if rows else None

    def held(self, names: Iterable[str]) -> dict[str, str]:
        rows: list[tuple[Any, ...]] = []
        for some in _pages(sorted(set(names))):
            marks = ", ".join("?" * len(some))
            rows += self._rows(f"SELECT name, why FROM held WHERE why IS NOT NULL AND name IN ({marks})", *some)
        return {name: str(why) for name, why in rows}

    def holds(self) -> dict[str, str]:
        rows = self._rows("SELECT name, why FROM held WHERE why IS NOT NULL ORDER BY name")
        return {str(name): str(why) for name, why in rows if not str(name).startswith(CLOCK)}

    def undelivered(self) -> Readable:
        rows = self._rows(
            f"{ALL_SUBJECTS} SELECT {FIELDS} FROM everybody "
            "LEFT JOIN delivered ON delivered.subject = everybody.subject "
            "JOIN entries ON entries.subject = everybody.subject AND entries.number > coalesce(delivered.number, -1) "
            "ORDER BY entries.subject, entries.number"
        )
        return _readable(rows)

    def between(self, subject: str, first: int, beyond: int) -> Readable:
        where = "subject = ? AND number >= ? AND number < ? ORDER BY number"
        return _readable(self._rows(f"SELECT {FIELDS} FROM entries WHERE {where}", subject, first, beyond))

    def undelivered_from(self, subjects: Iterable[str]) -> dict[str, int]:
        found = dict.fromkeys(subjects, 0)
        for some in _pages(sorted(found)):
            marks = ", ".join("?" * len(some))
            rows = self._rows(f"SELECT subject, number FROM delivered WHERE subject IN ({marks})", *some)
            # A damaged mark counts as none: all entries are sent again.
            found |= {name: number + 1 for name, number in rows if isinstance(number, int)}
        return found

    def released_at(self, subject: str, measured: float) -> bool:
        query = "SELECT 1 FROM entries WHERE subject = ? AND measured = ? LIMIT 1"
        return bool(self._rows(query, subject, measured))

    def subjects(self) -> list[str]:
        names = [name for (name,) in self._rows(f"{ALL_SUBJECTS} SELECT subject FROM everybody") if name is not None]
        if strange := [name for name in names if not (isinstance(name, str) and encodable(name))]:
            raise LedgerTrouble(
                f"There are entries of {strange[0]!r}, which is not a valid subject: the ledger was edited."
            )
        return names

    def counts(self, subject: str) -> Counts:
        query = "SELECT count(*), count(symbol), count(DISTINCT session) FROM entries WHERE subject = ?"
        return Counts(*self._rows(query, subject)[0])

    def entries(self, subject: str | None = None) -> Iterator[Entry]:
        # The first page has no lower limit: numbers below 0 are never written by a gateway, and must be seen.
        first, further = (
            f"SELECT {FIELDS} FROM entries WHERE subject = ? {beyond} ORDER BY number LIMIT {PAGE}"
            for beyond in ("", "AND number > ?")
        )
        for each in self.subjects() if subject is None else [subject]:
            rows = self._rows(first, each)
            while rows:
                yield from map(checked, rows)
                rows = self._rows(further, each, rows[-1][1])

    def _check_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.get_ident()
        elif self._thread != threading.get_ident():
            raise RuntimeError("A ledger may be used from one thread only, and this is another one.")


def marks(entries: Iterable[Entry]) -> list[tuple[Any, ...]]:
    """The parameters of MARK for each run."""
    return [(subject, first, last, last, first, last) for subject, first, last in runs(entries)]


def checked(row: Sequence[Any]) -> Entry:
    """The entry of a row; raises `Damaged` unless it matches the hash that was written with it."""
    try:
        entry, stored = entry_of(row)
        same = entry.hash == stored
    except NONSENSE as error:
        sentence = f"Entry {_shown(row[1])} of subject {_shown(row[0])} is damaged and cannot be read. {MEND}"
        raise Damaged(row[0], sentence) from error
    if not same:
        raise Damaged(
            entry.subject,
            f"Entry {entry.number} of subject {entry.subject!r} does not match its hash: it was edited, or the file "
            f"is damaged. {MEND}",
        )
    return entry


def _readable(rows: Iterable[Sequence[Any]]) -> Readable:
    """The entries of rows that come by subject and number."""
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
    """Lists of at most PAGE names: databases limit the parameters of one query."""
    left = iter(names)
    while page := list(islice(left, PAGE)):
        yield page


def _shown(value: Any) -> str:
    """A damaged value, shortened for an error message."""
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
