"""The tree of beliefs agrees with the lattice where both apply, and reaches what the lattice cannot."""

import pytest

from reticent.errors import InputError
from reticent.problem.bound import NO_BOUND, ConfidenceBound, InformationBound
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.release import ReleaseProcess
from reticent.solve.lattice import solve_lattice
from reticent.solve.tree import solve_tree
from tests.problems import random_model


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bound", [ConfidenceBound(0.97), InformationBound(0.3)])
def test_it_agrees_with_the_lattice(bound, seed):
    task = Task(random_model(seed), bound)
    tree, lattice = solve_tree(ReleaseProcess(task), 5), solve_lattice(task, 5)
    assert tree.upper == pytest.approx(lattice.upper, abs=1e-9)
    assert tree.lower == pytest.approx(lattice.lower, abs=1e-9)
    assert tree.first == lattice.first


def test_the_guarantee_costs_between_no_bound_and_stopping_at_once():
    free = solve_lattice(Task(two_binary_sensors(), NO_BOUND), 5).upper
    for enforce in ("withhold", "coarsen"):
        bracket = solve_tree(ReleaseProcess(Task(two_binary_sensors(), ConfidenceBound(0.6), enforce=enforce)), 5)
        # Stopping at once costs lambda / 2 here.
        assert free <= bracket.upper <= 25
        assert bracket.lower <= bracket.upper


def test_a_deeper_bracket_lies_inside():
    process = ReleaseProcess(Task(two_binary_sensors(), ConfidenceBound(0.7), enforce="withhold"))
    shallow, deep = solve_tree(process, 3), solve_tree(process, 5)
    assert shallow.lower <= deep.lower <= deep.upper <= shallow.upper


def test_too_many_nodes_are_refused_with_the_depth_reached():
    process = ReleaseProcess(Task(two_binary_sensors(), ConfidenceBound(0.7), enforce="withhold"))
    with pytest.raises(InputError, match="depth 3"):
        solve_tree(process, 6, max_nodes=100)
