"""The largest confidence in the secret that what was released justifies, whoever calibrates his beliefs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.measures import Resampler
from reticent.evaluate.estimate import CONFIDENCE_LEVEL, Estimate

# Sets of moments that are looked at: these shares, those that an attacker is surest of.
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Justified:
    """A set of moments that can be told by what was released, and how often the secret is known there.

    They are the `share` of all moments in which `attacker` believes `threshold` or more in some secret. `right` is how
    often that secret is the true one: what an attacker may believe who knows how good the beliefs are. Its interval
    holds for all sets of all attackers at once.
    """

    attacker: str
    threshold: float
    share: float
    right: Estimate


def justified(
    beliefs: Mapping[str, Float[np.ndarray, "N S"]], truth: Int[np.ndarray, " N"], resampler: Resampler
) -> Justified:
    """The set of the largest confidence that is sure not to be chance: that of the highest lower end."""
    level = 1 - (1 - CONFIDENCE_LEVEL) / (len(beliefs) * len(SHARES))
    sets = []
    for attacker, belief in beliefs.items():
        sure, right = belief.max(1), belief.argmax(1) == truth
        for threshold in np.unique(np.quantile(sure, [1 - share for share in SHARES])):
            among = sure >= threshold
            found = resampler.share(right, among, level)
            sets.append(Justified(attacker, float(threshold), float(among.mean()), found))
    return max(sets, key=lambda one: one.right.low)
