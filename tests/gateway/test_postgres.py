"""The ledger in PostgreSQL: several gateways on one subject, a server that fails, rights and passwords."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reticent.errors import InputError
from reticent.gateway import postgres as module
from reticent.gateway.ledger import LedgerTrouble
from reticent.gateway.opening import open_ledger
from reticent.gateway.verify import verify
from tests.gateway.places import DatabasePlace, chain, entry_after, with_source

HAMMER = """
import sys
from reticent.gateway.opening import open_ledger
from tests.gateway.places import entry_after

where, name, limit, step = sys.argv[1], sys.argv[2], 60.0, 0.25
with open_ledger(where) as ledger:
    sys.stdin.readline()
    written = refused = 0
    while True:
        # Spend what the ledger says is left, as two entries at once where they fit.
        last = ledger.last("ada")
        spent = 0.0 if last is None else last.spent_bits
        if spent + step > limit:
            break
        batch = [entry_after(last, sensor=name, spent_bits=spent + step)]
        if spent + 2 * step <= limit and written % 2:
            batch.append(entry_after(batch[0], sensor=name, spent_bits=spent + 2 * step))
        kept = ledger.append(batch)
        assert kept in ([True] * len(batch), [False] * len(batch))
        written, refused = written + sum(kept), refused + len(batch) - sum(kept)
