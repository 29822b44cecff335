"""Theorem 2 under the bound on information: below what the best policy costs that keeps it on every path."""

import pytest

from reticent.problem.bound import Information
from reticent.problem.enforcement import Mask
from reticent.problem.objective import Objective
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.tree import solve_tree
from reticent.study.methods import METHODS


@pytest.mark.slow
@pytest.mark.parametrize("bits", [0.05, 0.3])
def test_the_bounds_lie_below_the_optimum_under_the_mask(bits):
    task = Task(two_binary_sensors(), Information(bits), Objective(error_penalty=20.0), Mask())
    tree = solve_tree(Process.of(task), 9, max_nodes=10**6)
    found = METHODS["lower bound"].prepare(task, 0, 20)(64, 1)
    # The tree's upper end is the cost of a policy, so the optimum is no more than that.
    assert 0 < found["theorem_2"]["value"] <= found["cost"]["high"]
    assert found["cost"]["low"] <= tree.upper
    assert found["theorem_2"]["value"] <= tree.upper
