"""What the guarantee costs in time: one decision online, training throughput."""

import time
from statistics import median

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks.catalogue import Measured
from reticent import Confidence, OneStepLookahead, Process, Task, synthetic
from reticent.policy.lookahead import lookahead_policy, value_network
from reticent.problem.enforcement import named_enforcement
from reticent.solve.actor_critic import RECIPES, initialise, training

LIMIT = 0.8


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
