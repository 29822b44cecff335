"""`reticent ledger` as a user meets it."""

import json
import shutil
from dataclasses import replace

import polars as pl
import pytest

from reticent.cli import COMMANDS
from reticent.cli.ledger import LedgerCommand
from reticent.gateway.runtime import Runtime
from reticent.gateway.sessions import ASSUMPTION, EXHAUSTED
from tests.commands import commands
from tests.gateway.parts import Place, task, write_policy
from tests.gateway.places import FilePlace, chain, entry_after, postgres_server


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in a folder with a ledger of two subjects; returns exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(COMMANDS, "ledger", LedgerCommand)
    monkeypatch.setenv("COLUMNS", "100")
    with FilePlace("ledger.db").open() as ledger:
        ledger.append([*chain("ada", 6), *chain("[bold]bob\x1b", 2)])
    return commands(monkeypatch, capsys, "ledger")


def damage(statement="UPDATE entries SET spent_bits = 0 WHERE subject = 'ada' AND number = 5"):
    FilePlace("ledger.db").unguarded(statement)


def test_show_says_where_everybody_stands(run):
    code, out, _ = run("show", "ledger.db")
    assert code == 0
    [heading] = [line for line in out.splitlines() if "confidence" in line]
    assert " ".join(heading.split()) == "subject sessions releases confidence bits last time now"
    [ada] = [line for line in out.splitlines() if "ada" in line]
    assert ada.split()[:5] == ["ada", "2", "5", "0.700000", "0.600000"]
    assert "No trouble in the newest entries" in out
    # What comes from outside is not let loose on the terminal.
    assert "[bold]bob\\x1b" in out
    assert "\x1b" not in out


def test_show_as_json_and_of_one(run):
    _, out, _ = run("show", "ledger.db", "--json")
    found = json.loads(out)
    assert [each["subject"] for each in found["subjects"]] == ["[bold]bob\x1b", "ada"]
    _, out, _ = run("show", "ledger.db", "--subject", "ada", "--json")
    [ada] = json.loads(out)["subjects"]
    assert ada == {
        "subject": "ada",
        "sessions": 2,
        "releases": 5,
        "confidence": 0.7,
        "spent_bits": pytest.approx(0.6),
        "last_time": 1.7e9 + 7.5,
        "resting": False,
        "exhausted": False,
        "trouble": None,
    }


def test_show_names_trouble(run):
    damage()
    damage("DELETE FROM entries WHERE number = 0 AND subject LIKE '%bob%'")
    code, out, _ = run("show", "ledger.db", "--json")
    assert code == 0
    bob, ada = json.loads(out)["subjects"]
    assert "does not match its hash" in ada["trouble"]
    assert ada["confidence"] is None
    assert bob["trouble"] == "There are 1 entries, but the newest has number 1."
    code, out, _ = run("show", "ledger.db")
    assert code == 0
    assert "TROUBLE with ada: Entry 5 of subject 'ada' does not match its hash" in out
    assert "TROUBLE with '[bold]bob\\x1b': There are 1 entries" in out


def test_show_a_ledger_without_entries(run):
    FilePlace("new.db").open().close()
    code, out, _ = run("show", "new.db")
    assert code == 0
    assert "subject" in out
    assert json.loads(run("show", "new.db", "--json")[1])["subjects"] == []


def test_show_while_a_gateway_writes(run):
    with FilePlace("ledger.db").open() as ledger:
        ledger.append([entry_after(ledger.last("ada"))])
        _, out, _ = run("show", "ledger.db", "--subject", "ada", "--json")
    assert json.loads(out)["subjects"][0]["releases"] == 6


def test_verify_says_that_it_is_whole(run):
    code, out, _ = run("verify", "ledger.db")
    assert code == 0
    assert out == f"PASS: 2 subjects, 8 entries; chains, numbers and times are right.\n{ASSUMPTION}\n"
    code, out, _ = run("verify", "ledger.db", "--json")
    assert code == 0
    assert json.loads(out) == {
        "ledger": "ledger.db",
        "whole": True,
        "subjects": 2,
        "entries": 8,
        "highest_confidence": 0.7,
        "most_bits": pytest.approx(0.6),
        "fault": None,
        "clocks_set_back": 0,
        "assumption": ASSUMPTION,
        "promise": [],
    }


def test_verify_says_what_is_not(run):
    damage()
    code, out, _ = run("verify", "ledger.db")
    assert code == 1
    assert out.startswith("FAIL: Entry 5 of subject 'ada' does not match its hash")
    code, out, _ = run("verify", "ledger.db", "--json")
    found = json.loads(out)
    assert code == 1
    assert (found["whole"], found["entries"]) == (False, 7)
    assert (found["fault"]["subject"], found["fault"]["number"]) == ("ada", 5)


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_verify_against_an_export(run, tmp_path, ending):
    export = f"export.{ending}"
    assert run("export", "ledger.db", "-o", export)[:2] == (0, f"Saved {export}.\n")
    code, out, _ = run("verify", "ledger.db", "--against", export)
    assert code == 0
    assert out.endswith(f"Everything in the export is still there.\n{ASSUMPTION}\n")
    damage("DELETE FROM entries WHERE subject = 'ada' AND number > 3")
    assert run("verify", "ledger.db")[0] == 0
    code, out, _ = run("verify", "ledger.db", "--against", export)
    assert code == 1
    assert "Entry 4 of subject 'ada' and all after it are gone: the export goes on to entry 5." in out


