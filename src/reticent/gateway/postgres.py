"""The ledger in a PostgreSQL database: for several gateways that share subjects.

The key (subject, number) is the guard: of two gateways that want the same place one gets it, and the other is told that
nothing of its entry may leave. Everything lies in a schema of its own, `reticent`. Lost connections are made again.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from reticent.errors import InputError
from reticent.gateway.entry import COLUMNS, REALS, Entry, row_of
from reticent.gateway.ledger import CLOSED, HOLD, Head, Ledger, LedgerTrouble, judged

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
else:
    Connection = Any

T = TypeVar("T")

VERSION = 1
# Any number that no other program is likely to take as advisory lock.
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
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON reticent.entries
    FOR EACH STATEMENT EXECUTE FUNCTION reticent.refuse();
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
# Sorted, so that two gateways wait for each other in the same order.
DELIVERED = """
INSERT INTO delivered SELECT subject, max(number) FROM unnest(%s::text[], %s::bigint[]) AS sent(subject, number)
GROUP BY subject ORDER BY subject COLLATE "C"
ON CONFLICT (subject) DO UPDATE SET number = greatest(delivered.number, excluded.number)
"""


class PostgresLedger(Ledger):
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
        with self._told():
            self._connected()

    def append(self, entries: Sequence[Entry]) -> list[bool]:
        return self._tried(lambda connection: _append(connection, entries))

    def mark_delivered(self, entries: Sequence[Entry]) -> None:
        def mark(connection: Connection) -> None:
            with connection.transaction():
                # If the server fails before this reaches its disk, the entries are sent once more: harmless.
                connection.execute("SET LOCAL synchronous_commit TO off")
                connection.execute(DELIVERED, ([e.subject for e in entries], [e.number for e in entries]))

        self._tried(mark)

    def hold(self, name: str, why: str | None) -> None:
        self._tried(lambda connection: connection.execute(HOLD.replace("?", "%s").encode(), (name, why)))

    def check(self) -> None:
        """The server sees to its disk itself; pg_amcheck looks at it whole."""

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._tried(lambda connection: _asked(connection, query.replace("?", "%s"), *values))

    def _tried(self, work: Callable[[Connection], T]) -> T:
        """Do it; if an old connection turns out to be lost, once more on a new one.

        Twice does no harm: an entry that is there already counts as written.
        """
        if self._closed:
            raise RuntimeError(CLOSED)
        self._on_its_thread()
        with self._told():
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
        """Promise durability, wait for nobody long, and see that there is a ledger that we know."""
        [(fsync,)] = _asked(connection, "SHOW fsync")
        if fsync != "on":
            raise LedgerTrouble(f"The server of {self._where!r} runs with fsync off and may forget. Turn it on.")
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
            raise LedgerTrouble(f"{self._where!r} holds no ledger of reticent. Give another database.")
        versions = [version for (version,) in _asked(connection, "SELECT number FROM reticent.version")]
        if versions != [VERSION]:
            raise LedgerTrouble(
                f"The ledger {self._where!r} is of version {versions}, but this reticent knows version {VERSION} only. "
                "Use the reticent that wrote it."
            )

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What the database complains about, as a sentence."""
        try:
            yield
        except self._psycopg.Error as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            found = [text for states, text in SENTENCES.items() if (error.sqlstate or "").startswith(states)]
            sentence = found[0] if found else "cannot be reached. Look at the server and the way there."
            raise LedgerTrouble(f"The ledger {self._where!r} {sentence} (PostgreSQL: {said})") from error


SENTENCES = {
    ("53100",): "cannot grow: the server's disk is full. Make room.",
    ("55P03", "57014", "40P01"): "is locked: another program holds a transaction open. End it.",
    ("25006",): "cannot be written: the server is read-only, perhaps a standby. Give the address of the primary.",
    ("42501",): "does not let this role in. Grant it what `reticent docs ledger` says.",
    ("28",): "does not let this role in. Look at user, PGPASSFILE or PGPASSWORD, and pg_hba.conf.",
    ("42",): "was not made by this reticent, or was changed. Give another database, or put the newest copy back.",
    ("XX",): "is damaged. Put the newest copy back.",
}


def _options(where: str, library: Any) -> dict[str, Any]:
    """What to connect with. A password in the URL would be seen in lists of processes, shell histories and logs."""
    try:
        said = library.conninfo.conninfo_to_dict(where)
    except library.Error:
        # Its message may hold a part of the URL that is a password.
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
        subjects = sorted({entry.subject for entry in entries})
        heads: dict[str, Head] = {
            name: (number, digest) for name, number, digest in _asked(connection, HEADS, subjects)
        }
        verdicts = judged(entries, heads, lambda *place: _stored_hash(connection, *place))
        written = _written(connection, [e for e, verdict in zip(entries, verdicts, strict=True) if verdict is None])
    places = [(entry.subject, entry.number) for entry in entries]
    return [(place in written) if v is None else v for place, v in zip(places, verdicts, strict=True)]


def _written(connection: Connection, entries: Sequence[Entry]) -> set[tuple[str, int]]:
    """Insert the first entry of each subject, then the second, and so on; returns which got their place."""
    chains: dict[str, list[Entry]] = {}
    # Sorted, so that two gateways wait for each other in the same order.
    for entry in sorted(entries, key=lambda entry: entry.subject):
        chains.setdefault(entry.subject, []).append(entry)
    written: set[tuple[str, int]] = set()
    while chains:
        columns = zip(*(row_of(chain[0]) for chain in chains.values()), strict=True)
        placed = set(_asked(connection, INSERT, *map(list, columns)))
        written |= placed
        # Who was refused is not followed.
        chains = {name: chain[1:] for name, chain in chains.items() if chain[1:] and (name, chain[0].number) in placed}
    return written


def _stored_hash(connection: Connection, subject: str, number: int) -> str | None:
    rows = _asked(connection, "SELECT hash FROM entries WHERE subject = %s AND number = %s", subject, number)
    return rows[0][0] if rows else None


def _set_up(connection: Connection) -> None:
    """Make the schema, unless another gateway does so at the same moment."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SETTING_UP,))
        if not _asked(connection, SCHEMAS):
            connection.execute(SCHEMA.encode())


def _asked(connection: Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    # As bytes: the queries of all ledgers are put together here from constants.
    return connection.execute(query.encode(), values).fetchall()
