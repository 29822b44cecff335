"""The exact tree of a problem that goes on, by hand and against simulation."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.policy.ongoing import CheapestStep
from reticent.problem.bound import Confidence
from reticent.problem.model import Model
from reticent.problem.monitoring import Monitoring
from reticent.problem.objective import Objective
from reticent.problem.synthetic import tells_useful
from reticent.process.days import play_days
from reticent.process.ongoing import OngoingProcess
from reticent.solve.ongoing_tree import first_steps
from tests.problems import random_chain

FRESH = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.5, 0.5], [0.5, 0.5]]}
STEADY = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[1.0, 0.0], [0.0, 1.0]]}


def test_by_hand_of_a_sensor_that_names_the_useful_value():
    # Drawn anew, it must be asked for at each step, C_T each; where it stays, once is enough.
    assert first_steps(Monitoring(tells_useful().moving(FRESH), Confidence(0.8)), 3).cost == pytest.approx(3.0)
    steady = first_steps(Monitoring(tells_useful().moving(STEADY), Confidence(0.8)), 3)
    assert (steady.cost, steady.action) == (pytest.approx(1.0), 0)
    # At these prices it does not pay: a wrong guess costs lambda / 2 = .5 in each of three steps, or .5 discounted.
    dear = Monitoring(tells_useful().moving(FRESH), Confidence(0.8), Objective(1.0, 1.0))
    assert first_steps(dear, 3).action == 1
    assert first_steps(dear, 3, discount=0.5).cost == pytest.approx(0.5 * 1.75)


def some_task():
    moves = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.7, 0.3], [0.3, 0.7]]}
    model = replace(random_chain(0, sensors=2, symbols=2), prior=np.full((2, 2), 0.25)).moving(moves)
    return Monitoring(model, Confidence(0.7), horizon=3)


def test_keeping_the_bound_costs_something():
    found = first_steps(some_task(), 2)
    assert found.lower < found.cost


@pytest.mark.slow
def test_no_policy_is_cheaper():
    task = some_task()
    found = first_steps(task, 3)
    process = OngoingProcess(task)
    played = play_days(process, CheapestStep(process).act, 4_000, seed=0).cost.sum(1)
    error = played.std() / np.sqrt(len(played))
    # One-step lookahead is nearly optimal over so few steps.
    assert found.cost < played.mean() + 4 * error
    assert played.mean() < 1.05 * found.cost


def test_too_large_a_tree_is_refused():
    model = Model.from_json(random_chain(0, sensors=3, symbols=6).to_json())
    with pytest.raises(InputError, match="Choose fewer steps"):
        first_steps(Monitoring(replace(model, prior=np.full((2, 2), 0.25)), Confidence(0.9)), 9)