def test_verify_with_the_policy(run, tmp_path):
    path = write_policy(tmp_path / "policy.safetensors", task())
    runtime = Runtime.load(path)
    start = runtime.first()
    belief = runtime.heard(start, 0, 25, None)
    entry = entry_after(
        None,
        sensor=runtime.sensors[0],
        symbol=runtime.symbols[25],
        chances=None,
        belief=tuple(map(tuple, belief.tolist())),
        spent_bits=runtime.information_bits(start, 0),
        policy=runtime.digest,
    )
    for name, each in (("right.db", entry), ("wrong.db", replace(entry, spent_bits=entry.spent_bits / 2))):
        with FilePlace(name).open() as ledger:
            ledger.append([each])
    code, out, _ = run("verify", "right.db", "--policy", path)
    assert code == 0
    assert f"the highest confidence is {entry.confidence}, the most bits spent {entry.spent_bits}." in out
    code, out, _ = run("verify", "wrong.db", "--policy", path)
    assert code == 1
    assert "FAIL: Entry 0 of subject 'ada' says" in out
    code, out, _ = run("verify", "ledger.db", "--policy", path)
    assert code == 1
    assert "was made under another policy" in out


def test_show_says_who_has_nothing_left_to_say(run, tmp_path):
    """`policy.ledger.db` is beside `policy.safetensors`, where `serve` puts it; elsewhere --policy says which."""
    (tmp_path / "served").mkdir()
    place = Place(tmp_path / "served", rest=1.0)
    while not place.gateway.counters["nothing left"]:
        place.tick(seconds=10)
    place.tick("bob")
    place.ledger.close()
    shutil.copy("served/ledger.db", "served/policy.ledger.db")
    _, out, _ = run("show", "served/policy.ledger.db")
    now = {line.split()[0]: line.split()[-1] for line in out.splitlines() if line.strip().startswith(("ada", "bob"))}
    assert now == {"ada": "silent", "bob": "speaks"}
    assert f"silent, 1 of 2: {EXHAUSTED}" in out
    assert ASSUMPTION in out
    _, out, _ = run("show", "served/ledger.db", "--subject", "ada")
    assert "ended" in out
    assert "Give the policy file by --policy" in out
    assert EXHAUSTED in run("show", "served/ledger.db", "--policy", "served/policy.safetensors")[1]


def test_export_one_subject(run):
    code, out, _ = run("export", "ledger.db", "-o", "ada.parquet", "--subject", "ada", "--json")
    assert code == 0
    assert json.loads(out) == {"file": "ada.parquet", "entries": 6}
    assert pl.read_parquet("ada.parquet")["symbol"].to_list() == ["code 3"] * 4 + [None] + ["code 3"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "none.db"), "/none.db': No such file"),
        (("verify", "."), "is not a regular file"),
        (("show", "ledger.db", "--subject", "eve"), "The ledger has no subject 'eve'"),
        (("export", "ledger.db", "-o", "x.jsonl", "--subject", "eve"), "The ledger has no subject 'eve'"),
        (("show", "ledger.db", "--policy", "p.safetensors"), "There is no policy file"),
        (("export", "ledger.db", "--policy", "p.safetensors"), "--policy is not an option of `reticent ledger export`"),
        (("show", "ledger.db", "-o", "x.parquet"), "--out is not an option of `reticent ledger show`"),
        (("verify", "ledger.db", "--subject", "ada"), "--subject is not an option of `reticent ledger verify`"),
        (("verify", "ledger.db", "--policy", "none.safetensors"), "There is no policy file"),
        (("verify", "ledger.db", "--against", "none.parquet"), "cannot be read as an export"),
        (("export", "ledger.db"), "needs -o FILE with the suffix .parquet or .jsonl"),
        (("export", "ledger.db", "-o", "x.csv"), "with the suffix .parquet or .jsonl"),
        (("export", "ledger.db", "-o", "no/x.parquet"), "There is no folder 'no'"),
        (("show", "list", "ledger.db"), "Write `reticent ledger show LEDGER`"),
        (("holds", "ledger.db"), "Write `reticent ledger holds list LEDGER or holds put LEDGER or holds lift LEDGER`"),
        (
            ("holds", "drop", "ledger.db"),
            "Write `reticent ledger holds list LEDGER or holds put LEDGER or holds lift LEDGER`",
        ),
        (("holds", "lift", "ledger.db"), "needs one of --subject NAME, --everybody (a pause), --clock"),
        (("holds", "lift", "ledger.db", "--subject", "ada", "--clock"), "needs one of --subject NAME"),
        (("holds", "lift", "ledger.db", "--subject", "eve"), "The ledger has no subject 'eve'"),
        (("holds", "put", "ledger.db"), "needs one of --subject NAME, --everybody"),
        (("holds", "put", "ledger.db", "--subject", "eve"), "The ledger has no subject 'eve'"),
        (("holds", "lift", "none.db", "--everybody"), "/none.db': No such file"),
        (("show", "ledger.db", "--everybody"), "--everybody is not an option of `reticent ledger show`"),
        (("repair", "ledger.db"), "needs --against EXPORT"),
        (("repair", "ledger.db", "--against", "none.jsonl"), "cannot be read as an export"),
    ],
)
def test_what_does_not_fit_is_one_sentence(run, words, sentence):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("reticent: ")


