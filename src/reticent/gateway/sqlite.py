"""The ledger as one SQLite file: for one gateway.

Every transaction is written to the write-ahead log (WAL) and synced to disk. One process writes and holds a file lock,
which the operating system releases with the process; others may read meanwhile. SQLite would go on writing into a file
that was deleted or replaced under it, so before and after every transaction the paths must still lead to the files that
were opened.
"""

import contextlib
import fcntl
import json
import logging
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reticent.gateway.chain import judged
from reticent.gateway.entry import COLUMNS, Entry, row_of
from reticent.gateway.ledger import MEND, Damaged, Head, LedgerTrouble
from reticent.gateway.sql_ledger import CLOSED, HOLD, MARK, PROBE, SqlLedger, marks

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


class SqliteLedger(SqlLedger):
    """A ledger in one file, with its -wal, -shm and .lock beside it.

    `worker`: another process holds the lock, and has given this one subjects of its own.
    """

    def __init__(self, path: str | Path, read_only: bool = False, beside: bool = False, worker: bool = False) -> None:
        self._path = Path(path).absolute()
        self._lock: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._identities: dict[Path, tuple[int, int]] = {}
        try:
            with self._explained():
                if read_only or beside:
                    self._open_beside(read_only)
                elif worker:
                    self._begin({})
                else:
                    self._open()
        except BaseException:
            self.close()
            raise

    def append(self, entries: Sequence[Entry]) -> list[bool]:
        with self._transaction("FULL") as connection:
            heads = _heads(connection, {entry.subject for entry in entries})
            verdicts = judged(entries, heads, lambda *key: _stored_hash(connection, *key))
            rows = [row_of(entry) for entry, verdict in zip(entries, verdicts, strict=True) if verdict is None]
            connection.executemany(INSERT, rows)
        return [verdict is not False for verdict in verdicts]

    def heads(self, subjects: Iterable[str]) -> dict[str, Head]:
        self._check_thread()
        with self._explained():
            return _heads(self._same_files(), subjects)

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
                # The damaged row is found by its key or, where that is damaged, by its hash; else it is gone.
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
        """SQLite's integrity check: a damaged index could hide entries."""
        [(found,)] = self._rows("PRAGMA integrity_check(1)")
        if found != "ok":
            raise LedgerTrouble(f"The ledger {str(self._path)!r} is damaged: {found}. Restore the newest copy.")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        self._check_thread()
        with self._explained():
            return self._same_files().execute(query, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self, synchronous: str) -> Iterator[sqlite3.Connection]:
        """A transaction that is committed and synced on exit, or rolled back."""
        self._check_thread()
        with self._explained():
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
        """Without the writer's lock, which a gateway may hold: to read, or to lift holds and repair entries."""
        self._check_kind()
        self._connection = connection = self._for_reading() if read_only else _connect(self._path, "mode=rw")
        self._check_version(connection)

    def _open(self) -> None:
        lock = self._take_lock()
        if not os.path.lexists(self._path):
            self._create(lock)
        self._begin({self._beside(".lock"): _identity(os.fstat(lock))})
        os.pwrite(lock, b"There is a ledger beside this file.\n", 0)

    def _begin(self, opened: dict[Path, tuple[int, int]]) -> None:
        """Connect to the file, and remember which files these are."""
        self._check_kind()
        self._check_one_name()
        opened[self._path] = _identity(os.lstat(self._path))
        self._connection = connection = _connect(self._path, "mode=rw")
        self._check_version(connection)
        [mode] = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise LedgerTrouble(
                f"The ledger {str(self._path)!r} is on a network disk, where SQLite's WAL fails. Use a local disk."
            )
        # The first query creates the -wal and -shm files.
        connection.executescript(
            "PRAGMA fullfsync=ON; PRAGMA journal_size_limit=67108864; SELECT count(*) FROM delivered WHERE subject = ''"
        )
        created = {path: _identity(os.lstat(path)) for path in map(self._beside, ("-wal", "-shm"))}
        self._identities = opened | created
        self._same_files()

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name + ending)

    def _take_lock(self) -> int:
        """Take the writer's lock. The lock file is never removed: two processes could then lock one each."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._lock = os.open(self._beside(".lock"), flags, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LedgerTrouble(
                f"Another gateway is writing the ledger {str(self._path)!r}. Stop it, or give this one its own ledger."
            ) from error
        return self._lock

    def _create(self, lock: int) -> None:
        """The file is written to a temporary file, then renamed: a partial one is never taken for a ledger."""
        left = [path for path in map(self._beside, ("-wal", "-shm")) if os.path.lexists(path)]
        if os.fstat(lock).st_size > 0 or left:
            raise LedgerTrouble(
                f"There was a ledger {str(self._path)!r}, and it is gone. A new one would forget what was spent: "
                f"restore it. To start anew all the same, remove what is left: {self._path.name}.lock, -wal and -shm."
            )
        temporary = self._beside(".new")
        for path in (temporary, *map(self._beside, (".new-journal", ".new-wal", ".new-shm"))):
            path.unlink(missing_ok=True)
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with contextlib.closing(_connect(temporary, "mode=rw")) as connection:
            connection.executescript(f"BEGIN; {SCHEMA} COMMIT; PRAGMA journal_mode=WAL")
        os.rename(temporary, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        _log.warning("A new ledger starts at %s: every subject in it starts from the prior.", self._path)

    def _check_kind(self) -> None:
        status = os.lstat(self._path)
        if not stat.S_ISREG(status.st_mode):
            raise LedgerTrouble(
                f"{str(self._path)!r} is not a regular file but a link, folder or device: a ledger must be a regular "
                "file, so that it cannot be replaced unnoticed. Give the path of the file itself."
            )
        if status.st_size == 0:
            raise LedgerTrouble(
                f"{str(self._path)!r} is empty, so it is not a ledger, or no longer one. Restore a copy."
            )

    def _check_one_name(self) -> None:
        """Refuse hard links: under another name the file has another lock, so another gateway could write it."""
        if os.lstat(self._path).st_nlink > 1:
            raise LedgerTrouble(
                f"The ledger {str(self._path)!r} has another name, too (a hard link), under which it could be written "
                "unnoticed. Remove that link, or give this gateway a copy."
            )

    def _for_reading(self) -> sqlite3.Connection:
        """A read-only connection; to an immutable file where no -wal and -shm can be created beside it."""
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

    def _check_version(self, connection: sqlite3.Connection) -> None:
        [application], [version] = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != APPLICATION:
            raise LedgerTrouble(
                f"{str(self._path)!r} is an SQLite database, but not a ledger of reticent. Give another path."
            )
        if version != VERSION:
            raise LedgerTrouble(
                f"The ledger {str(self._path)!r} has version {version}, but this version of reticent supports version "
                f"{VERSION} only. Use the version of reticent that wrote it."
            )

    def _same_files(self) -> sqlite3.Connection:
        """The connection; raises unless its paths still lead to the files that were opened."""
        if self._connection is None:
            raise RuntimeError(CLOSED)
        for path, identity in self._identities.items():
            try:
                same = _identity(os.lstat(path)) == identity
            except FileNotFoundError:
                same = False
            if not same:
                raise LedgerTrouble(
                    f"{str(path)!r} was removed or replaced while the gateway runs. Move the original file back, or "
                    "restore the newest copy and restart the gateway."
                )
        return self._connection

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise errors of the database and the operating system as `LedgerTrouble`."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.DatabaseError as error:
            raise LedgerTrouble(self._sentence(error)) from error
        except OSError as error:
            raise LedgerTrouble(f"Cannot open the ledger {str(self._path)!r}: {error.strerror or error}.") from error

    def _sentence(self, error: sqlite3.Error) -> str:
        # Python's own error on undecodable text has no SQLite name.
        name, where = _name(error) or "SQLITE_CORRUPT", f"The ledger {str(self._path)!r}"
        for beginnings, sentence in SENTENCES.items():
            if name.startswith(beginnings):
                return f"{where} {sentence} (SQLite: {error})"
        return f"{where} cannot be used (SQLite: {error})."


SENTENCES = {
    ("SQLITE_FULL",): "cannot grow: the disk is full. Make room.",
    ("SQLITE_BUSY", "SQLITE_LOCKED"): "is locked by another program. Close what has it open for writing.",
    ("SQLITE_READONLY", "SQLITE_PERM"): "cannot be written: the file or its disk is read-only. Allow writing.",
    ("SQLITE_CORRUPT", "SQLITE_NOTADB"): "is damaged, or not a ledger. Restore the newest copy.",
    ("SQLITE_IOERR",): "cannot be read or written: the disk failed, is gone or allows no larger file. Check the disk.",
    (
        "SQLITE_CANTOPEN",
    ): "cannot be opened. Check the permissions of the file and its folder, and the disk's free space.",
}


def _connect(path: Path, how: str) -> sqlite3.Connection:
    where = f"file:{quote(str(path))}?{how}"
    # SqlLedger checks the thread, and _transaction begins transactions.
    connection = sqlite3.connect(where, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    # Undecodable text makes its own entry damaged, instead of failing every query that returns it.
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    return connection


HEADS = """
SELECT entries.subject, entries.number, entries.hash FROM json_each(?) AS asked JOIN entries ON entries.rowid =
(SELECT rowid FROM entries WHERE subject = asked.value ORDER BY number DESC LIMIT 1)
"""


def _heads(connection: sqlite3.Connection, subjects: Iterable[str]) -> dict[str, Head]:
    """The newest entries of those of these subjects that have one."""
    heads = {}
    for subject, number, digest in connection.execute(HEADS, (json.dumps(list(subjects)),)):
        if type(number) is not int or type(digest) is not str:
            raise Damaged(subject, f"The newest entry of subject {subject!r} has lost its number or hash. {MEND}")
        heads[subject] = Head(number, digest)
    return heads


def _stored_hash(connection: sqlite3.Connection, subject: str, number: int) -> str | None:
    row = connection.execute("SELECT hash FROM entries WHERE subject = ? AND number = ?", (subject, number)).fetchone()
    return row and row[0]


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")
