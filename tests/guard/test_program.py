"""The guard's solver against HiGHS, by numpy and within compiled programs; the check does not rely on it."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.guard import foreign
from reticent.guard.program import cheapest_kernels
from tests.commands import run_python

# HiGHS stops at this accuracy itself.
ACCURACY = 2e-7


def safety_programs(seed, count, options=4, readings=12, secrets=3):
    """Random safety programs: laws of readings per secret, a theta above the largest prior, random costs."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(secrets, 2.0), count)
    joint = prior[:, :, None] * rng.dirichlet(np.full(readings, 0.5), (count, secrets))
    law = joint.sum(1)
    theta = prior.max(1) + rng.uniform(0.05, 0.5, count) * (1 - prior.max(1))
    excess = joint - theta[:, None, None] * law[:, None]
    cost = law[:, None] * rng.random((count, options, readings))
    return cost, excess, (excess < 0).all(1)


def degenerate_program(seed):
    """Readings of probability zero, equal costs, up to 30 rows, some of which hold with 1e-9 to spare."""
    rng = np.random.default_rng(seed)
    rows, options, readings = int(rng.integers(1, 31)), int(rng.integers(2, 8)), int(rng.integers(2, 40))
    law = rng.dirichlet(np.full(readings, 0.5)) * (rng.random(readings) < 0.8)
    law = np.full(readings, 1 / readings) if law.sum() == 0 else law / law.sum()
    weight = rng.random((rows, readings)) * rng.random((rows, 1))
    theta = (weight * law).sum(1) + rng.choice([1e-9, 1e-3, 0.1], rows)
    cost = law * np.round(rng.random((options, readings)) * rng.choice([2, 1000])) / 2
    if seed % 3 == 0:
        cost[1:] = cost[1]
    excess = (weight - theta[:, None]) * law
    return cost, excess, (excess < 0).all(0)


def by_highs(cost, excess, raw):
    """The optimum, or None where HiGHS finds none within a second: it cycles on some of these."""
    options, readings = cost.shape
    safety = np.zeros((options - 1, len(excess), options, readings))
    for m in range(options - 1):
        safety[m, :, m + 1] = excess
    ones = np.tile(np.eye(readings)[:, None], (1, options, 1)).reshape(readings, -1)
    top = np.ones_like(cost)
    top[0, ~raw] = 0
    bounds = np.stack([np.zeros(cost.size), top.reshape(-1)], 1)
    rows = safety.reshape(-1, cost.size)
    limits = np.zeros(len(rows)), ones, np.ones(readings), bounds
    solution = linprog(cost.reshape(-1), rows, *limits, options={"time_limit": 1.0})
    return solution.fun if solution.success else None


def check_kernel(cost, excess, raw, kernel):
    """A kernel, none of whose rows is violated beyond rounding."""
    assert (kernel >= 0).all()
    assert (kernel[0][~raw] == 0).all()
    assert np.allclose(kernel.sum(0), 1, atol=1e-10)
    assert (kernel[1:] @ excess.T <= 1e-12 * np.abs(excess).sum(1) + 1e-15).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_highs(seed):
    programs = safety_programs(seed, 40)
    for cost, excess, raw, kernel in zip(*programs, cheapest_kernels(*programs), strict=True):
        check_kernel(cost, excess, raw, kernel)
        assert (cost * kernel).sum() == pytest.approx(by_highs(cost, excess, raw), abs=ACCURACY)


def check_degenerate(seeds):
    """Every program is solved safely; at least nine in ten are judged by HiGHS."""
    judged = 0
    for seed in seeds:
        cost, excess, raw = degenerate_program(seed)
        kernel = cheapest_kernels(cost, excess, raw)
        check_kernel(cost, excess, raw, kernel)
        optimum = by_highs(cost, excess, raw)
        if optimum is not None:
            judged += 1
            assert (cost * kernel).sum() <= optimum + ACCURACY * max(1, np.abs(cost).max())
    assert judged >= 0.9 * len(seeds)


def test_degenerate_programs_are_solved():
    check_degenerate(range(40))


@pytest.mark.slow
def test_many_degenerate_programs_are_solved():
    check_degenerate(range(40, 1000))


def test_batches_of_any_shape_give_the_same_kernels():
    cost, excess, raw = safety_programs(7, 70)
    flat = cheapest_kernels(cost, excess, raw)
    compiled = jax.jit(jax.vmap(jax.vmap(cheapest_kernels)))
    nested = compiled(*(x.reshape(2, -1, *x.shape[1:]) for x in (cost, excess, raw)))
    assert np.array_equal(nested.reshape(flat.shape), flat)
    assert np.array_equal(cheapest_kernels(*(jnp.asarray(x[3]) for x in (cost, excess, raw))), flat[3])


def test_an_unbatched_argument_is_shared():
    cost, excess, raw = (jnp.asarray(x) for x in safety_programs(8, 4))
    shared = jax.vmap(cheapest_kernels, (0, None, None))(cost, excess[0], raw[0])
    assert np.array_equal(shared[2], cheapest_kernels(cost[2], excess[0], raw[0]))


def test_other_versions_of_jax_call_python_back(monkeypatch):
    programs = safety_programs(9, 20)
    monkeypatch.setattr(foreign, "_registered", lambda: False)
    found = jax.jit(jax.vmap(lambda *program: cheapest_kernels(*program)))(*programs)
    assert np.array_equal(found, cheapest_kernels(*programs))


def test_without_numba_the_same_source_is_interpreted():
    code = """
import sys
sys.modules["numba"] = None
from reticent.guard import pivots
from tests.guard.test_program import cheapest_kernels, json, safety_programs
assert not hasattr(pivots.solve, "signatures")
print(json.dumps(cheapest_kernels(*safety_programs(3, 5)).tolist()))
"""
    found = np.array(json.loads(run_python(code)))
    assert np.allclose(found, cheapest_kernels(*safety_programs(3, 5)), atol=1e-9)


@pytest.mark.parametrize("what", ["cost", "excess"])
def test_what_is_no_number_ends(what):
    programs = dict(zip(("cost", "excess", "raw"), safety_programs(4, 10), strict=True))
    programs[what] = np.full_like(programs[what], np.nan)
    assert cheapest_kernels(**programs).shape == programs["cost"].shape
