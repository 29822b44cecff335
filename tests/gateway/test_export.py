"""A ledger as a table: what is in it, what tools do with it, and the guide's own programs, run as printed."""

import hashlib
import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from reticent.audit.trace_files import read_traces
from reticent.errors import InputError
from reticent.gateway.entry import COLUMNS
from reticent.gateway.export import read_heads, write_export
from reticent.gateway.holds import lift
from reticent.gateway.ledger import LedgerTrouble
from reticent.gateway.opening import open_ledger
from tests.gateway.parts import Place, coarsened
from tests.gateway.places import FilePlace, chain, entry_after, with_source

GUIDE = Path(__file__).parents[2] / "docs" / "ledger.md"
EXPORTED = ["episode", *COLUMNS, "confidence"]


def programs():
    """The Python programs of the guide, in their order."""
    return [block.split("```")[0] for block in GUIDE.read_text().split("```python\n")[1:]]


@pytest.fixture
def place(tmp_path):
    """Two subjects with two sessions each, the second cut off."""
    found = FilePlace(str(tmp_path / "ledger.db"))
    with found.open() as ledger:
        ledger.append([*chain("bob", 8), *chain("Zoë", 6)])
    return found


def exported(place, path, subject=None):
    with place.open(read_only=True) as ledger:
        return write_export(ledger, path, subject)


def test_one_row_per_entry_in_order(place, tmp_path):
    path = tmp_path / "export.parquet"
    assert exported(place, path) == 14
    table = pl.read_parquet(path)
    with place.open(read_only=True) as ledger:
        entries = list(ledger.entries())
    assert table.columns == EXPORTED
    for name in ("step", "sensor", "symbol", "subject", "session", "number", "time", "spent_bits", "policy", "hash"):
        assert table[name].to_list() == [getattr(entry, name) for entry in entries]
    assert table["confidence"].to_list() == [0.7] * 14
    assert table["episode"].to_list() == [0] * 5 + [1] + [2] * 5 + [3] * 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {each.name for each in tmp_path.iterdir()} >= {"export.parquet", "ledger.db"}
    assert not list(tmp_path.glob("export.parquet.*"))


def test_lines_say_the_same_as_the_table(place, tmp_path):
    for name in ("export.jsonl", "export.parquet"):
        exported(place, tmp_path / name)
    lines = [json.loads(line) for line in (tmp_path / "export.jsonl").read_text().splitlines()]
    table = pl.read_parquet(tmp_path / "export.parquet")
    assert_frame_equal(table, pl.DataFrame(lines, schema=table.schema))
    assert stat.S_IMODE((tmp_path / "export.jsonl").stat().st_mode) == 0o600


def test_of_one_subject_and_of_nobody(place, tmp_path):
    assert exported(place, tmp_path / "bob.parquet", "bob") == 8
    assert set(pl.read_parquet(tmp_path / "bob.parquet")["subject"]) == {"bob"}
    assert exported(place, tmp_path / "nobody.parquet", "nobody") == 0
    assert pl.read_parquet(tmp_path / "nobody.parquet").columns == EXPORTED


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
def test_the_heads_of_an_export(place, tmp_path, ending):
    path = tmp_path / f"export{ending}"
    exported(place, path)
    with place.open(read_only=True) as ledger:
        newest = {name: ledger.last(name) for name in ledger.subjects()}
    assert read_heads(path) == {name: (entry.number, entry.hash) for name, entry in newest.items()}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("none.jsonl", None),
        ("none.parquet", None),
        ("text.jsonl", b"no JSON"),
        ("list.jsonl", b"[1]\n"),
        ("other.jsonl", b'{"subject": "ada"}\n'),
        ("deep.jsonl", b"[" * 100_000),
        ("huge.jsonl", b'{"subject": "ada", "number": 1e999, "hash": "x"}\n'),
        ("half.jsonl", b'{"subject": 5, "number": 1, "hash": "x"}\n'),
        ("binary.jsonl", b"\xff\xfe\n"),
        ("text.parquet", b"no Parquet"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as an export of a ledger"):
        read_heads(tmp_path / name)


def test_an_export_without_entries_is_no_witness(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="holds no entries"):
        read_heads(tmp_path / "empty.jsonl")
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="cannot be read as an export"):
        read_heads(tmp_path / "other.parquet")


def test_of_a_damaged_ledger_nothing_is_written(place, tmp_path):
    place.unguarded("UPDATE entries SET time = 0 WHERE subject = 'bob' AND number = 7")
    path = tmp_path / "export.parquet"
    path.write_text("what was there before")
    with pytest.raises(LedgerTrouble, match="Entry 7 of subject 'bob'"):
        exported(place, path)
    assert path.read_text() == "what was there before"
    assert not list(tmp_path.glob("export.parquet.*"))


PEAK = """
import re, sys
from pathlib import Path
from reticent.gateway.export import read_heads, write_export
from reticent.gateway.opening import open_ledger
from reticent.gateway.verify import verify

where = sys.argv[1]
with open_ledger(where, read_only=True) as ledger:
    write_export(ledger, Path(where + ".jsonl"))
    assert verify(ledger, heads=read_heads(Path(where + ".jsonl"))).fault is None
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
FILL = """
import sys
from reticent.gateway.opening import open_ledger
from tests.gateway.places import chain

with open_ledger(sys.argv[1]) as ledger:
    ledger.append(chain("ada", int(sys.argv[2])))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc, which Linux has")
