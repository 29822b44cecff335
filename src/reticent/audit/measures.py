"""What an attacker's beliefs amount to: accuracies, certainty, information; each with an interval.

Intervals are of the bootstrap over people, or over episodes where every episode is somebody's own: the units that are
drawn with replacement are those that could have been others. Draws of few units vary too little, so their percentiles
are taken further out, as far as Student's t goes beyond the normal law (the expanded percentile interval of Hesterberg,
"What Teachers Should Know About the Bootstrap", 2015). Units that happen to be alike say nothing about others, so no
share is surer than as many independent episodes would make it (Clopper-Pearson; for means over classes combined as in
Zou and Donner, "Construction of confidence limits about effect measures", 2008).
"""

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from reticent.audit.posterior import Posterior
from reticent.audit.splits import Labelled
from reticent.evaluate.estimate import CONFIDENCE_LEVEL, Estimate, rate

# As many draws as fit into this many numbers: few units need percentiles far out, and are cheap to draw.
DRAWN_NUMBERS, FEWEST_DRAWS, MOST_DRAWS = 2**23, 400, 10_000
# Under the logarithm of a belief: an attacker who excluded the truth pays this much, not infinity.
LEAST_BELIEF = 1e-6
CALIBRATION_BINS = 10


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of several columns over all episodes: as they are, and in each draw of so many units."""

    whole: Float[np.ndarray, " C"]
    drawn: Float[np.ndarray, "B C"]
    units: int

    def ratio(self, over: int, under: int, level: float = CONFIDENCE_LEVEL) -> Estimate:
        """Of two columns. A draw in which the lower one is zero does not count."""
        below = self.drawn[:, under]
        drawn = np.where(below > 0, self.drawn[:, over], np.nan) / np.where(below > 0, below, 1.0)
        return percentiles(self.whole[over] / self.whole[under], drawn, self.units, level)

    def balanced(self, classes: int) -> tuple[float, Float[np.ndarray, " B"]]:
        """The mean over classes of how often each is named right, and the same in each draw; the last columns are how
        often each was, and how often it came. A class that is in no episode of a draw does not count there."""
        present = self.whole[-classes:] > 0

        def mean(sums: Float[np.ndarray, "D C"]) -> Float[np.ndarray, " D"]:
            right, count = sums[:, -2 * classes : -classes], sums[:, -classes:]
            return np.nanmean((right / np.where(count > 0, count, np.nan))[:, present], axis=1)

        return float(mean(self.whole[None])[0]), mean(self.drawn)


@dataclass(frozen=True, eq=False)
class Resampler:
    """Draws of the units, the same for all measures of an audit, so that differences are of the same draws."""

    unit: Int[np.ndarray, " N"]
    seed: int = 0

    @cached_property
    def weights(self) -> Float[np.ndarray, "B G"]:
        """How often each draw holds each unit."""
        units = int(self.unit.max()) + 1
        draws = int(np.clip(DRAWN_NUMBERS // units, FEWEST_DRAWS, MOST_DRAWS))
        return np.random.default_rng(self.seed).multinomial(units, np.full(units, 1 / units), draws).astype(float)

    def sums(self, columns: Float[np.ndarray, "N C"]) -> Sums:
        """Of all columns at once: the draws are many, and looked through once."""
        units = self.weights.shape[1]
        per_unit = np.stack([np.bincount(self.unit, column, units) for column in columns.T], axis=1)
        return Sums(per_unit.sum(0), self.weights @ per_unit, units)

    def ratio(
        self,
        over: Float[np.ndarray, " N"],
        under: Float[np.ndarray, " N"] | None = None,
        level: float = CONFIDENCE_LEVEL,
    ) -> Estimate:
        """A mean, or a ratio of two sums."""
        pair = np.stack([over, np.ones(len(over)) if under is None else under], axis=1)
        return self.sums(pair.astype(float)).ratio(0, 1, level)

    def share(
        self,
        happened: Bool[np.ndarray, " N"],
        among: Bool[np.ndarray, " N"] | None = None,
        level: float = CONFIDENCE_LEVEL,
    ) -> Estimate:
        """How often something happened, in all episodes or among some."""
        among = np.ones(len(happened), bool) if among is None else among
        drawn = self.ratio((happened & among).astype(float), among.astype(float), level)
        return _wider(drawn, rate(happened[among], level))


def percentiles(value: float, drawn: Float[np.ndarray, " B"], units: int, level: float = CONFIDENCE_LEVEL) -> Estimate:
    """The value with the percentiles of draws of so many units; see the head of this file."""
    reach = stats.t.ppf(0.5 + level / 2, units - 1) * np.sqrt(units / (units - 1)) if units > 1 else np.inf
    tail = 100 * stats.norm.sf(reach)
    low, high = np.nanpercentile(drawn, [tail, 100 - tail])
    return Estimate(float(value), float(min(low, value)), float(max(high, value)), "bootstrap")


def _wider(drawn: Estimate, other: Estimate) -> Estimate:
    """The same value, with an interval that holds both."""
    return Estimate(drawn.value, min(drawn.low, other.low), max(drawn.high, other.high), drawn.interval)


@dataclass(frozen=True)
class Named:
    """How well a label is named at one moment. All are estimates.

    `accuracy` is of the likeliest class. `balanced` is the mean over classes, by a guess that counts rare classes like
    frequent ones, as is `per_class`. `confidence` is the mean of the largest belief: equal to `accuracy` if beliefs are
    calibrated. `bits` is H(label) minus the attacker's cross-entropy: a lower bound on the information that the traces
    hold, because another attacker may know more.
    """

    accuracy: Estimate
    balanced: Estimate
    per_class: list[Estimate | None]
    confidence: Estimate
    highest_confidence: float
    bits: Estimate

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return asdict(self)


def named(
    belief: Float[np.ndarray, "N C"],
    guess: Int[np.ndarray, " N"],
    truth: Int[np.ndarray, " N"],
    resampler: Resampler,
) -> Named:
    """All measures of beliefs about one label; `guess` is the fair one, which counts for all but plain accuracy."""
    classes, likeliest = belief.shape[1], belief.argmax(1) == truth
    means = [np.ones(len(truth)), likeliest, belief.max(1), gained_bits(belief, truth)]
    own = np.eye(classes)[truth]
    sums = resampler.sums(np.column_stack([*means, own * (guess == truth)[:, None], own]))
    right, count = 4 + np.arange(classes), 4 + classes + np.arange(classes)
    present = np.isin(np.arange(classes), truth)
    return Named(
        accuracy=_wider(sums.ratio(1, 0), rate(likeliest)),
        balanced=_balanced_estimate(sums, classes, guess, truth, CONFIDENCE_LEVEL),
        per_class=[
            _wider(sums.ratio(int(right[c]), int(count[c])), rate(guess[truth == c] == c)) if present[c] else None
            for c in range(classes)
        ],
        confidence=sums.ratio(2, 0),
        highest_confidence=float(belief.max()),
        bits=sums.ratio(3, 0),
    )


def balanced(
    guess: Int[np.ndarray, " N"],
    truth: Int[np.ndarray, " N"],
    resampler: Resampler,
    level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """Mean over classes of how often the class is named right."""
    own = np.eye(int(truth.max()) + 1)[truth]
    sums = resampler.sums(np.column_stack([own * (guess == truth)[:, None], own]))
    return _balanced_estimate(sums, own.shape[1], guess, truth, level)


def _balanced_estimate(
    sums: Sums, columns: int, guess: Int[np.ndarray, " N"], truth: Int[np.ndarray, " N"], level: float
) -> Estimate:
    """From sums whose last columns are how often each class was named right, and how often it came."""
    whole, drawn = sums.balanced(columns)
    classes = [rate(guess[truth == value] == value, level) for value in np.unique(truth)]
    below, above = (
        float(np.sqrt(sum((each.value - end) ** 2 for each, end in ends))) / len(classes)
        for ends in ([(each, each.low) for each in classes], [(each, each.high) for each in classes])
    )
    independent = Estimate(whole, whole - below, whole + above, "Clopper-Pearson")
    return _wider(percentiles(whole, drawn, sums.units, level), independent)


def balanced_over_people(
    right: Float[np.ndarray, "G C"], count: Float[np.ndarray, "G C"]
) -> tuple[float, Float[np.ndarray, " B"]]:
    """Balanced accuracy over people of whom it is known how often each class came and was named right; and in draws
    of people, which are the same for whoever has as many."""
    resampler = Resampler(np.arange(len(right)))
    return resampler.sums(np.concatenate([right, count], axis=1)).balanced(right.shape[1])


def balanced_accuracy(guess: Int[np.ndarray, " N"], truth: Int[np.ndarray, " N"]) -> float:
    """Mean over classes of how often the class is named right: guessing gives one over their number."""
    return float(np.mean([np.mean(guess[truth == value] == value) for value in np.unique(truth)]))


def _entropy_bits(law: Float[np.ndarray, " C"]) -> float:
    held = law[law > 0]
    return float(-(held * np.log2(held)).sum())


@dataclass(frozen=True)
class Judged:
    """An attacker's beliefs at the end of the traces, or of every moment, for both labels."""

    secret: Named
    useful: Named


