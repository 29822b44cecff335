"""The ledger in a PostgreSQL database: for several gateways that share subjects.

The primary key (subject, number) settles conflicts: of two gateways that write the same number of a subject one
succeeds, and the other is told that nothing of its entry may leave. All tables are in the schema `reticent`. Lost
connections are reopened.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from reticent.errors import InputError
from reticent.gateway.chain import judged
from reticent.gateway.entry import COLUMNS, REALS, Entry, row_of
from reticent.gateway.ledger import Head, LedgerTrouble
from reticent.gateway.sql_ledger import CLOSED, HOLD, MARK, PROBE, SqlLedger, marks

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
else:
    Connection = Any

T = TypeVar("T")

VERSION = 1
# Advisory lock under which the schema is created: a number that no other program is likely to use.
SETTING_UP = 0x72746C67
SECONDS = 5
SETTINGS = {
    "search_path": "reticent",
    "default_transaction_isolation": "read committed",
    "lock_timeout": f"{SECONDS}s",
    "statement_timeout": f"{2 * SECONDS}s",
}
TYPES = dict.fromkeys(COLUMNS, "text") | {
    **dict.fromkeys(("number", "session", "step"), "bigint"),
    **dict.fromkeys(REALS, "double precision"),
}
# Ordered by code points, as in SQLite. `belief` and `chances` stay text: a JSON type would not keep every digit.
STAY = """
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON reticent.entries
    FOR EACH STATEMENT EXECUTE FUNCTION reticent.refuse()