def test_a_password_on_the_command_line_is_refused(run):
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'reticent[postgres]'")
    code, _, err = run("show", "postgresql://ada:sesame@localhost/ledger")
    assert code == 2
    assert "PGPASSFILE, or set PGPASSWORD" in err
    assert "sesame" not in err


def test_a_damaged_ledger_is_not_exported(run):
    damage()
    code, _, err = run("export", "ledger.db", "-o", "x.parquet")
    assert code == 2
    assert "Entry 5 of subject 'ada'" in err


def test_a_subject_is_held_and_everybody_paused_beside_a_gateway(run, tmp_path):
    assert run("holds", "put", "ledger.db", "--subject", "ada")[1] == "ada: held.\n"
    assert run("holds", "put", "ledger.db", "--subject", "ada")[1] == "ada: was held already.\n"
    assert run("holds", "put", "ledger.db", "--everybody")[1] == "everybody: held.\n"
    assert "Paused by hand" in run("holds", "list", "ledger.db")[1]
    assert "ada: Held by hand" in run("holds", "list", "ledger.db")[1]


def test_holds_are_listed_and_lifted(run):
    assert run("holds", "list", "ledger.db")[:2] == (0, "Nobody is held.\n")
    with FilePlace("ledger.db").open() as ledger:
        ledger.hold("ada", "drift")
        ledger.hold("", "paused")
        # A gateway may run meanwhile.
        _, out, _ = run("holds", "list", "ledger.db")
        assert out.startswith("everybody: Paused by hand")
        assert "ada: What this subject's sensors say no longer fits the model" in out
        assert json.loads(run("holds", "list", "ledger.db", "--json")[1])[0]["subject"] is None
        assert run("holds", "lift", "ledger.db", "--everybody")[1] == "everybody: lifted.\n"
        assert run("holds", "lift", "ledger.db", "--subject", "ada")[1] == "ada: lifted.\n"
        assert run("holds", "lift", "ledger.db", "--subject", "ada")[1] == "ada: there was nothing to lift.\n"
        assert ledger.holds() == {}


def test_who_is_ahead_of_the_clock_is_lifted(run, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1.7e9 - 1000)
    _, out, _ = run("holds", "list", "ledger.db")
    assert "ada: The newest entry is of 2023-11-14T22:13:27+00:00, 1,008 s ahead of this clock." in out
    _, out, _ = run("holds", "lift", "ledger.db", "--clock")
    assert out == "'[bold]bob\\x1b': lifted.\nada: lifted.\n"
    assert run("holds", "lift", "ledger.db", "--clock")[1] == "Nobody is ahead of this clock.\n"
    _, out, _ = run("verify", "ledger.db")
    assert "Clocks set back by an operator: 2 stops from which times start again." in out


def test_a_damaged_entry_is_repaired_from_an_export(run):
    assert run("export", "ledger.db", "-o", "x.jsonl")[0] == 0
    damage()
    code, _, err = run("holds", "lift", "ledger.db", "--subject", "ada")
    assert code == 2
    assert "Repair it with `reticent ledger repair LEDGER --against EXPORT`" in err
    assert "TROUBLE with ada" in run("show", "ledger.db")[1]
    code, out, _ = run("repair", "ledger.db", "--against", "x.jsonl")
    assert code == 0
    assert out.startswith("Entry 5 of ada was restored.\nEntries repaired: 1.")
    assert run("verify", "ledger.db", "--against", "x.jsonl")[0] == 0
    assert "Entries repaired: 0." in run("repair", "ledger.db", "--against", "x.jsonl")[1]


def test_an_export_of_another_ledger_repairs_nothing(run):
    with FilePlace("other.db").open() as ledger:
        ledger.append([entry_after(None, spent_bits=0.75)])
    run("export", "other.db", "-o", "x.jsonl")
    code, out, _ = run("repair", "ledger.db", "--against", "x.jsonl")
    assert code == 1
    assert "Nothing was changed" in out


@pytest.mark.slow
def test_a_database_is_read_like_a_file(run):
    with postgres_server() as server:
        place = server.place()
        with place.open() as ledger:
            ledger.append(chain("ada", 6))
        assert run("verify", place.where)[0] == 0
        assert run("export", place.where, "-o", "x.parquet")[0] == 0
        _, out, _ = run("show", place.where, "--json")
    assert json.loads(out)["subjects"][0]["releases"] == 5
    assert len(pl.read_parquet("x.parquet")) == 6


def test_a_copy_is_shown_too(run, tmp_path):
    shutil.copy("ledger.db", "copy.db")
    assert run("show", "copy.db")[0] == 0
