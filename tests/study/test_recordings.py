"""The study on recordings, end to end on a small table of one's own."""

from dataclasses import replace
from itertools import chain
from logging.handlers import QueueHandler
from queue import Queue
from typing import Any

import numpy as np
import polars as pl
import pytest

from reticent.belief.training import Settings
from reticent.data.load import Source
from reticent.data.readings import ReadingKind
from reticent.errors import InputError
from reticent.report.recordings import recordings_rows, recordings_table
from reticent.report.results import read_results
from reticent.report.write import write_report
from reticent.study.learned import Conditions
from reticent.study.plan import plan
from reticent.study.recordings import Recordings, fingerprint, recorded_readings
from reticent.study.run import PROGRESS, Done, on_all_cores, prepare, run_study
from reticent.study.spec import SHIPPED, read_spec

MAP = """
files = "*.parquet"
person = "who"
rate = 10
[sensors]
arm = ["x"]
leg = ["y"]
[useful]
column = "posture"
[secret]
column = "smokes"
"""
SPEC = """page = "recordings"
steps = 2_000
episodes = 300
seeds = 1
[[grid]]
unbounded = true
methods = ["no protection"]
[[grid]]
confidence = [0.5, 0.8]
[[grid]]
information = [0.5, 1.5, 2.0]
[[grid]]
confidence = [0.5, 0.6]
enforce = ["coarsen"]
methods = ["one-step lookahead"]
"""
TINY = Conditions(readings=3, learning=Settings(updates=20, batch=16, readings=3, between=10, held_out_episodes=64))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    rng = np.random.default_rng(0)
    for person in range(4):
        for posture in (0, 1):
            for smokes in (0, 1):
                values = {"x": rng.normal(posture, 0.7, size=200), "y": rng.normal(smokes, 0.7, size=200)}
                labels = {"who": f"p{person}", "posture": f"u{posture}", "smokes": f"s{smokes}"}
                pl.DataFrame({**labels, **values}).write_parquet(folder / f"{person}{posture}{smokes}.parquet")
    (folder / "map.toml").write_text(MAP)
    return Source("table", folder, map=folder / "map.toml")


@pytest.fixture(scope="module")
def recordings(source):
    return Recordings.of(source, ReadingKind("sample"), TINY)


@pytest.fixture
def study(recordings, tmp_path):
    (tmp_path / "tiny.toml").write_text(SPEC)
    return plan(read_spec(tmp_path / "tiny.toml", recordings))


def of_table(study, table) -> list[Any]:
    return [cell for cell in study.cells if cell.table == table]


def test_every_limit_is_run_those_above_the_entropy_too(recordings, tmp_path):
    (tmp_path / "two.toml").write_text(SPEC.replace("seeds = 1", "seeds = 2"))
    study = plan(read_spec(tmp_path / "two.toml", recordings))
    assert [cell.seed for cell in of_table(study, "learned")] == [0, 1]
    rows = [cell.identity() for cell in of_table(study, "results")]
    found = [(row["bound"], row["limit"], row["enforcement"], row["method"]) for row in rows if row["seed"] == 0]
    # The secret has one bit, but the sum of information along a path can exceed it.
    assert found == [
        ("unbounded", None, "penalty", "no protection"),
        ("confidence", 0.5, "penalty", "ppo"),
        ("confidence", 0.8, "penalty", "ppo"),
        ("information", 0.5, "mask", "ppo"),
        ("information", 1.5, "mask", "ppo"),
        ("information", 2.0, "mask", "ppo"),
        ("confidence", 0.6, "coarsen", "one-step lookahead"),
    ]
    # The prior alone reaches the other limit of the guarantee.
    assert study.left_out == [
        "table: The confidence bound 0.5 is not above 0.5, the largest prior probability of a secret: it would be "
        "crossed before anything is released."
    ]
    assert len({cell.name for cell in of_table(study, "results")}) == 2 * len(found)
    # Steps that are run: an update has 128 environments and 16 steps.
    assert {row["effort"] for row in rows if row["method"] == "ppo"} == {2_048}
    # Intervals are over both rotations of a setting, and others when what they are over has changed.
    people = of_table(study, "people")
    assert [len(cell.needs) for cell in people] == [2] * len(found)
    longer = plan(read_spec(tmp_path / "two.toml", recordings, {"episodes": 500}))
    assert not any(cell.identity() in [other.identity() for other in of_table(longer, "people")] for cell in people)