print(written, refused)
"""


@pytest.fixture
def place(postgres):
    return postgres.place()


def test_two_gateways_never_spend_twice(place):
    command = [sys.executable, "-c", HAMMER, place.where]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": with_source()}
    hammers = [subprocess.Popen([*command, name], **pipes) for name in ("left", "right")]
    for hammer in hammers:
        assert hammer.stdin is not None
        hammer.stdin.write("now\n")
        hammer.stdin.flush()
    said = [hammer.communicate()[0] for hammer in hammers]
    assert [hammer.returncode for hammer in hammers] == [0, 0]
    written = {name: int(text.split()[0]) for name, text in zip(("left", "right"), said, strict=True)}
    with place.open() as ledger:
        entries = list(ledger.entries("ada"))
        assert verify(ledger).fault is None
    assert [entry.number for entry in entries] == list(range(240))
    assert [entry.spent_bits for entry in entries] == [0.25 * (number + 1) for number in range(240)]
    # Who was told that an entry is written has written it, and nobody else.
    assert {name: sum(entry.sensor == name for entry in entries) for name in written} == written


def test_who_comes_second_waits_and_is_refused(place):
    import psycopg

    first, second = entry_after(None, sensor="left"), entry_after(None, sensor="right")
    follower = entry_after(second, sensor="right")
    with place.open() as ledger, psycopg.connect(place.where, options="-c search_path=reticent") as other:
        values = (*module.row_of(first),)
        other.execute(f"INSERT INTO entries VALUES ({', '.join(['%s'] * len(values))})".encode(), values)
        threading.Timer(0.3, other.commit).start()
        started = time.monotonic()
        # The other's entry cannot be seen yet, but its place is taken as soon as it is committed.
        assert ledger.append([second, follower, *chain("bob", 1)]) == [False, False, True]
        assert time.monotonic() - started > 0.2
        assert list(ledger.entries()) == [first, *chain("bob", 1)]


def test_who_is_kept_waiting_is_told(place, monkeypatch):
    import psycopg

    monkeypatch.setitem(module.SETTINGS, "lock_timeout", "100ms")
    with place.open() as ledger, psycopg.connect(place.where, options="-c search_path=reticent") as other:
        values = (*module.row_of(entry_after(None, sensor="left")),)
        other.execute(f"INSERT INTO entries VALUES ({', '.join(['%s'] * len(values))})".encode(), values)
        with pytest.raises(LedgerTrouble, match="another program keeps a transaction open"):
            ledger.append([*chain("bob", 1), entry_after(None)])
        other.rollback()
        assert ledger.append([*chain("bob", 1), entry_after(None)]) == [True, True]


def test_a_lost_connection_is_made_again(place, postgres):
    with place.open() as ledger:
        ada = chain("ada", 3)
        ledger.append(ada[:1])
        for call in (lambda: ledger.append(ada[1:]) == [True, True], lambda: list(ledger.entries()) == ada):
            postgres.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'reticent'")
            assert call()
        assert ledger.undelivered().entries == ada


def test_a_commit_whose_answer_is_lost(place, monkeypatch):
    """The entries are on disk, but nobody said so: the second try finds them there, and they may leave."""
    with place.open() as ledger:
        ada = chain("ada", 2)
        append, calls = module._append, []

        def cut_off(connection, entries):
            calls.append(append(connection, entries))
            if len(calls) == 1:
                connection.close()
                connection.execute("SELECT 1")
            return calls[-1]

        monkeypatch.setattr(module, "_append", cut_off)
        assert ledger.append(ada) == [True, True]
        assert len(calls) == 2
        assert list(ledger.entries()) == ada


def test_a_server_that_is_killed_and_comes_back(place, postgres):
    with place.open() as ledger:
        last, written = None, []
        killer = threading.Thread(target=postgres.kill)
        while True:
            batch = chain("ada", 2, last)
            try:
                assert ledger.append(batch) == [True, True]
            except LedgerTrouble:
                break
            written, last = [*written, *batch], batch[-1]
            if len(written) == 40:
                killer.start()
        killer.join()
        for call in (lambda: ledger.append(batch), lambda: ledger.last("ada"), lambda: ledger.mark_delivered(batch)):
            with pytest.raises(LedgerTrouble, match="cannot be reached"):
                call()
        with pytest.raises(LedgerTrouble, match="cannot be reached"):
            place.open()
        postgres.start()
        # The last batch may have been on disk already when the answer was lost.
        assert list(ledger.entries()) in (written, [*written, *batch])
        assert ledger.append(batch) == [True, True]
        assert list(ledger.entries()) == [*written, *batch]
        assert verify(ledger).fault is None
    assert len(written) >= 40


def test_durability_is_not_left_to_the_server(place, postgres):
    postgres.ask("ALTER ROLE ledger SET synchronous_commit = off")
    try:
        with place.open() as ledger:
            ledger.append(chain("ada", 1))
            ledger.mark_delivered(chain("ada", 1))
            assert ledger._rows("SHOW synchronous_commit") == [("on",)]
        postgres.ask("ALTER ROLE ledger SET synchronous_commit = remote_apply")
        with place.open() as ledger:
            assert ledger._rows("SHOW synchronous_commit") == [("remote_apply",)]
    finally:
        postgres.ask("ALTER ROLE ledger RESET synchronous_commit")


def test_a_server_that_may_forget_is_refused(place, postgres):
    def turn(fsync):
        postgres.ask(f"ALTER SYSTEM SET fsync = {fsync}")
        postgres.ask("SELECT pg_reload_conf()")
        postgres.wait(lambda: postgres.answer("SHOW fsync") == fsync)

    turn("off")
    try:
        with pytest.raises(LedgerTrouble, match="runs with fsync off and may lose commits"):
            place.open()
    finally:
        turn("on")
    place.open().close()


def test_the_role_of_the_guide_can_append_and_no_more(place, postgres):
    """The statements of docs/ledger.md, as printed."""
    guide = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
    [statements] = [block.split("```")[0] for block in guide.split("```sql\n")[1:]]
    place.open().close()
    for statement in filter(None, map(str.strip, statements.split(";"))):
        postgres.ask(statement)
    try:
        with open_ledger(postgres.address("gateway")) as ledger:
            ada = chain("ada", 2)
            assert ledger.append(ada) == [True, True]
            ledger.mark_delivered(ada[:1])
            assert ledger.undelivered().entries == ada[1:]
        import psycopg

        for statement in (
            "UPDATE entries SET time = 0",
            "DELETE FROM entries",
            "TRUNCATE entries",
            "ALTER TABLE entries DISABLE TRIGGER ALL",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                DatabasePlace(postgres.address("gateway")).raw(statement)
    finally:
        postgres.ask("DROP OWNED BY gateway")
        postgres.ask("DROP ROLE gateway")


def test_a_role_without_rights_is_told(place, postgres):
    place.open().close()
    postgres.ask("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(LedgerTrouble, match=r"Grant it the rights listed in `reticent docs ledger`"):
            open_ledger(postgres.address("guest"))
    finally:
        postgres.ask("DROP ROLE guest")


def test_other_peoples_tables_are_no_ledger(place, postgres):
    postgres.ask("CREATE SCHEMA reticent")
    for read_only in (False, True):
        with pytest.raises(LedgerTrouble, match="is a database without a ledger of reticent"):
            place.open(read_only)


def test_two_gateways_may_start_at_once(place):
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(place.open())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    for ledger in opened:
        ledger.close()


def test_the_password_comes_from_the_environment(place, postgres, monkeypatch, tmp_path):
    postgres.ask("ALTER ROLE ledger PASSWORD 'open sesame'")
    where = postgres.address(host="127.0.0.1")
    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LedgerTrouble, match=r"no password supplied"):
        open_ledger(where)
    monkeypatch.setenv("PGPASSWORD", "wrong sesame")
    with pytest.raises(LedgerTrouble, match=r"password authentication failed") as trouble:
        open_ledger(where)
    assert "sesame" not in str(trouble.value)
    monkeypatch.setenv("PGPASSWORD", "open sesame")
    open_ledger(where).close()
    monkeypatch.delenv("PGPASSWORD")
    secret = tmp_path / "pass"
    secret.write_text("127.0.0.1:*:*:ledger:open sesame\n")
    secret.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(secret))
    open_ledger(where).close()


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://ledger:sesame@localhost/ledger",
        "postgres://ledger:sesame@localhost/ledger",
        "postgresql://localhost/ledger?user=ledger&password=sesame",
        "postgresql://localhost/ledger?sslpassword=sesame",
    ],
)
def test_a_password_in_the_address_is_refused(where):
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match=r"PGPASSFILE, or set PGPASSWORD") as error:
        open_ledger(where)
    assert "sesame" not in str(error.value)


def test_an_address_that_cannot_be_read():
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match=r"write postgresql://user@host") as error:
        open_ledger("postgresql://ledger:sesame@me@host:x/y?z")
    assert "sesame" not in str(error.value)


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'reticent\[postgres\]'"):
        open_ledger("postgresql://localhost/ledger")
