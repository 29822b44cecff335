"""Certificates: how near lower and upper bound come on the synthetic problem, and whether they hold on tiny ones.

The tiny problems are small enough to be solved exactly, so both bounds can be held against the truth.
"""

import sys
import time
from typing import Any

import numpy as np

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from reticent import Confidence, Model, Process, Task, Unbounded, synthetic
from reticent.evaluate.estimate import Estimate
from reticent.solve.certificate import CONTROLLED_EPISODES, dual_bound, upper_bound
from reticent.solve.lattice import solve_lattice
from reticent.solve.refine import DEFAULT, Settings, refined_policy
from reticent.solve.value_iteration import Settings as IterationSettings

LIMITS, DRAWS = (0.8, 0.99, None), 256
TINY, TINY_DRAWS, TINY_LIMIT = 10, 1024, 0.8
QUICK = Settings(
    rounds=20, looks=512, steps=64, batch=128, iteration=IterationSettings(rounds=60, groups=2, lanes=64, width=32)
)


def large() -> Measured:
    """Lower and upper bound of the synthetic problem at three limits."""
    rows = []
    for limit in LIMITS:
        started = time.perf_counter()
        bound = Unbounded() if limit is None else Confidence(limit)
        lower, upper = _certify(Process.of(Task(synthetic(), bound)), DEFAULT, DRAWS, 0)
        row = {"confidence_limit": limit, **interval("lower_bound", lower), **interval("upper_bound", upper)}
        rows.append({**row, "gap": 1 - lower.value / upper.value, "seconds": time.perf_counter() - started})
        print(rows[-1], file=sys.stderr, flush=True)
    notes = [
        f"Lambda 50, C_T 1, C_B 50, seed 0; {DRAWS} draws below, {CONTROLLED_EPISODES:,} episodes with control variate "
        "above. The gap is a share of the upper bound. Seconds are of all of it, value iteration included.",
    ]
    return rows, notes


def tiny() -> Measured:
    """Lower and upper bound against the exact optimum of random problems."""
    rows, missed = [], 0
    for seed in range(TINY):
        task = Task(_random_model(seed), Confidence(TINY_LIMIT))
        exact = solve_lattice(task)
        lower, upper = _certify(Process.of(task), QUICK, TINY_DRAWS, seed)
        # The lower bound's mean lies below the optimum, the upper's above: an interval misses if it says otherwise.
        misses = (lower.low > exact.upper) + (upper.high < exact.lower)
        missed += misses
        row = {"problem": seed, **interval("lower_bound", lower), "optimum": exact.upper}
        row |= {**interval("upper_bound", upper), "optimum_known_to": exact.gap}
        in_order = lower.value <= exact.upper and exact.lower <= upper.value
        rows.append({**row, "estimates_in_order": in_order, "intervals_that_miss": misses})
        print(rows[-1], file=sys.stderr, flush=True)
    notes = [
        f"Two sensors of three symbols, two secrets, two useful values, drawn at random; L_B {TINY_LIMIT:g}. The "
        f"optimum is exact (lattice). Where the two bounds are tight, their estimates scatter about it, so they are "
        f"judged by their 95 % intervals: of {2 * TINY}, {missed} lie wholly on the wrong side of the optimum, where "
        f"{0.025 * 2 * TINY:g} are to be expected of the tightest.",
    ]
    return rows, notes


def _certify(process: Process, settings: Settings, draws: int, seed: int) -> tuple[Estimate, Estimate]:
    policy = refined_policy(process, seed, settings)
    lower, _, _ = dual_bound(process, policy.value, draws, seed)
    return lower, upper_bound(process, policy, CONTROLLED_EPISODES, seed, policy.value)


def _random_model(seed: int) -> Model:
    rng = np.random.default_rng(seed)
    sizes = {"secrets": 2, "useful": 2, "sensors": 2, "symbols": 3}
    names: dict[str, Any] = {kind: tuple(f"{kind} {i}" for i in range(size)) for kind, size in sizes.items()}
    return Model(prior=np.full((2, 2), 0.25), channel=rng.dirichlet(np.ones(3), size=(2, 2, 2)), **names)
