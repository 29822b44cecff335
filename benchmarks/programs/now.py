"""`python now.py FILE`: the programs by the pivots of this version."""

import sys

import jax
import numpy as np

from benchmarks.programs.timing import timed
from reticent.guard.program import cheapest_kernels

jax.config.update("jax_enable_x64", True)
with np.load(sys.argv[1]) as file:
    cost, excess, raw, optima = (file[name] for name in ("cost", "excess", "raw", "optima"))
timed(jax.jit(jax.vmap(cheapest_kernels)), tuple(map(jax.numpy.asarray, (cost, excess, raw))), cost, optima)
