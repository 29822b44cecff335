"""`reticent audit` on files: formats, exit codes, what it prints first."""

import html
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reticent.audit.look_back import RefittedHmm
from tests.commands import commands
from tests.lives import MODEL, played, table_of

pytestmark = pytest.mark.usefixtures("quick_attackers")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the audit in an empty folder, without what draws pictures; returns exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reticent.report.audit.save_figures", lambda *_: None)
    monkeypatch.setattr("reticent.report.page.vl_convert.javascript_bundle", lambda _: "")
    command = commands(monkeypatch, capsys)
    return lambda *words: command("audit", "--traces", *words, "--out", "found")


def released(count=1200, right=0.8, people=None):
    """One release that names the secret right so often."""
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=count)
    columns = {"episode": np.arange(count), "step": np.zeros(count, int), "sensor": ["heart"] * count}
    columns |= {"symbol": np.where(rng.random(count) < right, secret, 1 - secret), "secret": secret}
    columns |= {} if people is None else {"person": np.arange(count) % people}
    return pl.DataFrame({**columns, "useful": rng.integers(2, size=count)})


def test_a_claim_that_accuracy_refutes_fails_with_a_code_of_its_own(run):
    released().write_parquet("open.parquet")
    code, out, _ = run("open.parquet", "--confidence", 0.6)
    assert code == 3
    assert out.startswith("It leaks: the strongest of ")
    assert "How to read this: " in out.splitlines()[1]
    assert "FAIL: accuracy stays within the bound. The bound 0.6 does not hold: " in out
    code, out, _ = run("open.parquet", "--confidence", 0.9)
    assert code == 0
    assert "pass: accuracy stays within the bound" in out


def test_what_could_not_be_checked_has_another_code(run):
    released(400, people=4).write_parquet("few.parquet")
    code, out, _ = run("few.parquet", "--confidence", 0.6)
    assert code == 4
    assert out.startswith("Cannot tell, because only 4 people were judged, and 10 are needed to speak of others: ")
    assert "The claim that no belief reaches 0.6 could not be checked: only 4 people" in out
    code, out, _ = run("few.parquet", "--quick", "--json")
    assert code == 4
    assert json.loads(out)["outcome"] == "cannot tell"


def test_bad_input_and_crashes_have_theirs(run, monkeypatch):
    code, _, err = run("nothing.parquet")
    assert (code, err) == (2, "reticent: There is no file 'nothing.parquet'.\n")
    released().write_parquet("open.parquet")

    def crash(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr("reticent.audit.audit.audit_traces", crash)
    # Python ends with exit code 1 for it.
    with pytest.raises(RuntimeError, match="a bug"):
        run("open.parquet")


def test_help_tells_the_exit_codes(monkeypatch, capsys):
    code, out, _ = commands(monkeypatch, capsys)("audit", "--help")
    assert code == 0
    words = " ".join(out.replace("│", " ").split())
    for told in ("0 no check failed", "1 the command crashed", "2 invalid", "3 a check failed", "4 nothing could"):
        assert told in words


def test_the_page_begins_with_the_outcome_and_how_to_read_it(run):
    released(right=0.5).write_parquet("closed.parquet")
    code, out, err = run("closed.parquet", "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["outcome"], record["passed"], record["checkable"]) == ("no leak found", None, True)
    page = html.unescape(Path(record["report"]).read_text())
    places = [page.index(words) for words in ("No leak found, up to", "How to read this", "<h2>Figures")]
    assert places == sorted(places)
    # Nobody looks at a terminal: progress is told in lines.
    assert err.splitlines()[0].endswith("0 s  reading")


def test_quick_leaves_out_curves_and_network(run, monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr("reticent.audit.panel.full_panel", never)
    released(5000).write_parquet("open.parquet")
    code, out, _ = run("open.parquet", "--quick", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["learning"] == []
    assert "About 4,000 of 5,000 episodes were drawn at random." in record["notes"]
    page = Path(record["report"]).read_text()
    assert '<div id="attackers">' in page
    assert '<div id="learning">' not in page


def test_csv_and_json_lines_say_the_same_as_parquet(run):
    table = released(400)
    table.write_parquet("open.parquet")
    table.write_csv("open.csv")
    table.write_ndjson("open.jsonl")
    found = [json.loads(run(f"open.{ending}", "--quick", "--json")[1]) for ending in ("parquet", "csv", "jsonl")]
    assert found[0]["verdict"] == found[1]["verdict"] == found[2]["verdict"]


def test_a_pair_that_moves_is_asked_for_at_every_moment(run, monkeypatch):
    monkeypatch.setattr("reticent.audit.moving_audit._panel", lambda options: [RefittedHmm])
    table_of(played(12, 60)).write_csv("moving.csv")
    Path("chain.json").write_text(json.dumps(MODEL.to_json()))
    code, out, _ = run("moving.csv", "--problem", "chain.json", "--confidence", 0.99)
    assert code == 0
    assert "of 2 attackers who look back, " in out.splitlines()[0]
    assert "The largest confidence in the secret of a moment that any of them justifies: " in out
    assert "pass: the bound holds in hindsight. With everything released, " in out
    assert "- 720 rows, 12 episodes in the file." in out
    found = json.loads(Path("found/audit.json").read_text())
    assert (found["moments"], found["people"], found["limit"]) == (720, 12, 0.99)
    assert found["digest"]
    assert found["over_time"]
    code, out, _ = run("moving.csv", "--problem", "chain.json", "--confidence", 0.55, "--json")
    assert (code, json.loads(out)["outcome"]) == (3, "it leaks")
