"""`python -m benchmarks.programs.make KIND FILE`: programs at random beliefs, with HiGHS's optima of the first ones."""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linprog

from reticent import Coarsen, Confidence, Process, Task, Withhold, synthetic
from reticent.belief.prospect import Joint
from reticent.guard.safety import Safety
from reticent.guard.value_kernels import ValueKernels
from reticent.policy.lookahead import lookahead_policy, value_network
from reticent.problem.enforcement import Guard

BELIEFS, JUDGED, LIMIT = 1024, 100, 0.8


def make(kind: str, file: str) -> None:
    model = synthetic()
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet(np.full(9, 2.0), 4 * BELIEFS).reshape(-1, 3, 3)
    beliefs = jnp.asarray(beliefs[beliefs.sum(2).max(1) < LIMIT - 0.01][:BELIEFS])
    enforcement = _enforcement(model, kind)
    channel, limits = jnp.asarray(model.channel), jnp.full(len(model.secrets), LIMIT)

    @jax.jit
    @jax.vmap
    def programs(belief):
        safety = Safety.of(Joint(belief, channel), limits)
        excess = safety.rows.event - safety.rows.theta[:, None, None] * safety.rows.law
        cost = _last_cost(enforcement, safety)
        return cost.swapaxes(0, 1), excess.swapaxes(0, 1), (excess < 0).all(0)

    cost, excess, raw = (np.asarray(x).reshape(-1, *x.shape[2:]) for x in programs(beliefs))
    # In units of the error penalty, so that losses of all kinds compare.
    cost = cost / 50.0 if kind == "value" else cost
    started = time.perf_counter()
    optima = [_highs(*program) for program in zip(cost[:JUDGED], excess, raw, strict=False)]
    seconds = (time.perf_counter() - started) / JUDGED
    np.savez(file, cost=cost, excess=excess, raw=raw, optima=optima)
    print(json.dumps({"seconds": seconds}))


def _enforcement(model, kind: str) -> Guard:
    enforcement = Withhold() if kind == "withhold" else Coarsen()
    if kind != "value":
        return enforcement
    process = Process.of(Task(model, Confidence(LIMIT), enforcement=enforcement))
    policy = lookahead_policy(process, value_network(process, 64, jax.random.key(0)), "value")
    assert isinstance(policy.process.enforcement, Guard)
    return policy.process.enforcement


def _last_cost(enforcement: Guard, safety: Safety):
    """The objective of the last program that is solved at this belief."""
    if not isinstance(enforcement.rule, ValueKernels):
        return enforcement.label_costs(safety)
    solve, costs = safety.cheapest, []

    def noted(cost):
        costs.append(cost)
        return solve(cost)

    safety.cheapest = noted
    enforcement.kernels(safety)
    return costs[-1]


def _highs(cost, excess, raw) -> float:
    options, readings = cost.shape
    safety = np.zeros((options - 1, len(excess), options, readings))
    for m in range(options - 1):
        safety[m, :, m + 1] = excess
    rows = safety.reshape(-1, cost.size)
    ones = np.tile(np.eye(readings)[:, None], (1, options, 1)).reshape(readings, -1)
    top = np.ones_like(cost)
    top[0, ~raw] = 0
    bounds = np.stack([np.zeros(cost.size), top.reshape(-1)], 1)
    return linprog(cost.reshape(-1), rows, np.zeros(len(rows)), ones, np.ones(readings), bounds).fun


if __name__ == "__main__":
    make(*sys.argv[1:])
