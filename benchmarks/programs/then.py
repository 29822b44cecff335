"""`python then.py FILE`: the programs by the interior point of 0.4.0, whose source is on the path."""

import sys

import jax
import numpy as np

# pyright: reportMissingImports=false
from reticent.process.linear_program import cheapest_kernels
from timing import timed

jax.config.update("jax_enable_x64", True)
with np.load(sys.argv[1]) as file:
    cost, excess, raw, optima = (file[name] for name in ("cost", "excess", "raw", "optima"))
# 0.4.0 keeps the batch last.
last = tuple(jax.numpy.moveaxis(x, 0, -1) for x in (cost, excess, raw))
timed(jax.jit(lambda *programs: jax.numpy.moveaxis(cheapest_kernels(*programs), -1, 0)), last, cost, optima)
