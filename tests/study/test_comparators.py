"""Mechanisms of others as methods of a study."""

import numpy as np
import polars as pl
import pytest

from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.enforcement import Coarsen, Penalty
from reticent.problem.mechanisms import EPSILONS, MECHANISMS
from reticent.problem.model import Model
from reticent.problem.task import Task
from reticent.study.baselines import Comparator
from reticent.study.cell import Setting
from reticent.study.finite import FiniteCell, FiniteProblem
from reticent.study.methods import METHODS
from reticent.study.saved import Store

# One sensor tells U well and S hardly, over three symbols.
CHANNEL = [[[[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]], [[0.8, 0.05, 0.15], [0.05, 0.8, 0.15]]]]
MODEL = Model(None, CHANNEL, ("s0", "s1"), ("u0", "u1"), ("a",))


def comparator(name) -> Comparator:
    method = METHODS[name]
    assert isinstance(method, Comparator)
    return method


def test_without_a_bound_the_least_noise_costs_least():
    task = Task(MODEL, Unbounded(), horizon=20)
    assert comparator("randomised response").mechanism(task, 0).variant == f"epsilon {max(EPSILONS):g}"


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_cell_says_which_variant_was_taken(name, tmp_path):
    problem = FiniteProblem.of("mine", MODEL)
    cells = [
        FiniteCell(problem, Setting(Confidence(0.7), Penalty(), METHODS[method], 50.0), 0, 0, 4_000)
        for method in (name, "one-step lookahead")
    ]
    row, readings = (cell.run(tmp_path) for cell in cells)
    assert row["variant"] in {each.variant for each in MECHANISMS[name](MODEL)}
    assert readings["variant"] is None
    # Stopping at once would cost 25. It may cost less than the readings: what is blurred crosses the bound less often.
    assert row["cost_high"] < 25
    assert row["releases"] >= 1
    store = Store(tmp_path)
    store.prepare(cells)
    for cell, found in zip(cells, (row, readings), strict=True):
        store.write(cell, {**cell.identity(), **found})
    assert pl.read_parquet(tmp_path / "results" / "*.parquet")["variant"].null_count() == 1


def test_what_replaces_readings_already_needs_no_mechanism():
    reason = comparator("privacy funnel").unsuited(Confidence(0.7), Coarsen())
    assert reason == "'privacy funnel' replaces every reading already, so it does not go with coarsen."
    assert comparator("privacy funnel").unsuited(Confidence(0.7), Penalty()) is None
    assert METHODS["ppo"].mechanism(Task(MODEL, Confidence(0.7)), 0) is None


def test_the_choice_is_that_of_least_cost():
    task = Task(MODEL, Confidence(0.7), horizon=20)
    method = comparator("randomised response")
    tried = MECHANISMS[method.name](MODEL)
    costs = [method._cost(Task(each.model(MODEL), task.bound, horizon=20), 3) for each in tried]
    assert method.mechanism(task, 3) == tried[int(np.argmin(costs))]
