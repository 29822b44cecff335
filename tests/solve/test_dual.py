"""The dual bound stays below the optimal cost, for any value function, and meets it with the right one."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.evaluate.estimate import mean
from reticent.policy.lookahead import ValueFunction, value_network
from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.enforcement import Mask
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve import refine
from reticent.solve.certificate import dual_bound, upper_bound
from reticent.solve.dual import lower_bound_draws
from reticent.solve.lattice import solve_lattice
from reticent.solve.value_iteration import Settings

ITERATION = Settings(rounds=40, groups=2, lanes=32, width=32, learning_rate=1e-2)
QUICK = refine.Settings(rounds=10, looks=512, kept=2**12, steps=32, batch=128, iteration=ITERATION)


def raw_value(process, seed, scale):
    """A network that nobody trained."""
    network = value_network(process, 16, jax.random.key(seed))
    last = network.layers[-1]
    network = eqx.tree_at(lambda n: n.layers[-1].weight, network, scale * last.weight)
    return ValueFunction(process, network)


@pytest.mark.parametrize(("seed", "scale"), [(0, 0.0), (1, 30.0), (2, 100.0)])
def test_it_is_a_lower_bound_whatever_the_value(seed, scale):
    task = Task(two_binary_sensors(), Confidence(0.8))
    process = Process.of(task)
    drawn = lower_bound_draws(process, raw_value(process, seed, scale), 512, seed)
    # One-sided: four standard errors above the optimum would be one draw in thirty thousand.
    estimate = mean(drawn.cost)
    assert estimate.value - 2 * (estimate.high - estimate.value) < solve_lattice(task).lower


@pytest.mark.slow
@pytest.mark.parametrize("bound", [Confidence(0.7), Unbounded()])
def test_with_a_learned_value_both_sides_meet_at_the_exact_cost(bound):
    task = Task(two_binary_sensors(), bound)
    process = Process.of(task)
    optimum = solve_lattice(task).upper
    policy = refine.refined_policy(process, 0, QUICK)
    lower, excess, paper = dual_bound(policy.process, policy.value, 512, 1)
    upper = upper_bound(process, policy, 20_000, 2, policy.value)
    assert lower.low <= optimum <= upper.high
    assert upper.value - lower.value < 0.05 * optimum
    # Theorem 2 needs its condition at every belief, so it pays for the worst error: the dual bound only for the mean.
    assert excess >= 0
    assert paper <= lower.value


@pytest.mark.slow
def test_the_control_variate_changes_the_noise_and_not_the_mean():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.7)))
    policy = refine.refined_policy(process, 0, QUICK)
    plain, controlled = (upper_bound(process, policy, 20_000, 5, value) for value in (None, policy.value))
    width = plain.high - plain.low
    assert abs(plain.value - controlled.value) < width
    assert controlled.high - controlled.low < 0.6 * width


@pytest.mark.slow
def test_sharpening_is_the_same_for_the_same_seed():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.7)))
    short = replace(QUICK, rounds=2, iteration=replace(ITERATION, rounds=2))
    one, again, other = (refine.refined_policy(process, seed, short).value.network for seed in (0, 0, 1))
    assert jax.tree.all(jax.tree.map(np.array_equal, one, again))
    assert not jax.tree.all(jax.tree.map(np.array_equal, one, other))


def test_inadmissible_sensors_are_left_out():
    task = Task(two_binary_sensors(), Confidence(0.7), enforcement=Mask())
    process = Process.of(task)
    drawn = lower_bound_draws(process, raw_value(process, 0, 0.0), 256, 0)
    assert np.isfinite(drawn.cost).all()
    assert mean(drawn.cost).low < solve_lattice(task).upper


def test_draws_are_the_same_for_the_same_seed():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    value = raw_value(process, 0, 1.0)
    one, two = lower_bound_draws(process, value, 40, 3), lower_bound_draws(process, value, 64, 3)
    assert (one.cost == two.cost[:40]).all()
    assert jnp.isfinite(one.excess)
