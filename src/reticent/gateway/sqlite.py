"""The ledger as one SQLite file: for one gateway.

Written ahead (WAL) and synced to disk with every transaction. One process writes, which holds a lock that the
operating system ends with it; others may read meanwhile. SQLite would go on writing into a file that was deleted or
replaced under it, so before and after every transaction the files must still be those that were opened.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reticent.gateway.entry import COLUMNS, Entry, row_of
from reticent.gateway.ledger import (
    CLOSED,
    HOLD,
    MARK,
    MEND,
    NO_HEAD,
    PROBE,
    Damaged,
    Head,
    Ledger,
    LedgerTrouble,
    judged,
    marks,
)

APPLICATION, VERSION = 0x72746C67, 1
BUSY_SECONDS = 1.0
STAY = """
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END
"""
SCHEMA = f"""
PRAGMA application_id={APPLICATION};
PRAGMA user_version={VERSION};
CREATE TABLE entries (
    subject TEXT NOT NULL, number INTEGER NOT NULL, time REAL NOT NULL, measured REAL NOT NULL,
    session INTEGER NOT NULL, step INTEGER NOT NULL, sensor TEXT NOT NULL, symbol TEXT, chances TEXT,
    belief TEXT NOT NULL, spent_bits REAL NOT NULL, policy TEXT NOT NULL, before TEXT NOT NULL, hash TEXT NOT NULL,
    UNIQUE (subject, number)
);
{STAY};
CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TABLE delivered (subject TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE held (name TEXT PRIMARY KEY, why TEXT) WITHOUT ROWID;
"""
INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_log = logging.getLogger(__name__)


class SqliteLedger(Ledger):
    """A ledger in one file, with its -wal, -shm and .lock beside it."""

    def __init__(self, path: str | Path, read_only: bool = False, beside: bool = False) -> None:
        self._path = Path(path).absolute()
        self._lock: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._identities: dict[Path, tuple[int, int]] = {}
        try:
            with self._told():
                if read_only or beside:
                    self._open_beside(read_only)
                else:
                    self._open()
        except BaseException:
            self.close()
            raise

    def append(self, entries: Sequence[Entry]) -> list[bool]:
        with self._transaction("FULL") as connection:
            heads = {subject: _head(connection, subject) for subject in {entry.subject for entry in entries}}
            verdicts = judged(entries, heads, lambda *place: _stored_hash(connection, *place))
            rows = [row_of(entry) for entry, verdict in zip(entries, verdicts, strict=True) if verdict is None]
            connection.executemany(INSERT, rows)
        return [verdict is not False for verdict in verdicts]

    def mark_delivered(self, entries: Sequence[Entry]) -> None:
        # If the machine fails before this reaches the disk, the entries are sent once more, which is harmless.
        with self._transaction("NORMAL") as connection:
            connection.executemany(MARK, marks(entries))

    def mend(self, entries: Sequence[Entry]) -> None:
        columns = ", ".join(f"{name} = ?" for name in COLUMNS)
        with self._transaction("FULL") as connection:
            connection.execute("DROP TRIGGER IF EXISTS entries_stay")
            for entry in entries:
                row = row_of(entry)
                # What is left of it has its place or, where that was damaged, its hash.
                for where, values in (("subject = ? AND number = ?", row[:2]), ("hash = ?", row[-1:])):
                    if connection.execute(f"UPDATE entries SET {columns} WHERE {where}", (*row, *values)).rowcount:
                        break
                else:
                    connection.execute(INSERT, row)
            connection.execute(STAY)

    def hold(self, name: str, why: str | None) -> None:
        with self._transaction("FULL") as connection:
            connection.execute(HOLD, (name, why))

    def probe(self) -> None:
        with self._transaction("FULL") as connection:
            connection.execute(PROBE)

    def check(self) -> None:
        """Does the index lead to all entries? A scratch on it could hide some."""
        [(found,)] = self._rows("PRAGMA integrity_check(1)")
        if found != "ok":
            raise LedgerTrouble(f"The ledger {str(self._path)!r} is damaged: {found}. Put the newest copy back.")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        self._on_its_thread()
        with self._told():
            return self._same_files().execute(query, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self, synchronous: str) -> Iterator[sqlite3.Connection]:
        """Written whole and synced on leaving, or not at all."""
        self._on_its_thread()
        with self._told():
            connection = self._same_files()
            connection.rollback()
            connection.execute(f"PRAGMA synchronous={synchronous}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                # After the commit there is nothing to roll back.
                connection.rollback()
            self._same_files()

    def _open_beside(self, read_only: bool) -> None:
        """Without the lock of the one gateway, which may run: to read it, or to lift holds and mend entries."""
        self._check_kind()
        self._connection = self._for_reading() if read_only else _connect(self._path, "mode=rw")
        self._check_version()

    def _open(self) -> None:
        lock = self._take_lock()
        if not os.path.lexists(self._path):
            self._create(lock)
        self._check_kind()
        self._check_one_name()
        opened = {self._beside(".lock"): _identity(os.fstat(lock)), self._path: _identity(os.lstat(self._path))}
        self._connection = _connect(self._path, "mode=rw")
        self._check_version()
        os.pwrite(lock, b"There is a ledger beside this file.\n", 0)
        [mode] = self._connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise LedgerTrouble(f"The ledger {str(self._path)!r} lies on a disk that is shared. It needs a local one.")
        # The first look into it makes the files beside it.
        self._connection.executescript(
            "PRAGMA fullfsync=ON; PRAGMA journal_size_limit=67108864; SELECT count(*) FROM delivered WHERE subject = ''"
        )
        made = {path: _identity(os.lstat(path)) for path in map(self._beside, ("-wal", "-shm"))}
        self._identities = opened | made
        self._same_files()

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name + ending)

    def _take_lock(self) -> int:
        """Hold the lock of the one writer. Its file stays: removing it would let two hold a lock each."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._lock = os.open(self._beside(".lock"), flags, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LedgerTrouble(
                f"Another gateway writes the ledger {str(self._path)!r}. Stop it, or give this one a ledger of its own."
            ) from error
        return self._lock

    def _create(self, lock: int) -> None:
        """Make the file under another name first, so that a half-made one is never taken for a ledger."""
        left = [path for path in map(self._beside, ("-wal", "-shm")) if os.path.lexists(path)]
        if os.fstat(lock).st_size > 0 or left:
            raise LedgerTrouble(
                f"There was a ledger {str(self._path)!r}, and it is gone. A new one would forget what was spent: put "
                f"it back. To start anew all the same, remove what is left: {self._path.name}.lock, -wal and -shm."
            )
        neighbour = self._beside(".new")
        for path in (neighbour, *map(self._beside, (".new-journal", ".new-wal", ".new-shm"))):
            path.unlink(missing_ok=True)
        os.close(os.open(neighbour, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with contextlib.closing(_connect(neighbour, "mode=rw")) as connection:
            connection.executescript(f"BEGIN; {SCHEMA} COMMIT; PRAGMA journal_mode=WAL")
        os.rename(neighbour, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        _log.warning("A new ledger starts at %s: every subject in it starts from the prior.", self._path)

    def _check_kind(self) -> None:
        status = os.lstat(self._path)
        if not stat.S_ISREG(status.st_mode):
            raise LedgerTrouble(
                f"{str(self._path)!r} is no plain file (a link, a folder or a device): a ledger must be one, so that "
                "it cannot be exchanged unseen. Give the path of the file itself."
            )
        if status.st_size == 0:
            raise LedgerTrouble(f"{str(self._path)!r} is empty, so it is no ledger, or no longer one. Put a copy back.")

    def _check_one_name(self) -> None:
        """Under another name it would have another lock, and another gateway could write it."""
        if os.lstat(self._path).st_nlink > 1:
            raise LedgerTrouble(
                f"The ledger {str(self._path)!r} has another name, too (a hard link), under which it could be written "
                "unseen. Remove that one, or give this gateway a copy."
            )

    def _for_reading(self) -> sqlite3.Connection:
        """A connection that cannot write; to the file alone where nothing can be made beside it."""
        connection = _connect(self._path, "mode=ro")
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            wal = self._beside("-wal")
            if not _name(error).startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")) or (
                wal.exists() and wal.stat().st_size > 0
            ):
                raise
            connection = _connect(self._path, "mode=ro&immutable=1")
        return connection

    def _check_version(self) -> None:
        assert self._connection is not None
        [application], [version] = (
            self._connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != APPLICATION:
            raise LedgerTrouble(f"{str(self._path)!r} is a database, but no ledger of reticent. Give another path.")
        if version != VERSION:
            raise LedgerTrouble(
                f"The ledger {str(self._path)!r} is of version {version}, but this reticent knows version {VERSION} "
                "only. Use the reticent that wrote it."
            )

    def _same_files(self) -> sqlite3.Connection:
        """The connection, if it still leads to the files that have these names."""
        if self._connection is None:
            raise RuntimeError(CLOSED)
        for path, identity in self._identities.items():
            try:
                same = _identity(os.lstat(path)) == identity
            except FileNotFoundError:
                same = False
            if not same:
                raise LedgerTrouble(
                    f"{str(path)!r} was removed or replaced while the gateway runs. Put the very file back, or put "
                    "the newest copy there and start the gateway again."
                )
        return self._connection

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What the database or the system complains about, as a sentence."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.DatabaseError as error:
            raise LedgerTrouble(self._sentence(error)) from error
        except OSError as error:
            raise LedgerTrouble(f"Cannot open the ledger {str(self._path)!r}: {error.strerror or error}.") from error

    def _sentence(self, error: sqlite3.Error) -> str:
        # Text that cannot be decoded has no name of its own.
        name, where = _name(error) or "SQLITE_CORRUPT", f"The ledger {str(self._path)!r}"
        for beginnings, sentence in SENTENCES.items():
            if name.startswith(beginnings):
                return f"{where} {sentence} (SQLite: {error})"
        return f"{where} cannot be used (SQLite: {error})."


SENTENCES = {
    ("SQLITE_FULL",): "cannot grow: the disk is full. Make room.",
    ("SQLITE_BUSY", "SQLITE_LOCKED"): "is locked by another program. Close what has it open for writing.",
    ("SQLITE_READONLY", "SQLITE_PERM"): "cannot be written: the file or its disk is read-only. Allow writing.",
    ("SQLITE_CORRUPT", "SQLITE_NOTADB"): "is damaged or no ledger. Put the newest copy back.",
    ("SQLITE_IOERR",): "cannot be read or written: the disk failed, is gone or allows no larger file. Mend that.",
    ("SQLITE_CANTOPEN",): "cannot be opened. Look at the rights of the file and its folder, and at the disk's room.",
}


def _connect(path: Path, how: str) -> sqlite3.Connection:
    where = f"file:{quote(str(path))}?{how}"
    # The ledger sees to its thread itself, and begins its transactions itself.
    connection = sqlite3.connect(where, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    # Text that is none damages the entry that it is in, and not every query that meets it.
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    return connection


def _head(connection: sqlite3.Connection, subject: str) -> Head:
    query = "SELECT number, hash FROM entries WHERE subject = ? ORDER BY number DESC LIMIT 1"
    number, digest = connection.execute(query, (subject,)).fetchone() or NO_HEAD
    if type(number) is not int or type(digest) is not str:
        raise Damaged(subject, f"The newest entry of subject {subject!r} has lost its number or hash. {MEND}")
    return number, digest


def _stored_hash(connection: sqlite3.Connection, subject: str, number: int) -> str | None:
    row = connection.execute("SELECT hash FROM entries WHERE subject = ? AND number = ?", (subject, number)).fetchone()
    return row and row[0]


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")
