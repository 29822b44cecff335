"""Problems that many tests of the gateway's decisions are about."""

import numpy as np

from reticent.gateway.runtime import Runtime
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Coarsen, Mask, Withhold
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task

MASKED = Task(synthetic(), Information(1.0), enforcement=Mask())
# Short episodes: longer ones linger near the bound.
WITHHELD = Task(synthetic(), Confidence(0.8), enforcement=Withhold(), horizon=4)
COARSENED = Task(synthetic(), Confidence(0.8), enforcement=Coarsen(), horizon=4)
RNG = np.random.default_rng(0)


def runtime_of(file):
    return Runtime(file, "0" * 64)
