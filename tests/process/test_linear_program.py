"""The batched interior point against HiGHS."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.process.linear_program import PIECE, cheapest_kernels

OPTIONS, READINGS, SECRETS = 4, 12, 3


def programs(seed, count):
    """Random safety programs: laws of readings per secret, a theta above the largest prior, random costs."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(SECRETS, 2.0), count)
    joint = prior[:, :, None] * rng.dirichlet(np.full(READINGS, 0.5), (count, SECRETS))
    law = joint.sum(1)
    theta = prior.max(1) + rng.uniform(0.05, 0.5, count) * (1 - prior.max(1))
    excess = joint - theta[:, None, None] * law[:, None]
    cost = law[:, None] * rng.random((count, OPTIONS, READINGS))
    return cost, excess, (excess < 0).all(1)


def by_highs(cost, excess, raw):
    safety = np.zeros((OPTIONS - 1, SECRETS, OPTIONS, READINGS))
    for m in range(OPTIONS - 1):
        safety[m, :, m + 1] = excess
    ones = np.tile(np.eye(READINGS)[:, None], (1, OPTIONS, 1)).reshape(READINGS, -1)
    top = np.ones_like(cost)
    top[0, ~raw] = 0
    bounds = np.stack([np.zeros(cost.size), top.reshape(-1)], 1)
    rows = safety.reshape(-1, cost.size)
    solution = linprog(cost.reshape(-1), rows, np.zeros(len(rows)), ones, np.ones(READINGS), bounds)
    assert solution.success
    return solution.fun


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_highs(seed):
    count = 40
    cost, excess, raw = programs(seed, count)
    kernels = np.asarray(jax.jit(jax.vmap(cheapest_kernels))(cost, excess, raw))
    optima = [by_highs(*program) for program in zip(cost, excess, raw, strict=True)]
    # Costs are of order one; ten iterations lose little more than 1e-6 of them.
    loss = (cost * kernels).sum((1, 2)) - optima
    assert np.abs(loss).max() < 1e-4
    assert np.abs(loss).mean() < 1e-5
    assert (kernels >= 0).all()
    assert (kernels[:, 0][~raw] == 0).all()
    assert np.allclose(kernels.sum(1), 1, atol=1e-9)
    assert (np.einsum("nmz,nsz->nms", kernels[:, 1:], excess) < 1e-9).all()


def test_batches_of_any_shape_give_the_same_kernels():
    cost, excess, raw = programs(7, PIECE + 6)
    flat = jax.vmap(cheapest_kernels)(cost, excess, raw)
    nested = jax.vmap(jax.vmap(cheapest_kernels))(*(x.reshape(2, -1, *x.shape[1:]) for x in (cost, excess, raw)))
    assert np.allclose(nested.reshape(flat.shape), flat, atol=1e-9)
    assert np.allclose(cheapest_kernels(*(jnp.asarray(x[3]) for x in (cost, excess, raw))), flat[3], atol=1e-9)


def test_an_unbatched_argument_is_shared():
    cost, excess, raw = (jnp.asarray(x) for x in programs(8, 4))
    shared = jax.vmap(cheapest_kernels, (0, None, None))(cost, excess[0], raw[0])
    assert np.allclose(shared[2], cheapest_kernels(cost[2], excess[0], raw[0]), atol=1e-9)
