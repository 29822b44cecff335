"""Floors and ceilings from end to end, on a problem that `certify` takes for too large but the lattice still solves."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.evaluate.estimate import Estimate, exact
from reticent.policy.heuristics import OneStepLookahead
from reticent.problem.bound import Bound, Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import Lagrangian, Withhold, named_enforcement
from reticent.problem.model import Model
from reticent.problem.objective import Objective
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.certificate import PAIRS, Certificate, Effort, PolicyInProcess, certify
from reticent.solve.expected_information import solve_expected
from reticent.solve.lattice import solve_lattice
from reticent.solve.tree import solve_tree

SHORT = Effort(rounds=4, draws=32, episodes=8_000)


def task_of(bound: Bound, enforce: str) -> Task:
    """Two sensors of four symbols."""
    rng = np.random.default_rng(0)
    sizes = {"secrets": 2, "useful": 2, "sensors": 2, "symbols": 4}
    names: dict[str, Any] = {kind: tuple(f"{kind} {i}" for i in range(size)) for kind, size in sizes.items()}
    channel = rng.dirichlet(np.ones(4), size=(2, 2, 2))
    assert channel.shape[0] * channel.shape[3] > PAIRS
    model = Model(prior=np.full((2, 2), 0.25), channel=channel, **names)
    # Mistakes are cheap, so that episodes are short.
    return Task(model, bound, Objective(error_penalty=20.0), named_enforcement(enforce), horizon=40)


def test_a_wide_gap_is_said_in_multiples_of_the_lower_bound():
    upper = Estimate(34.9, 34.8, 35.0, "normal")
    found = Certificate(exact(13.85), upper, "relaxation", "the problem without any bound")
    assert found.ratio == pytest.approx(2.51986, abs=1e-5)
    assert "this one costs 34.9 [34.8, 35]: 2.520 times the lower bound." in found.sentence()
    assert found.to_json()["ratio"] == found.ratio
    free = Certificate(exact(0.0), exact(1.5), "exact bracket", "by solving")
    assert "this one costs 1.5: 1.5 more." in free.sentence()
    assert json.loads(json.dumps(free.to_json(), allow_nan=False))["ratio"] is None


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True])
def test_floor_and_ceiling_enclose_the_optimum(own):
    task = task_of(Confidence(0.8), "penalty")
    stages = {}
    process = Process.of(task)
    candidate = PolicyInProcess(process, OneStepLookahead(process)) if own else None
    found = certify(task, candidate, 0, SHORT, lambda doing, done, total: stages.__setitem__(doing, (done, total)))
    optimum = solve_lattice(task).upper
    assert found.kind == "dual bound"
    # Four standard errors.
    assert found.lower.value - 2 * (found.lower.high - found.lower.value) <= optimum
    assert found.upper.value + 2 * (found.upper.high - found.upper.value) >= optimum
    # Every stage was told to its end.
    assert len(stages) == 3
    assert all(done == total for done, total in stages.values())


@pytest.mark.slow
def test_a_limit_on_every_path_has_the_floor_of_a_limit_on_average():
    task = task_of(Information(0.2), "mask")
    found = certify(task, None, 0, SHORT)
    assert found.kind == "relaxation"
    # The optimum with the limit on average, exact up to eight releases; four standard errors. With four rounds of
    # learning the lower bound came within 10 % of it.
    average = solve_expected(replace(task, bound=ExpectedInformation(0.2), enforcement=Lagrangian()), 8).cost
    assert 0.85 * average < found.lower.value < average + 2 * (found.lower.high - found.lower.value)
    # The optimum with the limit on every path lies above, and no policy costs less.
    assert average < solve_lattice(task, 6).lower <= found.upper.value + 2 * (found.upper.high - found.upper.value)


def test_answers_are_certified_by_their_policy():
    with pytest.raises(InputError, match="certified with their rule"):
        certify(task_of(Confidence(0.8), "answer"))


def test_an_open_bracket_is_not_called_exact_and_lies_above_the_optimum_without_bound():
    rng = np.random.default_rng(2)
    names: dict[str, Any] = {
        "secrets": ("s0", "s1"),
        "useful": ("u0", "u1"),
        "sensors": ("a",),
        "symbols": ("0", "1", "2"),
    }
    model = Model(np.full((2, 2), 0.25), rng.dirichlet(np.ones(3), size=(1, 2, 2)), **names)
    task = Task(model, Confidence(0.6), enforcement=Withhold())
    found = certify(task)
    unbounded = solve_lattice(Task(model, Unbounded()), max_nodes=100_000)
    alone = solve_tree(Process.of(task), 3).lower
    assert found.kind == "exact bracket"
    assert found.lower.value >= max(unbounded.lower, alone) - 1e-9
    assert unbounded.lower > alone + 0.1
    assert "still open" in found.sentence()
