"""The study on recordings, end to end on a small table of one's own."""

import json
from dataclasses import replace
from itertools import chain
from logging.handlers import QueueHandler
from queue import Queue

import numpy as np
import polars as pl
import pytest

from reticent.belief.learn import Settings
from reticent.data.load import Source
from reticent.data.readings import ReadingKind
from reticent.report.recordings import recordings_table, write_recordings_report
from reticent.study.recordings import (
    LearnCell,
    PolicyCell,
    Setting,
    fingerprint,
    plan,
    recorded_readings,
    study_recordings,
)
from reticent.study.run import PROGRESS

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
TINY = Setting(
    steps=2_000,
    episodes=300,
    readings=3,
    confidence=(0.5, 0.8),
    information=(0.5, 1.5, 2.0),
    guarantee=(0.6,),
    learning=Settings(updates=20, batch=16, readings=3, between=10, held_out_episodes=64),
)


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


def test_every_limit_is_run_those_above_the_entropy_too(source):
    # The secret has one bit, but the sum of information along a path can exceed it.
    learning, policies = plan(source, ReadingKind("sample"), TINY, 2)
    assert [cell.of.rotation for cell in learning] == [0, 1]
    names = [(cell.policy, cell.limit) for cell in policies if cell.of.rotation == 0]
    assert names == [
        ("no protection", 0.0),
        ("belief-PDRP", 0.5),
        ("belief-PDRP", 0.8),
        ("MI-PDRP", 0.5),
        ("MI-PDRP", 1.5),
        ("MI-PDRP", 2.0),
        ("guarantee", 0.6),
    ]
    assert len({cell.name for cell in [*learning, *policies]}) == len(learning) + len(policies)


def test_other_data_in_the_same_place_are_other_cells(source):
    recorded = recorded_readings(source, ReadingKind("sample"))
    other = replace(recorded, values=recorded.values + 1)
    assert fingerprint(recorded) == fingerprint(replace(recorded))
    assert fingerprint(recorded) != fingerprint(other)


def test_the_table_shows_limits_above_the_entropy_like_the_others():
    one = {"policy": "MI-PDRP", "rotation": 0, "releases": 3.0, "violation_rate": 0.0, "confidence_useful": 0.9}
    one |= {f"{kind}_{label}": 0.8 for kind in ("retrained", "accuracy", "balanced") for label in ("useful", "secret")}
    one |= {f"per_{label}": [0.7, 0.9] for label in ("useful", "secret")}
    one |= {
        f"{name}_{end}": None for name in ("retrained_useful", "retrained_secret", "gap") for end in ("low", "high")
    }
    rows = recordings_table(pl.DataFrame([{**one, "limit": limit} for limit in (0.5, 2.0)]))
    assert [row[:3] for row in rows] == [["MI-PDRP", "0.5 bits", "3.00"], ["MI-PDRP", "2 bits", "3.00"]]


@pytest.mark.slow
def test_the_study_from_files_to_page(source, tmp_path):
    told, said = [], Queue()
    handler = QueueHandler(said)
    PROGRESS.addHandler(handler)

    def tell(cell: LearnCell | PolicyCell, was_there: bool, total: int) -> None:
        told.append((cell.name, was_there, total))

    results = pl.read_parquet(study_recordings(source, ReadingKind("sample"), TINY, 1, tmp_path, tell))
    PROGRESS.removeHandler(handler)
    assert len(told) == 8
    # Workers say how learning goes.
    sentences = [said.get().getMessage() for _ in range(said.qsize())]
    for start in ("belief 0: update 10, loss ", "generator 0: update 20", "adversary 0: update 10", "agent 0: step "):
        assert any(sentence.startswith(start) for sentence in sentences)
    assert not any(was_there for _, was_there, _ in told)
    silent = results.filter(pl.col("policy") == "belief-PDRP", pl.col("limit") == 0.5)
    assert silent["releases"].item() == 0
    kept = results.filter(pl.col("policy") == "guarantee")
    assert kept["violation_rate"].item() == 0
    assert results.filter(pl.col("policy") == "MI-PDRP")["violation_rate"].max() == 0
    page = write_recordings_report(tmp_path).read_text()
    assert page.count("<figure>") == 5
    assert "2 bits" in page
    assert "bits, free" not in page
    assert len(recordings_table(results)) == 7
    people = json.loads((tmp_path / "cells" / "learned_rotation-0.json").read_text())["people"]
    assert sorted(chain(*people.values())) == ["p0", "p1", "p2", "p3"]
    assert "calibration error of the finite model" in page
    # Run again, nothing is done twice.
    study_recordings(source, ReadingKind("sample"), TINY, 1, tmp_path, tell)
    assert all(was_there for _, was_there, _ in told[8:])
    assert len(told) == 16
