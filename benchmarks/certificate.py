"""Certificates: how near floor and ceiling come on the synthetic problem, and whether they hold on tiny ones.

The tiny problems are small enough to be solved exactly, so floor and ceiling can be held against the truth.
"""

import sys
import time
from typing import Any

import numpy as np

from benchmarks.record import save
from reticent import Confidence, Process, ReleaseModel, Task, synthetic
from reticent.estimate import Estimate
from reticent.solve.certificate import CONTROLLED_EPISODES, ceiling, dual_floor
from reticent.solve.lattice import solve_lattice
from reticent.solve.sharpen import DEFAULT, Settings, sharp_policy
from reticent.solve.value_iteration import Settings as IterationSettings

# Gap asked for, at most, as a share of the upper bound, and the time for all of it.
ASKED = {0.8: 0.003, 0.99: 0.015, 2.0: 0.004}
MINUTES, DRAWS = 5, 256
TINY, TINY_DRAWS, TINY_LIMIT = 10, 1024, 0.8
QUICK = Settings(
    rounds=20, looks=512, steps=64, batch=128, iteration=IterationSettings(rounds=60, groups=2, lanes=64, width=32)
)


def main() -> None:
    large()
    tiny()


def large() -> None:
    """Floor and ceiling of the synthetic problem at three bounds."""
    rows = []
    for limit, asked in ASKED.items():
        started = time.perf_counter()
        lower, upper = _certify(Process.of(Task(synthetic(), Confidence(limit))), DEFAULT, DRAWS, 0)
        seconds = time.perf_counter() - started
        gap = 1 - lower.value / upper.value
        cells = ["none" if limit > 1 else f"{limit:g}", _interval(lower), _interval(upper)]
        rows.append([*cells, f"{gap:.2%}", f"{asked:.1%}", f"{seconds:.0f} s"])
        print(rows[-1], file=sys.stderr, flush=True)
    headings = ["L_B", "floor (dual bound)", "ceiling (policy)", "gap", "asked: at most", "all of it"]
    notes = [
        f"Lambda 50, C_T 1, C_B 50, seed 0; {DRAWS} draws below, {CONTROLLED_EPISODES:,} episodes with control variate "
        f"above, 95 % intervals. Asked within {MINUTES} minutes on 2 cores, value iteration included.",
    ]
    save("certificate", "Certified gaps", headings, rows, notes)


def tiny() -> None:
    """Floor and ceiling against the exact optimum of random problems."""
    rows, missed = [], 0
    for seed in range(TINY):
        task = Task(_random_model(seed), Confidence(TINY_LIMIT))
        exact = solve_lattice(task)
        lower, upper = _certify(Process.of(task), QUICK, TINY_DRAWS, seed)
        # The floor's own mean lies below the optimum, the ceiling's above: an interval misses if it says otherwise.
        misses = (lower.low > exact.upper) + (upper.high < exact.lower)
        missed += misses
        optimum = f"{exact.upper:.4f}" if exact.gap < 1e-4 else f"[{exact.lower:.4f}, {exact.upper:.4f}]"
        in_order = lower.value <= exact.upper and exact.lower <= upper.value
        rows.append([str(seed), _interval(lower), optimum, _interval(upper), "yes" if in_order else "no", str(misses)])
        print(rows[-1], file=sys.stderr, flush=True)
    notes = [
        f"Two sensors of three symbols, two secrets, two useful values, drawn at random; L_B {TINY_LIMIT:g}. The "
        f"optimum is exact (lattice). Where floor and ceiling are tight, their estimates scatter about it, so they are "
        f"judged by their 95 % intervals: of {2 * TINY}, {missed} lie wholly on the wrong side of the optimum, where "
        f"{0.025 * 2 * TINY:g} are to be expected of the tightest.",
    ]
    headings = ["problem", "floor", "exact", "ceiling", "estimates in order", "intervals that miss"]
    save("certificate-tiny", "Certificates held against exact solutions", headings, rows, notes)


def _certify(process: Process, settings: Settings, draws: int, seed: int) -> tuple[Estimate, Estimate]:
    policy = sharp_policy(process, seed, settings)
    lower, _, _ = dual_floor(process, policy.value, draws, seed)
    return lower, ceiling(process, policy, CONTROLLED_EPISODES, seed, policy.value)


def _random_model(seed: int) -> ReleaseModel:
    rng = np.random.default_rng(seed)
    sizes = {"secrets": 2, "useful": 2, "sensors": 2, "symbols": 3}
    names: dict[str, Any] = {kind: tuple(f"{kind} {i}" for i in range(size)) for kind, size in sizes.items()}
    return ReleaseModel(prior=np.full((2, 2), 0.25), channel=rng.dirichlet(np.ones(3), size=(2, 2, 2)), **names)


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


if __name__ == "__main__":
    main()