def test_everybody_is_measured_once_unless_the_file_says_so(recordings):
    shipped = [plan(read_spec(SHIPPED / f"recordings{end}.toml", recordings)) for end in ("", "-quick")]
    assert [len(of_table(study, "learned")) for study in shipped] == [4, 1]
    assert [study.spec.title for study in shipped] == ["The study on table"] * 2
    limits = [[cell.setting.bound.number for cell in of_table(study, "people")] for study in shipped]
    guarantee, others = [0.52, 0.55, 0.65, 0.8, 0.95], 2 * [0.55, 0.65, 0.8, 0.95]
    assert limits[0][:12] == [None, 0.5, 0.65, 0.8, 0.95, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
    assert limits[0][12:17] == guarantee
    assert sorted(limits[0][17:]) == sorted(others)
    assert limits[1] == [None, 0.65, 0.95, 0.5, 1.25, 0.52, 0.65]


def test_what_recordings_cannot_have_is_left_out_and_said(recordings, tmp_path):
    text = 'confidence = [0.8]\nenforce = ["penalty", "paper", "answer"]\nmethods = ["ppo", "value-iteration"]\n'
    (tmp_path / "odd.toml").write_text(text)
    study = plan(read_spec(tmp_path / "odd.toml", recordings))
    assert {cell.setting.enforcement.name for cell in of_table(study, "results")} == {"penalty", "paper"}
    assert study.left_out == [
        "table: The method 'value-iteration' is not for recordings.",
        "Answers need the method value-iteration, not ppo.",
    ]
    (tmp_path / "odd.toml").write_text("expected_information = [0.5]\n")
    with pytest.raises(InputError, match="bound on expected information cannot be kept: give confidence or info"):
        plan(read_spec(tmp_path / "odd.toml", recordings))


def test_other_data_in_the_same_place_are_other_cells(source):
    recorded = recorded_readings(source, ReadingKind("sample"))
    other = replace(recorded, values=recorded.values + 1)
    assert fingerprint(recorded) == fingerprint(replace(recorded))
    assert fingerprint(recorded) != fingerprint(other)


def test_other_conditions_are_other_cells(source, recordings):
    assert Recordings.of(source, ReadingKind("sample"), replace(TINY, codes=5)).digest != recordings.digest
    assert Recordings.of(source, ReadingKind("sample"), replace(TINY)).digest == recordings.digest


def test_the_table_shows_limits_above_the_entropy_like_the_others():
    one = {"policy": "MI-PDRP", "bound": "information", "enforcement": "mask", "method": "ppo", "seed": 0}
    one |= {"releases": 3.0, "violation_rate": 0.0, "confidence_useful": 0.9}
    one |= {f"{kind}_{label}": 0.8 for kind in ("retrained", "accuracy", "balanced") for label in ("useful", "secret")}
    one |= {f"per_{label}": [0.7, 0.9] for label in ("useful", "secret")}
    one |= {
        f"{name}_{end}": None for name in ("retrained_useful", "retrained_secret", "gap") for end in ("low", "high")
    }
    rows = recordings_table(pl.DataFrame([{**one, "limit": limit} for limit in (0.5, 2.0)]))
    assert [row[:3] for row in rows] == [["MI-PDRP", "0.5 bits", "3.00"], ["MI-PDRP", "2 bits", "3.00"]]


@pytest.mark.slow
def test_the_study_from_files_to_page(study, tmp_path):
    out, said = tmp_path / "out", Queue()
    handler = QueueHandler(said)
    PROGRESS.addHandler(handler)
    prepare(study, out)
    told = [event for event in run_study(study, out, on_all_cores) if isinstance(event, Done)]
    PROGRESS.removeHandler(handler)
    # What is learned, seven policies, and for each the intervals over people.
    assert len(told) == 1 + 7 + 7
    # Workers say how learning goes.
    sentences = [said.get().getMessage() for _ in range(said.qsize())]
    for start in (
        "belief 0: update 10, loss ",
        "observation model 0: update 20",
        "adversary 0: update 10",
        "agent 0: step ",
    ):
        assert any(sentence.startswith(start) for sentence in sentences)
    assert not any(event.kept for event in told)
    results = recordings_rows(read_results(out))
    silent = results.filter(pl.col("policy") == "belief-PDRP", pl.col("limit") == 0.5)
    assert silent["releases"].item() == 0
    kept = results.filter(pl.col("policy") == "guarantee")
    assert kept["violation_rate"].item() == 0
    assert results.filter(pl.col("policy") == "MI-PDRP")["violation_rate"].max() == 0
    page = write_report(out).read_text()
    assert page.count("<figure>") == 5
    assert "2 bits" in page
    assert "bits, free" not in page
    assert len(recordings_table(results)) == 7
    people = pl.read_parquet(out / "learned" / "*.parquet").row(0, named=True)
    portions = [people[f"people_{name}"] for name in ("predictor", "policy", "adversary", "measured")]
    assert sorted(chain(*portions)) == ["p0", "p1", "p2", "p3"]
    assert "calibration error of the finite model" in page
    # Run again, nothing is done twice.
    again = [event for event in run_study(study, out, on_all_cores) if isinstance(event, Done)]
    assert len(again) == 15
    assert all(event.kept for event in again)


LETTER = """page = "recordings"
steps = 1_000
episodes = 300
seeds = 1
[choices]
entropy = 0.2
[[grid]]
unbounded = true
methods = ["no protection"]
as_printed = true
[[grid]]
confidence = [0.5, 0.8]
information = [0.5, 2.0]
enforce = ["paper"]
methods = ["a2c"]
as_printed = true
[[grid]]
confidence = [0.8]
information = [0.5]
methods = ["ppo"]
[[grid]]
confidence = [0.8]
methods = ["randomised response"]
"""


def letter_of(recordings, folder):
    (folder / "letter.toml").write_text(LETTER)
    return plan(read_spec(folder / "letter.toml", recordings))


def test_to_the_letter_readings_and_belief_are_the_papers_and_the_rest_stays(recordings, tmp_path):
    study = letter_of(recordings, tmp_path)
    rows = [cell.identity() for cell in of_table(study, "results")]
    printed = [row for row in rows if row["as_printed"]]
    assert {(row["problem"], row["reading"], row["belief_sees"]) for row in printed} == {
        ("table, as printed", "one sample", "the last 2")
    }
    assert {(row["bound"], row["enforcement"], row["method"]) for row in printed} == {
        ("unbounded", "penalty", "no protection"),
        ("confidence", "paper", "a2c"),
        ("information", "paper", "a2c"),
    }
    assert {row["belief_sees"] for row in rows if not row["as_printed"]} == {"all readings"}
    # Each learns for itself, in a folder of its own.
    learning = of_table(study, "learned")
    assert len({cell.folder(tmp_path) for cell in learning}) == len(learning) == 2
    # An update of the paper's agent has 128 environments and four steps; the belief is all that it sees.
    agents = [cell for cell in of_table(study, "results") if cell.setting.method.name == "a2c"]
    assert {cell.steps for cell in agents} == {1_024}
    recipe = agents[0].setting.method.recipe_on_recordings
    assert (recipe.inputs, recipe.entropy, recipe.greedy) == ("belief", 0.2, False)


@pytest.mark.slow
def test_the_letter_from_files_to_page_beside_the_corrected_study(recordings, tmp_path):
    study, out = letter_of(recordings, tmp_path), tmp_path / "out"
    prepare(study, out)
    told = [event for event in run_study(study, out, on_all_cores) if isinstance(event, Done)]
    assert len(told) == 2 + 8 + 8
    rows = recordings_rows(read_results(out))
    silent = rows.filter(pl.col("policy") == "letter: belief-PDRP", pl.col("limit") == 0.5)
    assert silent["releases"].item() == 0
    assert rows.filter(pl.col("policy") == "randomised response")["variant"].item().startswith("epsilon ")
    assert set(rows.filter(pl.col("policy") == "letter: MI-PDRP")["promise"]) == {"none"}
    assert rows.filter(pl.col("policy") == "MI-PDRP")["violation_rate"].item() == 0
    page = write_report(out).read_text()
    assert "all readings; the last 2 (to the letter)" in page
    assert page.count("<figure>") == 9
    assert {row[0] for row in recordings_table(rows)} == {
        "letter: unprotected",
        "letter: belief-PDRP",
        "letter: MI-PDRP",
        "belief-PDRP",
        "MI-PDRP",
        "randomised response",
    }