"""
SCHEMA = f"""
CREATE SCHEMA reticent;
CREATE TABLE reticent.version (number integer NOT NULL);
INSERT INTO reticent.version VALUES ({VERSION});
CREATE TABLE reticent.entries (
    subject text COLLATE "C" NOT NULL, number bigint NOT NULL, time double precision NOT NULL,
    measured double precision NOT NULL, session bigint NOT NULL, step bigint NOT NULL, sensor text NOT NULL,
    symbol text, chances text, belief text NOT NULL, spent_bits double precision NOT NULL, policy text NOT NULL,
    before text NOT NULL, hash text NOT NULL, PRIMARY KEY (subject, number)
);
CREATE FUNCTION reticent.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'entries are never changed or removed'; END $$;
{STAY};
CREATE TABLE reticent.delivered (subject text COLLATE "C" PRIMARY KEY, number bigint NOT NULL);
CREATE TABLE reticent.held (name text COLLATE "C" PRIMARY KEY, why text);
"""
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname = 'reticent'"
TABLES = """
SELECT tablename FROM pg_tables
WHERE schemaname = 'reticent' AND tablename IN ('version', 'entries', 'delivered', 'held')
"""
HEADS = """
SELECT asked.subject, newest.number, newest.hash FROM unnest(%s::text[]) AS asked(subject), LATERAL (
    SELECT number, hash FROM entries WHERE entries.subject = asked.subject ORDER BY number DESC LIMIT 1
) AS newest
"""
INSERT = f"""
INSERT INTO entries ({", ".join(COLUMNS)})
SELECT * FROM unnest({", ".join(f"%s::{TYPES[name]}[]" for name in COLUMNS)})
ON CONFLICT DO NOTHING RETURNING subject, number
"""
SET = ", ".join(f"{name} = %s" for name in COLUMNS)


class PostgresLedger(SqlLedger):
    """A ledger that several gateways share."""

    shared = True

    def __init__(self, where: str, read_only: bool = False) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise InputError("A ledger in PostgreSQL needs psycopg: pip install 'reticent[postgres]'.") from error
        self._psycopg = psycopg
        self._where = where
        self._options = _options(where, psycopg)
        self._read_only = read_only
        self._connection: Connection | None = None
        self._closed = False
        with self._explained():
            self._connected()

    def append(self, entries: Sequence[Entry]) -> list[bool]:
        return self._tried(lambda connection: _append(connection, entries))

    def mark_delivered(self, entries: Sequence[Entry]) -> None:
        def mark(connection: Connection) -> None:
            with connection.transaction():
                # If the server fails before this reaches its disk, the entries are sent once more: harmless.
                connection.execute("SET LOCAL synchronous_commit TO off")
                with connection.cursor() as cursor:
                    cursor.executemany(MARK.replace("?", "%s").encode(), marks(entries))

        self._tried(mark)

    def mend(self, entries: Sequence[Entry]) -> None:
        def mend(connection: Connection) -> None:
            with connection.transaction():
                connection.execute("DROP TRIGGER IF EXISTS entries_stay ON entries")
                for entry in entries:
                    _mend(connection, entry)
                connection.execute(STAY)

        self._tried(mend)

    def heads(self, subjects: Iterable[str]) -> dict[str, Head]:
        return self._tried(lambda connection: _heads(connection, subjects))

    def hold(self, name: str, why: str | None) -> None:
        self._tried(lambda connection: connection.execute(HOLD.replace("?", "%s").encode(), (name, why)))

    def probe(self) -> None:
        self._tried(lambda connection: connection.execute(PROBE))

    def check(self) -> None:
        """Nothing: the server checks its own pages, and pg_amcheck its indexes."""

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._tried(lambda connection: _asked(connection, query.replace("?", "%s"), *values))

    def _tried(self, work: Callable[[Connection], T]) -> T:
        """Do it; if an old connection turns out to be lost, retry once on a new one.

        Retrying is safe: an entry that is stored already counts as written.
        """
        if self._closed:
            raise RuntimeError(CLOSED)
        self._check_thread()
        with self._explained():
            old = self._connection
            try:
                return work(self._connected())
            except self._psycopg.Error:
                if old is None or not old.closed:
                    raise
            return work(self._connected())

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            connection = self._psycopg.connect(**self._options, autocommit=True)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: Connection) -> None:
        """Require durable commits, set timeouts, create the schema if there is none, and check its version."""
        [(fsync,)] = _asked(connection, "SHOW fsync")
        if fsync != "on":
            raise LedgerTrouble(f"The server of {self._where!r} runs with fsync off and may lose commits. Turn it on.")
        [(commit,)] = _asked(connection, "SHOW synchronous_commit")
        settings = SETTINGS | {"default_transaction_read_only": "on" if self._read_only else "off"}
        settings |= {"synchronous_commit": "on"} if commit in ("off", "local") else {}
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        if not self._read_only and not _asked(connection, SCHEMAS):
            _set_up(connection)
        self._check_version(connection)

    def _check_version(self, connection: Connection) -> None:
        if len(_asked(connection, TABLES)) != 4:
            raise LedgerTrouble(f"{self._where!r} is a database without a ledger of reticent. Give another database.")
        versions = [version for (version,) in _asked(connection, "SELECT number FROM reticent.version")]
        if versions != [VERSION]:
            raise LedgerTrouble(
                f"The ledger {self._where!r} has version {versions}, but this version of reticent supports version "
                f"{VERSION} only. Use the version of reticent that wrote it."
            )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise errors of the database as `LedgerTrouble`."""
        try:
            yield
        except self._psycopg.Error as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            found = [text for states, text in SENTENCES.items() if (error.sqlstate or "").startswith(states)]
            sentence = found[0] if found else "cannot be reached. Check the server and the network."
            raise LedgerTrouble(f"The ledger {self._where!r} {sentence} (PostgreSQL: {said})") from error


SENTENCES = {
    ("53100",): "cannot grow: the server's disk is full. Make room.",
    ("55P03", "57014", "40P01"): "is locked: another program keeps a transaction open. End it.",
    ("25006",): "cannot be written: the server is read-only, perhaps a standby. Give the address of the primary.",
    ("42501",): "denies this role access. Grant it the rights listed in `reticent docs ledger`.",
    ("28",): "denies this role access. Check user, PGPASSFILE or PGPASSWORD, and pg_hba.conf.",
    ("42",): "has tables that reticent did not create, or that changed. Give another database, or restore a copy.",
    ("XX",): "is damaged. Restore the newest copy.",
}