def test_memory_does_not_grow_with_the_ledger(tmp_path):
    """An export as lines and a look at everything, of a ledger that fills SQLite's cache and of a larger one."""

    def run(*words):
        command = [sys.executable, "-W", "ignore", "-c", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=with_source()).stdout

    peaks = []
    for length in ("10000", "30000"):
        run(FILL, str(tmp_path / f"{length}.db"), length)
        peaks.append(int(run(PEAK, str(tmp_path / f"{length}.db"))))
    # Kilobytes; the longer one holds 6,000 more.
    assert peaks[1] - peaks[0] < 1000


def recomputed(rows, model, policy):
    """Does every row follow from the prior and what was sent? From the export and the model alone, by hand."""
    belief, spent, before, session = model.prior, 0.0, "", 0
    assert rows[0]["number"] == 0
    for row in rows:
        chances = None if row["chances"] is None else np.array(json.loads(row["chances"]))
        table = np.array(json.loads(row["belief"]))
        if row["session"] > session:
            belief = model.prior * (belief.sum(1) / model.prior.sum(1))[:, None]
        if row["symbol"] is not None:
            channel = model.channel[model.sensors.index(row["sensor"])]
            likelihood = channel @ chances if chances is not None else channel[..., model.symbols.index(row["symbol"])]
            belief = belief * likelihood / (belief * likelihood).sum()
        fields = {name: row[name] for name in COLUMNS[:-1]}
        fields |= {"belief": table.tolist(), "chances": None if chances is None else chances.tolist()}
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() == row["hash"]
        assert (row["before"], row["policy"]) == (before, policy)
        assert np.allclose(table, belief, rtol=0, atol=1e-9)
        assert row["confidence"] == pytest.approx(table.sum(1).max())
        assert row["spent_bits"] >= spent
        belief, spent, before, session = table, row["spent_bits"], row["hash"], row["session"]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_everything_can_be_recomputed_from_an_export_alone(tmp_path, ending):
    place = Place(tmp_path, coarsened(), rest=5.0)
    for turn in range(14):
        place.tick(("ada", "bob")[turn % 2], seconds=2.0)
    path = tmp_path / f"export{ending}"
    assert write_export(place.ledger, path) >= 12
    place.ledger.close()
    rows = pl.read_parquet(path) if ending == ".parquet" else pl.read_ndjson(path)
    for subject in ("ada", "bob"):
        own = rows.filter(pl.col("subject") == subject).to_dicts()
        assert {row["symbol"] for row in own} & set(place.runtime.symbols[50:])
        assert own[-1]["session"] > 0
        recomputed(own, place.runtime.task.model, place.runtime.digest)


def test_an_audit_reads_it_with_labels(place, tmp_path, monkeypatch):
    """As the guide says: the program is run as printed."""
    monkeypatch.chdir(tmp_path)
    with place.open() as ledger:
        ledger.append(chain("eve", 5))
        assert lift(ledger, "eve", now=1.6e9)
    exported(place, tmp_path / "2026-01.parquet")
    labels = [(name, session, f"s{session}", f"u{session}") for name in ("bob", "Zoë", "eve") for session in (0, 1)]
    pl.DataFrame(labels, schema=["subject", "session", "secret", "useful"], orient="row").write_csv("labels.csv")
    subprocess.run([sys.executable, "-c", programs()[1]], check=True)
    traces = read_traces(tmp_path / "traces.parquet", episodes=100).traces
    assert traces.stopped.tolist() == [True, False, True, False, True]
    assert traces.secret.tolist() == [0, 1, 0, 1, 0]
    assert len(set(traces.person.tolist())) == 3


def test_an_auditor_needs_only_python(place, tmp_path):
    """The guide's program, as printed, on a ledger and on what can be done to it."""
    program = programs()[0]
    assert len(program.splitlines()) <= 20

    def audited(where):
        return subprocess.run([sys.executable, "-I", "-c", program, where], capture_output=True, text=True, check=False)

    whole = audited(place.where)
    assert (whole.returncode, whole.stdout) == (0, "14 entries; every chain is whole.\n")
    changes = [
        ("UPDATE entries SET spent_bits = 0 WHERE subject = 'bob' AND number = 7", 7),
        ("UPDATE entries SET before = '' WHERE subject = 'bob' AND number = 2", 2),
        ("UPDATE entries SET symbol = 'x' WHERE subject = 'bob' AND number = 0", 0),
        ("DELETE FROM entries WHERE subject = 'bob' AND number = 3", 4),
    ]
    for count, (change, number) in enumerate(changes):
        copy = FilePlace(str(tmp_path / f"copy {count}.db"))
        shutil.copy(place.where, copy.where)
        copy.unguarded(change)
        found = audited(copy.where)
        assert found.returncode == 1
        assert f"Entry {number} of 'bob'" in found.stderr


def test_a_copy_as_the_guide_makes_it(place, tmp_path):
    [statement] = [
        line.split('"')[1] for line in GUIDE.read_text().splitlines() if line.startswith("sqlite3 ledger.db")
    ]
    with place.open() as ledger:
        ledger.append([entry_after(ledger.last("bob"), "bob")])
        place.raw(statement.replace("backup.db", str(tmp_path / "backup.db")))
        written = list(ledger.entries())
    with open_ledger(str(tmp_path / "backup.db")) as copy:
        assert list(copy.entries()) == written
