"""The ledger in a file: who may write, what goes wrong on disks, and what a sudden end leaves."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reticent.gateway import sqlite
from reticent.gateway.entry import Entry
from reticent.gateway.ledger import Ledger, LedgerTrouble
from reticent.gateway.opening import open_ledger
from reticent.gateway.verify import verify
from tests.gateway.places import chain, entry_after, with_source

WRITER = """
import sys
from reticent.gateway.opening import open_ledger
from tests.gateway.places import chain, entry_after

where, ada, bob = sys.argv[1:]
with open_ledger(where) as ledger:
    last = {name: ledger.last(name) for name in (ada, bob)}
    while True:
        # Two subjects in one transaction, of one of them several entries.
        batch = [*chain(ada, 3, last[ada]), entry_after(last[bob], bob)]
        assert ledger.append(batch) == [True] * 4
        last = {ada: batch[2], bob: batch[3]}
        print(batch[2].number, batch[3].number, flush=True)
"""


def newest(ledger: Ledger, subject: str = "ada") -> Entry:
    entry = ledger.last(subject)
    assert entry is not None
    return entry


def inside(ledger: Ledger) -> sqlite3.Connection:
    assert isinstance(ledger, sqlite.SqliteLedger)
    assert ledger._connection is not None
    return ledger._connection


@pytest.fixture
def where(tmp_path):
    return tmp_path / "ledger.db"


def test_only_the_owner_can_read_it(where):
    with open_ledger(str(where)) as ledger:
        ledger.append(chain("ada", 3))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in where.parent.iterdir()}
    assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.lock"), 0o600)
    assert {path.name for path in where.parent.iterdir()} == {"ledger.db", "ledger.db.lock"}


def test_every_transaction_is_synced(where):
    with open_ledger(str(where)) as ledger:
        ledger.append(chain("ada", 1))
        connection = inside(ledger)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        said = []
        connection.set_trace_callback(said.append)
        ledger.append([entry_after(ledger.last("ada"))])
        ledger.mark_delivered([newest(ledger)])
        ledger.append([entry_after(ledger.last("ada"))])
        settings = [statement for statement in said if statement.startswith(("PRAGMA sync", "COMMIT"))]
        assert settings == [
            *("PRAGMA synchronous=FULL", "COMMIT"),
            *("PRAGMA synchronous=NORMAL", "COMMIT"),
            *("PRAGMA synchronous=FULL", "COMMIT"),
        ]


def test_one_process_writes(where):
    with open_ledger(str(where)), pytest.raises(LedgerTrouble, match="Another gateway is writing the ledger"):
        open_ledger(str(where))
    open_ledger(str(where)).close()


def test_the_lock_dies_with_its_process(where):
    with _writer(where, "ada", "bob") as writer:
        assert writer.stdout.readline()
        with pytest.raises(LedgerTrouble, match="Another gateway is writing the ledger"):
            open_ledger(str(where))
        with open_ledger(str(where), read_only=True) as reader:
            assert newest(reader).number >= 2
        writer.kill()
        writer.wait()
        with open_ledger(str(where)) as ledger:
            assert verify(ledger).fault is None


@contextlib.contextmanager
def _writer(where, *names) -> Iterator[Any]:
    command = [sys.executable, "-c", WRITER, str(where), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=with_source()) as writer:
        try:
            yield writer
        finally:
            writer.kill()


def _survives_kills(where, times, seed):
    """Everything that was said to be on disk is there, whenever the writer is killed: before, within or after."""
    rng, told = random.Random(seed), 0
    for run in range(times):
        names = f"ada {run}", f"bob {run}"
        with _writer(where, *names) as writer:
            # Now and then it is killed while it starts.
            first = writer.stdout.readline() if run % 10 else ""
            time.sleep(rng.random() * 0.06)
            writer.send_signal(signal.SIGKILL)
            told_here = first + writer.stdout.read()
        # What comes after the last line feed was cut off.
        complete = [tuple(map(int, line.split())) for line in told_here.split("\n")[:-1]]
        told += len(complete)
        with open_ledger(str(where)) as ledger:
            for place, name in enumerate(names):
                least = max((numbers[place] for numbers in complete), default=-1)
                entries = list(ledger.entries(name))
                assert [entry.number for entry in entries] == list(range(len(entries)))
                assert len(entries) > least
                assert [entry.before for entry in entries[1:]] == [entry.hash for entry in entries[:-1]]
            # A transaction is there whole or not at all.
            assert ledger.counts(names[0]).entries == 3 * ledger.counts(names[1]).entries
    with open_ledger(str(where)) as ledger:
        assert verify(ledger).fault is None
        assert len(ledger.undelivered().entries) == verify(ledger).entries
    assert told > times


def test_ten_kills(where):
    _survives_kills(where, 10, seed=0)


@pytest.mark.slow
def test_hundreds_of_kills(where):
    _survives_kills(where, 300, seed=1)


def test_a_full_disk_is_told_and_left_again(where):
    with open_ledger(str(where)) as ledger:
        ada = chain("ada", 400)
        ledger.append(ada[:1])
        connection = inside(ledger)
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + 3}")
        with pytest.raises(LedgerTrouble, match=r"disk is full\. Make room"):
            ledger.append(ada[1:])
        assert list(ledger.entries()) == ada[:1]
        assert ledger.append(ada[1:3]) == [True, True]
        connection.execute("PRAGMA max_page_count=1000000")
        assert ledger.append(ada[1:]) == [True] * 399
        assert verify(ledger).fault is None


FULL = """
import resource, sys
from reticent.gateway.entry import Entry
from reticent.gateway.ledger import Ledger, LedgerTrouble
from reticent.gateway.opening import open_ledger
from tests.gateway.places import chain, entry_after