def _options(where: str, library: Any) -> dict[str, Any]:
    """Connection options. A password in the URL is refused: process lists, shell histories and logs would show it."""
    try:
        said = library.conninfo.conninfo_to_dict(where)
    except library.Error:
        # The library's message may quote a password from the URL.
        raise InputError("The URL of the ledger cannot be read: write postgresql://user@host:port/database.") from None
    if "password" in said or "sslpassword" in said:
        raise InputError(
            "The URL of the ledger holds a password, which others can see on the command line. Leave it out, and name "
            "a password file in PGPASSFILE, or set PGPASSWORD, or use a service file."
        )
    quickly = {"connect_timeout": SECONDS, "keepalives_idle": SECONDS, "tcp_user_timeout": 2000 * SECONDS}
    return {**quickly, "application_name": "reticent", **said}


def _append(connection: Connection, entries: Sequence[Entry]) -> list[bool]:
    with connection.transaction():
        heads = _heads(connection, {entry.subject for entry in entries})
        verdicts = judged(entries, heads, lambda *key: _stored_hash(connection, *key))
        written = _written(connection, [e for e, verdict in zip(entries, verdicts, strict=True) if verdict is None])
    keys = [(entry.subject, entry.number) for entry in entries]
    return [(key in written) if verdict is None else verdict for key, verdict in zip(keys, verdicts, strict=True)]


def _heads(connection: Connection, subjects: Iterable[str]) -> dict[str, Head]:
    return {name: Head(number, digest) for name, number, digest in _asked(connection, HEADS, sorted(subjects))}


def _written(connection: Connection, entries: Sequence[Entry]) -> set[tuple[str, int]]:
    """Insert the first entry of each subject, then the second, and so on; returns the keys that were inserted."""
    chains: dict[str, list[Entry]] = {}
    # Sorted: gateways that take row locks in one order cannot deadlock.
    for entry in sorted(entries, key=lambda entry: entry.subject):
        chains.setdefault(entry.subject, []).append(entry)
    written: set[tuple[str, int]] = set()
    while chains:
        columns = zip(*(row_of(chain[0]) for chain in chains.values()), strict=True)
        inserted = set(_asked(connection, INSERT, *map(list, columns)))
        written |= inserted
        # After a refused entry nothing of its subject is written.
        going_on = {name: chain for name, chain in chains.items() if (name, chain[0].number) in inserted}
        chains = {name: chain[1:] for name, chain in going_on.items() if chain[1:]}
    return written


def _stored_hash(connection: Connection, subject: str, number: int) -> str | None:
    rows = _asked(connection, "SELECT hash FROM entries WHERE subject = %s AND number = %s", subject, number)
    return rows[0][0] if rows else None


def _mend(connection: Connection, entry: Entry) -> None:
    """Overwrite the row with its key or, if that is damaged, with its hash; insert it if there is neither."""
    row = row_of(entry)
    for where, values in (("subject = %s AND number = %s", row[:2]), ("hash = %s", row[-1:])):
        if connection.execute(f"UPDATE entries SET {SET} WHERE {where}".encode(), (*row, *values)).rowcount:
            return
    connection.execute(INSERT.encode(), [[value] for value in row])


def _set_up(connection: Connection) -> None:
    """Create the schema, unless another gateway does so at the same time."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SETTING_UP,))
        if not _asked(connection, SCHEMAS):
            connection.execute(SCHEMA.encode())


def _asked(connection: Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    # As bytes: psycopg's types accept only literal strings, and these queries are composed of constants.
    return connection.execute(query.encode(), values).fetchall()
