"""The cheapest safe kernels of many programs at once, for numpy and for JAX: one solver (`reticent.guard.pivots`)."""

import logging
from functools import cache
from threading import Lock, Timer
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

# Set in the environment, the solver is interpreted: slower by far, but numba's memory and start are saved.
PLAIN = "RETICENT_PLAIN"
_log = logging.getLogger(__name__)
_first = Lock()
# Programs that were compiled before load faster than this on an idle machine.
SECONDS_TO_LOAD = 2.0
SLOW = "Loading the guard's solver. The first time on a machine it is compiled, which takes up to half a minute ..."


def cheapest_kernels(
    cost: Float[Any, "*N O Z"], excess: Float[Any, "*N J Z"], raw: Bool[Any, "*N Z"]
) -> Float[Any, "*N O Z"]:
    """The kernels x [O Z] of least sum cost[o, z] x[o, z] for each program.

    Option 0 sends a reading as it is, where `raw` allows it; option m sends the merged symbol m, which is safe if
    sum_z x[m, z] excess[j, z] <= 0 for every row j. Merging everything must be safe.
    """
    if isinstance(cost, np.ndarray):
        return _solve(cost, excess, raw)
    from reticent.guard.foreign import call

    return call(cost, excess, raw)


def _solve(cost: np.ndarray, excess: np.ndarray, raw: np.ndarray) -> np.ndarray:
    found = np.empty(cost.shape)
    programs = [
        np.ascontiguousarray(x, kind).reshape(-1, *x.shape[x.ndim - own :])
        for x, kind, own in ((cost, float, 2), (excess, float, 2), (raw, bool, 1))
    ]
    solver()(*programs, found.reshape(-1, *found.shape[-2:]))
    return found


@cache
def solver() -> Any:
    """The solver, compiled where numba is installed; says so where loading it takes a while."""
    with _first:
        note = Timer(SECONDS_TO_LOAD, lambda: _log.warning(SLOW))
        note.daemon = True
        note.start()
        try:
            from reticent.guard.pivots import solve

            solve(np.zeros((1, 2, 1)), np.zeros((1, 1, 1)), np.ones((1, 1), bool), np.zeros((1, 2, 1)))
        finally:
            note.cancel()
    return solve
