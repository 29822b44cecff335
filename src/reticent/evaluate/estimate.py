"""Numbers, never without their interval."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    "normal" comes from the standard error, "Clopper-Pearson" is valid for any number of episodes,
    "bootstrap" is of draws with replacement. "exact" is a number
    that was computed, not simulated: its interval is the number itself.
    """

    value: float
    low: float
    high: float
    interval: Literal["normal", "Clopper-Pearson", "bootstrap", "exact"]

    def __str__(self) -> str:
        if self.interval == "exact":
            return f"{self.value:.6g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def exact(value: float) -> Estimate:
    """A number without error."""
    return Estimate(value, value, value, "exact")


def mean(values: Any) -> Estimate:
    """Mean with a normal interval."""
    values = np.asarray(values, float)
    centre, error = float(values.mean()), float(stats.sem(values))
    reach = float(stats.norm.ppf(0.5 + CONFIDENCE_LEVEL / 2)) * error
    return Estimate(centre, centre - reach, centre + reach, "normal")


def rate(happened: Any, level: float = CONFIDENCE_LEVEL) -> Estimate:
    """Share of episodes with the exact binomial (Clopper-Pearson) interval."""
    happened = np.asarray(happened, bool)
    count, trials = int(happened.sum()), happened.size
    tail = (1 - level) / 2
    low = float(stats.beta.ppf(tail, count, trials - count + 1)) if count else 0.0
    high = float(stats.beta.isf(tail, count + 1, trials - count)) if count < trials else 1.0
    return Estimate(count / trials, low, high, "Clopper-Pearson")