def errors_from_zero(
    values: Float[np.ndarray, " N"], unit: Int[np.ndarray, " N"], chance: float
) -> tuple[float, float]:
    """The mean over units in standard errors, and how many of them come with no more than this chance; of values that
    are all alike, none or infinitely many."""
    means = np.bincount(unit, values) / np.bincount(unit)
    clear = float(stats.t.isf(chance, len(means) - 1))
    error, mean = stats.sem(means), float(means.mean())
    return (mean / float(error) if error > 0 else math.copysign(math.inf, mean) if mean else 0.0), clear


def gained_bits(belief: Float[np.ndarray, "N C"], truth: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """By how much each belief in the truth exceeds what is believed without seeing anything, in bits: the mean is
    H(label) minus the cross-entropy."""
    own = np.maximum(belief[np.arange(len(truth)), truth], LEAST_BELIEF)
    return np.log2(own) + _entropy_bits(np.bincount(truth) / len(truth))


def judged(posterior: Posterior, traces: Labelled, resampler: Resampler) -> Judged:
    """Both labels."""
    return Judged(
        named(posterior.secret, posterior.fair_guess("secret"), traces.secret, resampler),
        named(posterior.useful, posterior.fair_guess("useful"), traces.useful, resampler),
    )


@dataclass(frozen=True)
class Bin:
    """Episodes whose largest belief lay in one tenth: its mean there, and how often it was right."""

    believed: float
    right: Estimate
    episodes: int


def calibration(belief: Float[np.ndarray, "N C"], truth: Int[np.ndarray, " N"], resampler: Resampler) -> list[Bin]:
    """How often the largest belief was right, by how large it was."""
    sure, right = belief.max(1), belief.argmax(1) == truth
    tenth = np.minimum((sure * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    held = [tenth == b for b in np.unique(tenth)]
    return [Bin(float(sure[own].mean()), resampler.share(right, own), int(own.sum())) for own in held]


def calibration_error(bins: list[Bin]) -> float:
    """Mean distance between belief and frequency, by number of episodes."""
    total = sum(each.episodes for each in bins)
    return sum(each.episodes * abs(each.believed - each.right.value) for each in bins) / total