_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
with open_ledger(sys.argv[1]) as ledger:
    last, troubles = None, []
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), most))
    while len(troubles) < 3:
        batch = chain("ada", 3, last)
        try:
            assert ledger.append(batch) == [True] * 3
            last = batch[-1]
        except LedgerTrouble as trouble:
            troubles.append(str(trouble))
            assert ledger.last("ada") == last
    print(troubles[-1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert ledger.append(batch) == [True] * 3
    print(batch[-1].number)
"""


@pytest.mark.parametrize("room", [150_000, 300_001])
def test_a_disk_that_takes_no_more_is_told_and_left_again(where, room):
    command = [sys.executable, "-c", FULL, str(where), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=with_source())
    sentence, number = done.stdout.splitlines()
    assert "cannot be read or written: the disk failed, is gone or allows no larger file" in sentence
    with open_ledger(str(where)) as ledger:
        assert newest(ledger).number == int(number)
        assert verify(ledger).fault is None


def test_another_program_that_writes_is_told(where, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with open_ledger(str(where)) as ledger, contextlib.closing(sqlite3.connect(where, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerTrouble, match="is locked by another program"):
            ledger.append(chain("ada", 1))
        other.execute("ROLLBACK")
        assert ledger.append(chain("ada", 1)) == [True]


@contextlib.contextmanager
def _nobody(*paths):
    """Root may write everywhere, so for a while we are somebody who may not."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shelf():
    """A folder that anybody can reach, which pytest's are not."""
    folder = Path(tempfile.mkdtemp(prefix="reticent-ledger-"))
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def test_a_folder_that_allows_nothing(shelf):
    with open_ledger(str(shelf / "ledger.db")) as ledger:
        ledger.append(chain("ada", 3))
    shelf.chmod(0o555)
    with _nobody(*shelf.iterdir()):
        # A copy on a disk that cannot be written can still be read.
        with open_ledger(str(shelf / "ledger.db"), read_only=True) as ledger:
            assert newest(ledger).number == 2
        with pytest.raises(LedgerTrouble, match="the file or its disk is read-only"):
            open_ledger(str(shelf / "ledger.db"))
        with pytest.raises(LedgerTrouble, match=r"Cannot open the ledger .*Permission denied"):
            open_ledger(str(shelf / "other.db"))


def test_a_file_that_cannot_be_written(shelf):
    with open_ledger(str(shelf / "ledger.db")) as ledger:
        ledger.append(chain("ada", 3))
    (shelf / "ledger.db").chmod(0o400)
    with (
        _nobody(shelf, *shelf.iterdir()),
        pytest.raises(LedgerTrouble, match="the file or its disk is read-only"),
        open_ledger(str(shelf / "ledger.db")) as ledger,
    ):
        ledger.append([entry_after(ledger.last("ada"))])


def _cut(where):
    with where.open("r+b") as file:
        file.truncate(where.stat().st_size // 2 // 4096 * 4096)


def _scrawl(where):
    with where.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (where.stat().st_size - 4096))


def _other_database(where):
    where.unlink()
    with contextlib.closing(sqlite3.connect(where)) as connection:
        connection.execute("CREATE TABLE entries (subject, number)")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda where: where.write_bytes(b"no database at all, but some text" * 200), "is damaged, or not a ledger"),
        (lambda where: where.write_bytes(b""), "is empty"),
        (_cut, "is damaged, or not a ledger"),
        (_scrawl, "is damaged, or not a ledger"),
        (_other_database, "is an SQLite database, but not a ledger of reticent"),
        (lambda where: (where.unlink(), where.mkdir()), "is not a regular file"),
        (lambda where: where.rename(where.with_name("x")) and where.symlink_to("x"), "is not a regular file"),
    ],
)
def test_what_is_no_ledger_is_refused(where, damage, sentence):
    with open_ledger(str(where)) as ledger:
        ledger.append(chain("ada", 200))
    damage(where)
    for read_only in (False, True):
        with pytest.raises(LedgerTrouble, match=sentence), open_ledger(str(where), read_only) as ledger:
            list(ledger.entries())


