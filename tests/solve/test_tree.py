"""The tree of beliefs agrees with the lattice where both apply, and reaches what the lattice cannot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.errors import InputError
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Withhold, named_enforcement
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.lattice import solve_lattice
from reticent.solve.tree import solve_tree
from tests.problems import random_model


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bound", [Confidence(0.97), Information(0.3)])
def test_it_agrees_with_the_lattice(bound, seed):
    task = Task(random_model(seed), bound)
    tree, lattice = solve_tree(Process.of(task), 5), solve_lattice(task, 5)
    assert tree.upper == pytest.approx(lattice.upper, abs=1e-9)
    assert tree.lower == pytest.approx(lattice.lower, abs=1e-9)
    assert tree.first == lattice.first


def by_recursion(process, public, horizon):
    """V = min(stop, min_a E[cost + V']), one state after the other."""
    stop = float(process.stop_cost(public.belief))
    if horizon == 0:
        return stop
    look, costs = jax.device_get(process.outlook(public)), [stop]
    for sensor in np.flatnonzero(public.allowed[:-1]):
        cost = 0.0
        for symbol in np.flatnonzero(look.law[sensor]):
            after = process.public(jnp.asarray(look.belief[sensor, symbol]), jnp.zeros(()))
            follows = by_recursion(process, after, horizon - 1)
            cost += look.law[sensor, symbol] * (look.cost[sensor, symbol] + follows)
        costs.append(cost)
    return min(costs)


@pytest.mark.parametrize("enforce", ["withhold", "coarsen"])
def test_under_the_guarantee_it_agrees_with_plain_recursion(enforce):
    process = Process.of(Task(two_binary_sensors(), Confidence(0.65), enforcement=named_enforcement(enforce)))
    bracket = solve_tree(process, 2)
    assert bracket.upper == pytest.approx(by_recursion(process, process.init(jax.random.key(0)).public, 2), abs=1e-9)
    # Something is said: stopping at once costs lambda / 2. And the bound has its price.
    assert bracket.upper < 24
    assert bracket.upper > solve_lattice(Task(two_binary_sensors(), Confidence(0.99)), 2).upper + 0.01


def test_a_deeper_bracket_lies_inside():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.7), enforcement=Withhold()))
    shallow, deep = solve_tree(process, 3), solve_tree(process, 5)
    assert shallow.lower <= deep.lower <= deep.upper <= shallow.upper


def test_too_many_nodes_are_refused_with_the_depth_reached():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.7), enforcement=Withhold()))
    with pytest.raises(InputError, match="depth 5"):
        solve_tree(process, 6, max_nodes=100)
