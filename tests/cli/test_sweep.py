"""`reticent sweep` and `reticent report` as a user meets them."""

import json

import polars as pl
import pytest

from reticent.problem.synthetic import two_binary_sensors
from reticent.process.cores import cores
from reticent.study.plan import plan
from reticent.study.run import prepare
from reticent.study.saved import Store
from reticent.study.spec import SHIPPED, read_spec
from tests.commands import commands
from tests.sweeps import made_up

SPEC = """problems = ["p1.json"]
confidence = [0.7, 0.8]
enforce = ["penalty", "mask"]
methods = ["random sensor"]
seeds = 2
episodes = 500
"""


@pytest.fixture
def reticent(monkeypatch, capsys, tmp_path):
    """Run a command in a folder with a spec; returns exit code, stdout, stderr. Nothing is drawn."""
    monkeypatch.setattr("reticent.report.write.save_figures", lambda *_: None)
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda snippet: snippet)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p1.json").write_text(json.dumps(two_binary_sensors().to_json()))
    (tmp_path / "my.toml").write_text(SPEC)
    return commands(monkeypatch, capsys)


def test_a_sweep_from_file_to_report(reticent, tmp_path, monkeypatch):
    # One worker: here it costs more to start than to compute.
    monkeypatch.setattr("reticent.study.run.cores", lambda: cores()[:1])
    code, out, err = reticent("sweep", "my.toml", "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["cells"], record["new"]) == (4, 4)
    assert record["left_out"] == [
        "A bound on confidence is not kept by mask, but by penalty or withhold or coarsen or answer or paper."
    ]
    assert "Left out: A bound on confidence" in err
    assert "done  4 of 4: L_B" in err
    rows = pl.read_parquet(tmp_path / record["results"])
    assert len(rows.unique(["limit", "seed"])) == len(rows) == 4
    # With one bound less nothing is run again, and what is no longer asked for does not mix in.
    (tmp_path / "my.toml").write_text(SPEC.replace("seeds = 2", "seeds = [0, 1]").replace("[0.7, 0.8]", "[0.7]"))
    code, out, err = reticent("sweep", "my.toml")
    assert code == 0
    assert "2 cells, of which 0 new" in out
    assert "2 results in reticent-my belong to other cells or settings: moved to reticent-my/set-aside." in err
    assert "Next: reticent report reticent-my" in out
    assert err.count("kept  ") == 2
    code, out, _ = reticent("report", "reticent-my", "--json")
    record = json.loads(out)
    assert code == 0
    [setting] = record["settings"]
    assert (setting["seeds"], setting["fronts"], setting["limit"]) == (2, "abcd", 0.7)
    assert setting["paid"] == pytest.approx(rows.filter(pl.col("limit") == 0.7)["cost"].mean())
    assert "2 of 2 cells are finished" in (tmp_path / record["report"]).read_text()
    code, out, _ = reticent("report", "reticent-my")
    assert "Settings that no other beats" in out
    assert "L_B 0.7" in out
    assert "a: least cost for its accuracy on S." in out


def test_a_report_of_a_study_is_drawn_again(reticent, tmp_path):
    study = plan(read_spec(SHIPPED / "synthetic-quick.toml"))
    prepare(study, tmp_path)
    for cell in study.cells:
        Store(tmp_path).write(cell, made_up(cell))
    code, out, _ = reticent("report", ".")
    assert (code, out) == (0, f"Report: {tmp_path / 'report.html'}\n")
    assert "The synthetic study, quick setting" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("sweep", "none.toml"), "Cannot read the sweep file 'none.toml'"),
        (("sweep", "my.toml", "--address", "here:1"), "add --on ray"),
        (("sweep", "my.toml", "--out", "p1.json"), "Cannot make the folder 'p1.json/results'"),
        (("sweep", "my.toml", "--on", "ray", "--address", "127.0.0.1:1"), "No Ray cluster can be reached at '127."),
        (("report", "."), "'.' is not a folder of a sweep, a study or an audit."),
        (("report", "begun"), "No cell of the study in 'begun' is finished yet."),
        (("report", "older"), "'older' was made by reticent 0.4 or earlier"),
        (("sweep", "my.toml", "--out", "older"), "'older' holds another study"),
    ],
)
def test_bad_input_ends_with_one_sentence_and_code_two(reticent, tmp_path, words, sentence):
    for name, said in (("begun", '{"title": "Sweep", "page": "sweep"}'), ("older", '{"title": "Sweep", "sweep": {}}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "provenance.json").write_text(said)
    code, out, err = reticent(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


def test_without_ray_the_sentence_says_how_to_get_it(reticent, monkeypatch):
    monkeypatch.setattr("reticent.study.cluster.find_spec", lambda name: None)
    code, out, err = reticent("sweep", "my.toml", "--on", "ray")
    assert (code, out) == (2, "")
    assert "pip install 'reticent[ray]'" in err
