"""The largest confidence in the secret that what was released justifies, to whoever knows how good the beliefs are."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from reticent.audit.measures import Resampler
from reticent.audit.moving_traces import MovingTraces
from reticent.evaluate.estimate import CONFIDENCE_LEVEL, Estimate

# Sets of moments that are looked at: these shares, those that an attacker is surest of.
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Justified:
    """A set of moments that can be told by what was released, and how often the secret is known there.

    They are the `share` of all moments in which `attacker` believes `threshold` or more in some secret. `right` is how
    often that secret is the true one, a calibrated confidence; its interval holds for all sets of all attackers.
    """

    attacker: str
    threshold: float
    share: float
    right: Estimate


def justified(beliefs: Mapping[str, Float[np.ndarray, "N S"]], traces: MovingTraces, resampler: Resampler) -> Justified:
    """The set of the largest confidence that is sure not to be chance: that of the highest lower end.

    Intervals are of the bootstrap over people. While a secret stays, guesses of it are right or wrong together, so no
    interval is narrower than that of as many independent stays (Clopper-Pearson).
    """
    level = 1 - (1 - CONFIDENCE_LEVEL) / (len(beliefs) * len(SHARES))
    stay = np.cumsum((np.diff(traces.secret, prepend=-1) != 0) | (traces.step == 0)) - 1
    sets = []
    for attacker, belief in beliefs.items():
        sure, right = belief.max(1), belief.argmax(1) == traces.secret
        for threshold in np.unique(np.quantile(sure, [1 - share for share in SHARES])):
            among = sure >= threshold
            drawn = resampler.ratio((right & among).astype(float), among.astype(float), level)
            found = _no_surer_than_stays(drawn, stay, among, level)
            sets.append(Justified(attacker, float(threshold), float(among.mean()), found))
    return max(sets, key=lambda one: one.right.low)


def _no_surer_than_stays(
    drawn: Estimate, stay: Int[np.ndarray, " N"], among: Bool[np.ndarray, " N"], level: float
) -> Estimate:
    """The interval, as wide as that of the stays among which the moments are: as many as if each had the same part."""
    counts = np.bincount(stay[among])
    stays = float(counts.sum() ** 2 / (counts**2).sum())
    tail, known, rest = (1 - level) / 2, drawn.value * stays, (1 - drawn.value) * stays
    low = float(stats.beta.ppf(tail, known, rest + 1)) if known > 0 else 0.0
    high = float(stats.beta.isf(tail, known + 1, rest)) if rest > 0 else 1.0
    return Estimate(drawn.value, min(drawn.low, low), max(drawn.high, high), drawn.interval)