def test_a_ledger_with_two_names_is_not_written(where):
    """Under the other name it would have another lock."""
    open_ledger(str(where)).close()
    other = where.with_name("other.db")
    other.hardlink_to(where)
    for name in (where, other):
        with pytest.raises(LedgerTrouble, match="a hard link"):
            open_ledger(str(name))
    open_ledger(str(other), read_only=True).close()
    other.unlink()
    open_ledger(str(where)).close()


def test_any_scratch_on_the_disk_is_found(where):
    """Single bytes of the file are changed. Either the change means nothing, or it is found; nothing else happens."""
    with open_ledger(str(where)) as ledger:
        written = [*chain("ada", 20), *chain("zoe", 20)]
        ledger.append(written)
    whole, rng, found = where.read_bytes(), random.Random(0), 0
    for _ in range(100):
        place = rng.randrange(len(whole))
        where.write_bytes(whole[:place] + bytes([whole[place] ^ rng.randrange(1, 256)]) + whole[place + 1 :])
        try:
            with open_ledger(str(where), read_only=True) as ledger:
                verdict = verify(ledger)
                same = verdict.fault is None and list(ledger.entries()) == written
        except LedgerTrouble:
            verdict, same = None, False
        found += not same
        assert same or verdict is None or verdict.fault is not None
    assert found > 30


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", ".lock"])
@pytest.mark.parametrize("put", ["nothing", "a copy", "a link"])
def test_a_file_that_goes_while_we_run(where, ending, put):
    path, away = Path(f"{where}{ending}"), where.with_name("away")
    with open_ledger(str(where)) as ledger:
        ada = chain("ada", 4)
        ledger.append(ada[:1])
        path.rename(away)
        if put == "a copy":
            shutil.copy(away, path)
        elif put == "a link":
            path.symlink_to(away)
        for call in (
            lambda: ledger.append(ada[1:]),
            lambda: ledger.last("ada"),
            lambda: ledger.mark_delivered(ada[:1]),
        ):
            with pytest.raises(LedgerTrouble, match="was removed or replaced while the gateway runs"):
                call()
        away.replace(path)
        assert ledger.append(ada[1:]) == [True] * 3
    with open_ledger(str(where)) as ledger:
        assert list(ledger.entries()) == ada


def test_a_file_that_goes_in_the_last_moment(where):
    with open_ledger(str(where)) as ledger:
        ada = chain("ada", 2)
        ledger.append(ada[:1])
        away = where.with_name("away")
        inside(ledger).set_trace_callback(lambda said: where.rename(away) if said == "COMMIT" else None)
        with pytest.raises(LedgerTrouble, match="was removed or replaced"):
            ledger.append(ada[1:])
        inside(ledger).set_trace_callback(None)
        away.rename(where)
        assert ledger.append(ada[1:]) == [True]


def test_a_ledger_that_is_gone_is_not_begun_anew(where):
    with open_ledger(str(where)) as ledger:
        ledger.append(chain("ada", 3))
    where.unlink()
    with pytest.raises(LedgerTrouble, match=r"There was a ledger .* remove what is left: ledger.db.lock"):
        open_ledger(str(where))
    Path(f"{where}.lock").unlink()
    with open_ledger(str(where)) as ledger:
        assert ledger.subjects() == []


def test_the_rest_of_a_ledger_is_not_taken_for_a_new_ones(where):
    """SQLite would play a -wal that was left behind into whatever file lies beside it."""
    with _writer(where, "ada", "bob") as writer:
        assert writer.stdout.readline()
    where.unlink()
    Path(f"{where}.lock").unlink()
    with pytest.raises(LedgerTrouble, match="There was a ledger"):
        open_ledger(str(where))


def test_a_ledger_that_was_only_half_made(where):
    Path(f"{where}.new").write_bytes(b"half")
    Path(f"{where}.new-journal").write_bytes(b"half")
    with open_ledger(str(where)) as ledger:
        assert ledger.append(chain("ada", 1)) == [True]
    assert not Path(f"{where}.new").exists()


def test_a_folder_that_is_not_there(tmp_path):
    for read_only in (False, True):
        with pytest.raises(LedgerTrouble, match=r"Cannot open the ledger .*No such file"):
            open_ledger(str(tmp_path / "no" / "ledger.db"), read_only)


def test_odd_paths(tmp_path):
    path = tmp_path / "a ledger?mode=memory&x#y%20é.db"
    with open_ledger(str(path)) as ledger:
        ledger.append(chain("ada", 1))
    assert path.stat().st_size > 0


def test_finding_subjects_and_what_is_undelivered_steps_along_the_index(where):
    """Not through all entries: a ledger of years opens as fast as a new one."""
    with open_ledger(str(where)) as ledger:
        ledger.append([*chain("ada", 30), *chain("bob", 30)])
        connection, said = inside(ledger), []
        connection.set_trace_callback(said.append)
        ledger.undelivered()
        ledger.subjects()
        connection.set_trace_callback(None)
        queries = [query for query in said if "WITH RECURSIVE" in query]
        assert len(queries) == 2
        for query in queries:
            plan = [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert not any(detail.startswith("SCAN entries") for detail in plan), plan
