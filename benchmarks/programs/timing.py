"""How long a solver takes for a batch of programs, and what its kernels cost above HiGHS's optima."""

import json
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

RUNS = 5


def timed(solve: Callable[..., Any], programs: tuple[Any, ...], cost: np.ndarray, optima: np.ndarray) -> None:
    """Print seconds of one program in a batch, and the losses. `solve` returns kernels [N O Z] as those of `cost`."""
    kernels, seconds = np.asarray(jax.block_until_ready(solve(*programs))), []
    for _ in range(RUNS):
        started = time.perf_counter()
        jax.block_until_ready(solve(*programs))
        seconds.append(time.perf_counter() - started)
    loss = (cost * kernels).sum((1, 2))[: len(optima)] - optima
    found = {"seconds": min(seconds) / len(cost), "mean_loss": float(loss.mean()), "largest_loss": float(loss.max())}
    print(json.dumps(found))
