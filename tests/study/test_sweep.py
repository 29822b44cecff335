"""A sweep's folder: rows are there as cells end, once each, and an interrupted sweep goes on."""

import json
import pickle
from dataclasses import replace

import polars as pl
import pytest

from reticent.errors import InputError
from reticent.problem.bound import Confidence
from reticent.problem.enforcement import Penalty
from reticent.problem.synthetic import two_binary_sensors
from reticent.study.cell import Setting
from reticent.study.finite import FiniteCell, FiniteProblem
from reticent.study.methods import METHODS
from reticent.study.plan import plan
from reticent.study.run import Done, Running, prepare, run_study
from reticent.study.spec import read_spec
from tests.sweeps import made_up, pretend


@pytest.fixture
def sweep(tmp_path):
    """Four cells."""
    (tmp_path / "p.json").write_text(json.dumps(two_binary_sensors().to_json()))
    path = tmp_path / "four.toml"
    path.write_text('problems = ["p.json"]\nconfidence = [0.7, 0.8]\nmethods = ["EJS"]\nseeds = 2\n')
    return plan(read_spec(path))


def table(out):
    return pl.read_parquet(out / "results" / "*.parquet")


def test_a_row_can_be_read_as_soon_as_its_cell_is_done(sweep, tmp_path):
    out = tmp_path / "out"
    assert prepare(sweep, out) == 0
    done = 0
    for event in run_study(sweep, out, pretend):
        if isinstance(event, Done):
            done += 1
            rows = table(out)
            assert len(rows) == done
            assert event.row["cost"] in set(rows["cost"])
    assert done == 4
    rows = table(out)
    assert set(zip(rows["limit"], rows["seed"], strict=True)) == {(0.7, 0), (0.7, 1), (0.8, 0), (0.8, 1)}
    # Numbers per class are lists, with nothing where a class never occurred.
    assert rows["accuracy_per_useful"][0].to_list() == [0.5, None]
    assert rows["accuracy_per_secret"].dtype == pl.List(pl.Float64)
    assert set(rows["problem"]) == {"p.json"}
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["cells"] == 4
    assert "seeds = 2" in provenance["spec"]


def test_an_interrupted_sweep_goes_on_where_it_was(sweep, tmp_path):
    ended = []

    def interrupted(cells, out):
        try:
            for number, event in enumerate(pretend(cells, out)):
                if number == 4:
                    raise KeyboardInterrupt
                yield event
        finally:
            ended.append(True)

    prepare(sweep, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        list(run_study(sweep, tmp_path, interrupted))
    assert ended == [True]
    assert len(table(tmp_path)) == 2
    # A file that was being written, and one that is damaged, do not count.
    (tmp_path / "results" / "half.parquet.writing").write_bytes(b"PAR1")
    next(iter((tmp_path / "results").glob("*.parquet"))).write_bytes(b"PAR1")
    assert prepare(sweep, tmp_path) == 1
    events = list(run_study(sweep, tmp_path, pretend))
    assert [event.kept for event in events if isinstance(event, Done)] == [True, False, False, False]
    assert len(table(tmp_path)) == 4
    assert not any(isinstance(event, Running) for event in run_study(sweep, tmp_path, pretend))


def test_who_stops_listening_ends_the_workers(sweep, tmp_path):
    ended = []

    def watched(cells, out):
        try:
            yield from pretend(cells, out)
        finally:
            ended.append(True)

    events = run_study(sweep, tmp_path, watched)
    next(events)
    events.close()
    assert ended == [True]


def test_results_of_another_spec_do_not_mix_in(sweep, tmp_path):
    prepare(sweep, tmp_path)
    list(run_study(sweep, tmp_path, pretend))
    fewer = replace(sweep, cells=[replace(sweep.cells[0], episodes=10), *sweep.cells[1:3]])
    assert prepare(fewer, tmp_path) == 2
    assert len(table(tmp_path)) == 2
    assert len(list((tmp_path / "set-aside").iterdir())) == 2
    assert sum(isinstance(event, Done) and not event.kept for event in run_study(fewer, tmp_path, pretend)) == 1
    assert sorted(table(tmp_path)["episodes"]) == [10, 100_000, 100_000]


def test_the_folder_of_a_study_is_left_alone(sweep, tmp_path):
    prepare(replace(sweep, spec=replace(sweep.spec, page="synthetic")), tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="holds another study"):
        prepare(sweep, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    # So is one that an older version has made.
    (tmp_path / "provenance.json").write_text('{"title": "Sweep", "sweep": {}}')
    with pytest.raises(InputError, match="holds another study"):
        prepare(sweep, tmp_path)


def test_a_worker_of_another_version_is_refused(sweep, tmp_path):
    def older(cells, out):
        del out
        yield Done(cells[0], {**made_up(cells[0]), "version": "0.0.1"})

    prepare(sweep, tmp_path)
    with pytest.raises(InputError, match=r"A worker has reticent 0.0.1, but this is"):
        list(run_study(sweep, tmp_path, older))
    assert not list((tmp_path / "results").iterdir())


def test_the_problem_travels_with_its_cell():
    problem = FiniteProblem.of("p.json", two_binary_sensors())
    cell = FiniteCell(problem, Setting(Confidence(0.8), Penalty(), METHODS["EJS"], 50.0), 0, 0, 10)
    there = pickle.loads(pickle.dumps(cell))
    assert (there, hash(there)) == (cell, hash(cell))
    assert (there.task.model.channel == problem.model.channel).all()
    # Content, not the name, tells problems apart.
    changed = replace(cell, problem=FiniteProblem.of("p.json", replace(problem.model, sensors=("left", "right"))))
    assert changed != cell
    assert changed.name != cell.name
