"""What the guarantee costs in time: programs per second against HiGHS, one decision online, training throughput."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linprog

from benchmarks.catalogue import Measured
from reticent import Confidence, OneStepLookahead, Process, Task, synthetic
from reticent.belief.prospect import Joint
from reticent.guard.program import cheapest_kernels
from reticent.guard.safety import Safety
from reticent.policy.lookahead import lookahead_policy, value_network
from reticent.problem.enforcement import Coarsen, Withhold, named_enforcement
from reticent.solve.actor_critic import RECIPES, initialise, training

BELIEFS, SOLVED_BY_HIGHS, LIMIT = 1024, 100, 0.8


def programs() -> Measured:
    """The same label and withholding programs, all at once by our solver and one by one by HiGHS."""
    model = synthetic()
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet(np.full(9, 2.0), 4 * BELIEFS).reshape(-1, 3, 3)
    beliefs = jnp.asarray(beliefs[beliefs.sum(2).max(1) < LIMIT - 0.01][:BELIEFS])
    rows = []
    for name in ("withhold", "coarsen"):
        cost, excess, raw = (np.asarray(x) for x in _programs(name, beliefs, jnp.asarray(model.channel)))
        solve = jax.jit(jax.vmap(cheapest_kernels))
        kernels = np.asarray(jax.block_until_ready(solve(cost, excess, raw)))
        seconds = min(_seconds(solve, cost, excess, raw) for _ in range(3))
        judged = list(zip(cost[:SOLVED_BY_HIGHS], excess, raw, strict=False))
        started = time.perf_counter()
        optima = np.array([_highs(*program) for program in judged])
        by_highs = time.perf_counter() - started
        loss = (cost * kernels).sum((1, 2))[: len(optima)] - optima
        ours, theirs = len(cost) / seconds, optima.size / by_highs
        speeds = {"batched_per_second": ours, "highs_per_second": theirs, "ratio": ours / theirs}
        rows.append({"programs": name, **speeds, "mean_loss": loss.mean(), "largest_loss": loss.max()})
    notes = [
        "50 readings, 3 secrets, 1 or 3 merged symbols, L_B 0.8. "
        "Loss is of the objective, a probability. Side by side in one run."
    ]
    return rows, notes


@eqx.filter_jit
def _programs(name: str, beliefs, channel):
    """The programs of all sensors at these beliefs: cost [N O Z], excess [N S Z], raw [N Z]."""

    def one(belief):
        safety = Safety(Joint(belief, channel), jnp.full(len(belief), LIMIT))
        excess = safety.readings.secret - safety.theta[:, None, None] * safety.readings.law[None]
        cost = (Coarsen() if name == "coarsen" else Withhold()).label_costs(safety)
        return jnp.moveaxis(cost, 0, 1), jnp.moveaxis(excess, 0, 1), (excess < 0).all(0)

    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.vmap(one)(beliefs))


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


def decisions() -> Measured:
    """One device, one decision at a time: choose, send, update the belief, solve the next kernels."""
    rows = []
    cases: list[tuple[str, str, str]] = [
        ("one-step lookahead", "penalty", "-"),
        ("one-step lookahead", "withhold", "-"),
        ("one-step lookahead", "coarsen", "-"),
        ("value iteration", "penalty", "label"),
        ("value iteration", "coarsen", "label"),
        ("value kernels", "coarsen", "value"),
    ]
    for name, enforce, kernels in cases:
        process = Process.of(Task(synthetic(), Confidence(LIMIT), enforcement=named_enforcement(enforce)))
        policy = OneStepLookahead(process, jnp.asarray(2.0))
        if kernels in ("label", "value"):
            policy = lookahead_policy(process, value_network(process, 64, jax.random.key(0)), kernels)
            process = policy.process
        decide = eqx.filter_jit(_decide)
        state = process.init(jax.random.key(0))
        seconds = []
        for i in range(120):
            key = jax.random.key(i)
            started = time.perf_counter()
            jax.block_until_ready(decide(process, policy, key, state))
            seconds.append(time.perf_counter() - started)
        rows.append({"policy": name, "enforcement": enforce, "microseconds": 1e6 * median(seconds[20:])})
    notes = ["Median of 100 calls from the prior, compiled, dispatch included: choice, symbol, belief, next kernels."]
    return rows, notes


def _decide(process, policy, key, state):
    return process.step(key, state, policy.act(key, state.public))


def throughput() -> Measured:
    """Environment steps per second of PPO in each process, after compilation."""
    rows, recipe = [], RECIPES["ppo"]
    for enforce in ("penalty", "withhold", "coarsen"):
        process = Process.of(Task(synthetic(), Confidence(LIMIT), enforcement=named_enforcement(enforce)))
        marks = []
        for state, _ in training(process, recipe, initialise(process, recipe, 0), 20 * recipe.steps_per_update):
            marks.append((time.perf_counter(), int(state.update) * recipe.steps_per_update))
            if marks[-1][0] - marks[0][0] > 30:
                break
        speed = (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])
        rows.append({"enforcement": enforce, "environment_steps_per_second": speed})
    return rows, [f"The agent by PPO, L_B {LIMIT:g}."]


def _seconds(run: Callable[..., Any], *arguments: Any) -> float:
    started = time.perf_counter()
    jax.block_until_ready(run(*arguments))
    return time.perf_counter() - started
