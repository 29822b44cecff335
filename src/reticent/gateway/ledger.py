"""The ledger: an append-only, durable log of what was released, written before anything leaves.

Entries are hash-chained per subject: each holds the hash of the one before it. Each pair (subject, number) is written
once, so of two gateways that serve one subject only one releases. Back ends: one SQLite file (`sqlite.py`), or a
PostgreSQL database that several gateways share (`postgres.py`); `opening.py` opens either by its address.
"""

import abc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from reticent.gateway.entry import Entry, encodable

MEND = "Repair it with `reticent ledger repair LEDGER --against EXPORT`, then `reticent ledger holds lift`."
# The name under which a hold concerns all subjects; no subject has it.
EVERYBODY = ""
# Prefix of a note on a subject whose clock was ahead, in the table of holds; no subject that a gateway serves has a
# slash in its name.
CLOCK = "clock/"


class LedgerTrouble(Exception):  # noqa: N818  (a state of the ledger, not a mistake in a call)
    """The ledger cannot be written or read now; the message tells the operator why. Nothing may leave meanwhile.

    The call can be repeated. Whether entries given to a call that raised this are on disk is unknown: ask `last`
    before going on.
    """


class Damaged(LedgerTrouble):
    """A row cannot be read as the entry that was written. Only its subject is affected.

    `subject` is None where the row does not say whose it is.
    """

    def __init__(self, subject: Any, sentence: str) -> None:
        super().__init__(sentence)
        self.subject: str | None = subject if isinstance(subject, str) and subject and encodable(subject) else None


@dataclass(frozen=True)
class Counts:
    """Numbers of entries, releases and sessions of one subject."""

    entries: int
    releases: int
    sessions: int


class Readable(NamedTuple):
    """The entries that could be read, of each subject up to its first damaged one; and the damage found."""

    entries: list[Entry]
    damaged: list[Damaged]


class Head(NamedTuple):
    """Number and hash of a subject's newest entry."""

    number: int
    hash: str


# Compares below every head: of a subject without entries.
NO_HEAD = Head(-1, "")


class Ledger(abc.ABC):
    """Append-only and durable. Used by one thread only: the first that calls anything but `close`.

    `shared`: several gateways may write it.
    """

    shared = False

    @abc.abstractmethod
    def append(self, entries: Sequence[Entry]) -> list[bool]:
        """Write entries in one transaction; on return they are on disk. Those of one subject come in their order.

        False: another gateway has written that number of that subject, or a predecessor in this call was refused;
        nothing of it may leave. An identical entry that is there already counts as written, so a call that was
        interrupted can be repeated.
        """

    @abc.abstractmethod
    def mark_delivered(self, entries: Sequence[Entry]) -> None:
        """Mark entries as sent. One whose predecessor is not marked is not marked either: both are sent again."""

    @abc.abstractmethod
    def mend(self, entries: Sequence[Entry]) -> None:
        """Overwrite damaged rows with these entries, in one transaction. Needs the rights of the tables' owner."""

    @abc.abstractmethod
    def hold(self, name: str, why: str | None) -> None:
        """Store why nothing of a subject, or of EVERYBODY, is released; None lifts the hold.

        On return it is on disk. Holds are not part of the hash chain: whoever may write the ledger may lift them.
        """

    @abc.abstractmethod
    def probe(self) -> None:
        """Raise what a write would raise now, without changing any entry, mark or hold."""

    @abc.abstractmethod
    def check(self) -> None:
        """Check the storage itself for damage that ordinary reads may miss; slow."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release the file or connection. Closing twice is fine."""

    @abc.abstractmethod
    def last(self, subject: str) -> Entry | None:
        """The newest entry of a subject."""

    @abc.abstractmethod
    def heads(self, subjects: Iterable[str]) -> dict[str, Head]:
        """The newest entries of those of these subjects that have one, in one query."""

    @abc.abstractmethod
    def at(self, subject: str, number: int) -> Entry | None:
        """The entry of a subject with this number."""

    @abc.abstractmethod
    def held(self, names: Iterable[str]) -> dict[str, str]:
        """The holds among these names, which may include EVERYBODY and CLOCK notes: name -> reason."""

    @abc.abstractmethod
    def holds(self) -> dict[str, str]:
        """All holds, without CLOCK notes: name -> reason."""

    @abc.abstractmethod
    def undelivered(self) -> Readable:
        """Entries on disk that may never have been sent, by subject and number. Sending them again leaks nothing."""

    @abc.abstractmethod
    def between(self, subject: str, first: int, beyond: int) -> Readable:
        """The entries of a subject with numbers first <= number < beyond."""

    @abc.abstractmethod
    def undelivered_from(self, subjects: Iterable[str]) -> dict[str, int]:
        """For each of these subjects the number of its first entry that is not marked as sent; 0 if none is."""

    @abc.abstractmethod
    def released_at(self, subject: str, measured: float) -> bool:
        """Whether a reading of a subject that was measured at exactly this time was released."""

    @abc.abstractmethod
    def subjects(self) -> list[str]:
        """All subjects, ordered by code points."""

    @abc.abstractmethod
    def counts(self, subject: str) -> Counts:
        """How many entries, releases and sessions there are of a subject."""

    @abc.abstractmethod
    def entries(self, subject: str | None = None) -> Iterator[Entry]:
        """All entries, or those of one subject, by subject and number; streamed, so memory does not grow."""

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
