"""Drift: whether the model still fits what is sent. Subjects whose symbols are too unlikely under it are held back.

Of each release: d = -ln p(symbol) minus its mean under the model, v its variance. Under the model the d are martingale
differences, so that with old ones forgotten,

    D <- f D + d,    V <- f^2 V + v,

D / sqrt(V) is about standard normal. Above 5 the model does not fit.

Only what was SENT is looked at, so that anybody who follows the releases can compute the same: that a subject falls
silent tells nothing new. A reading that the model calls impossible is drift at once, though it cannot be sent: that
silence does tell something, which under the model never happens.
"""

import math
from dataclasses import dataclass

from reticent.gateway.emitter import Surprise

FORGETTING = 0.99
LEAST_RELEASES = 20
LIMIT = 5.0
# Where the model is all but sure what comes, surprises are rounding errors, and so is their variance.
LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Tally:
    """The forgotten sums of one sensor of one subject."""

    excess: float = 0.0
    variance: float = 0.0
    releases: int = 0

    def after(self, surprise: Surprise) -> "Tally":
        """The sums with one release more."""
        excess = FORGETTING * self.excess + surprise.nats - surprise.mean
        return Tally(excess, FORGETTING**2 * self.variance + surprise.variance, self.releases + 1)

    @property
    def drifted(self) -> bool:
        """Whether the model no longer fits."""
        return self.releases >= LEAST_RELEASES and self.excess > LIMIT * math.sqrt(self.variance + LEAST_VARIANCE)
