"""Ledgers to test on: a file, or a database of a real PostgreSQL server that the tests start themselves."""

import contextlib
import dataclasses
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from reticent.gateway.entry import Entry
from reticent.gateway.ledger import Ledger
from reticent.gateway.opening import open_ledger

POLICY = "5f" * 32
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))


def entry_after(last: Entry | None, subject: str = "ada", **changed) -> Entry:
    """The next release of a subject."""
    fields = {
        "subject": subject,
        "number": 0 if last is None else last.number + 1,
        "time": 1.7e9 if last is None else last.time + 1.5,
        "measured": 1.7e9 - 0.5 if last is None else last.measured + 1.5,
        "session": 0 if last is None else last.session + (last.symbol is None),
        "step": 0 if last is None or last.symbol is None else last.step + 1,
        "sensor": "gyroscope",
        "symbol": "code 3",
        "chances": (0.0, 0.25),
        "belief": ((0.1, 0.2), (0.3, 0.4)),
        "spent_bits": 0.1 if last is None else last.spent_bits + 0.1,
        "policy": POLICY,
        "before": "" if last is None else last.hash,
    }
    return Entry(**fields | changed)


def chain(subject: str, length: int, last: Entry | None = None) -> list[Entry]:
    """Releases of a subject, every fifth entry a stop."""
    entries: list[Entry] = []
    for _ in range(length):
        before, last = last, entry_after(last, subject)
        if before is not None and last.number % 5 == 4:
            stop = {"measured": before.measured, "sensor": "stop", "symbol": None, "chances": None}
            last = Entry(**fields_of(last) | stop)
        entries.append(last)
    return entries


def fields_of(entry: Entry) -> dict:
    return {each.name: getattr(entry, each.name) for each in dataclasses.fields(entry)}


def with_source() -> dict[str, str]:
    """An environment in which programs that tests start find the package and the tests."""
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}


@dataclass(frozen=True)
class FilePlace:
    """A ledger in a file."""

    where: str
    mark = "?"

    def open(self, read_only: bool = False) -> Ledger:
        return open_ledger(self.where, read_only)

    def raw(self, *statements: str, values: tuple = ()) -> None:
        """What somebody could do to it who knows SQL."""
        with contextlib.closing(sqlite3.connect(self.where)) as connection:
            for statement in statements:
                connection.execute(statement, values)
            connection.commit()

    def unguarded(self, statement: str, values: tuple = ()) -> None:
        """The same by somebody who removes the seat belt first."""
        self.raw("DROP TRIGGER IF EXISTS entries_stay", "DROP TRIGGER IF EXISTS entries_remain")
        self.raw(statement, values=values)

    def new_version(self, version: int) -> None:
        self.raw(f"PRAGMA user_version={version}")


@dataclass(frozen=True)
class DatabasePlace:
    """A ledger in PostgreSQL."""

    where: str
    mark = "%s"

    def open(self, read_only: bool = False) -> Ledger:
        return open_ledger(self.where, read_only)

    def raw(self, *statements: str, values: tuple = ()) -> None:
        import psycopg

        with psycopg.connect(self.where, options="-c search_path=reticent") as connection:
            for statement in statements:
                connection.execute(statement.encode(), values)

    def unguarded(self, statement: str, values: tuple = ()) -> None:
        self.raw("DROP TRIGGER IF EXISTS entries_stay ON entries")
        self.raw(statement, values=values)

    def new_version(self, version: int) -> None:
        self.raw(f"UPDATE version SET number = {version}")


class PostgresServer:
    """A server in a folder of its own, on a socket there and on a free port of 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._own = _as_user("postgres") if os.geteuid() == 0 else []
        if self._own:
            shutil.chown(folder, "postgres")
        words = [
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--username=ledger",
            "--no-sync",
            "--locale=C.UTF-8",
        ]
        self._run("initdb", "-D", str(folder / "data"), *words)
        self.start()

    def start(self) -> None:
        settings = {
            "port": self.port,
            "unix_socket_directories": self.folder,
            "listen_addresses": "127.0.0.1",
            "shared_buffers": "8MB",
            "max_connections": 20,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [*self._own, str(PROGRAMS[-1] / "postgres"), "-D", str(self.folder / "data"), *words]
        log = (self.folder / "log").open("ab")
        with log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        self.wait(lambda: self.ask("SELECT 1"))

    def kill(self) -> None:
        """End the server and all it has started as a failing machine would."""
        children = Path(f"/proc/{self._server.pid}/task/{self._server.pid}/children").read_text().split()
        for process in (self._server.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._server.wait()
        self.wait(lambda: not any(Path(f"/proc/{child}").exists() for child in children))

    def stop(self) -> None:
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait()

    def address(self, user: str = "ledger", host: str | None = None) -> str:
        return f"postgresql://{user}@/postgres?host={host or self.folder}&port={self.port}"

    def place(self) -> DatabasePlace:
        """A database without a ledger; the one before it is gone."""
        assert self.ask("DROP SCHEMA IF EXISTS reticent CASCADE")
        return DatabasePlace(self.address())

    def ask(self, statement: str) -> bool:
        """Whether the server could be asked."""
        import psycopg

        try:
            with psycopg.connect(self.address(), autocommit=True) as connection:
                connection.execute(statement.encode())
        except psycopg.OperationalError:
            return False
        return True

    def answer(self, question: str) -> str:
        import psycopg

        with psycopg.connect(self.address()) as connection:
            [(answer,)] = connection.execute(question.encode()).fetchall()
        return answer

    def _run(self, program: str, *words: str) -> None:
        command = [*self._own, str(PROGRAMS[-1] / program), *words]
        subprocess.run(command, check=True, capture_output=True, cwd="/")

    @staticmethod
    def wait(until) -> None:
        for _ in range(600):
            if until():
                return
            time.sleep(0.05)
        raise TimeoutError("The PostgreSQL server did not do what it should within 30 seconds.")


@contextlib.contextmanager
def postgres_server():
    """A running server; the test is skipped where none is installed."""
    import pytest

    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'reticent[postgres]'")
    if not PROGRAMS:
        pytest.skip("no PostgreSQL server is installed in /usr/lib/postgresql")
    folder = Path(tempfile.mkdtemp(prefix="reticent-postgres-"))
    server = None
    try:
        server = PostgresServer(folder)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder)


def _as_user(name: str) -> list[str]:
    """PostgreSQL refuses to run as root."""
    user = pwd.getpwnam(name)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
