"""The paper's claims, and what saved settings say of each: one word first.

Every claim is a number that should be above zero, computed for each unit (draw or rotation) by itself, with an
interval over units. A claim whose interval has zero in it is undecided, and so is one of a single unit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from reticent.report.paper.settings import interval

Row = dict[str, Any]
Word = Literal["reproduced", "contradicted", "undecided", "unchecked"]
Units = Float[np.ndarray, " N"]


@dataclass(frozen=True)
class Finding:
    """What a study says of a claim: the word, and the numbers behind it."""

    word: Word
    numbers: str


UNCHECKED = Finding("unchecked", "not run yet")


@dataclass(frozen=True)
class Version:
    """The settings of one version of a study on one problem, as curves over the bound."""

    rows: tuple[Row, ...]
    random: Row | None

    @classmethod
    def of(cls, rows: Sequence[Row], name: str) -> "Version":
        """Those of "letter" or "corrected" among the settings of a study."""
        unprotected = [row for row in rows if row["version"] == "letter, unprotected"] if name == "letter" else []
        unprotected += [row for row in rows if row["version"] == "unprotected"]
        return cls(tuple(row for row in rows if row["version"] == name), unprotected[0] if unprotected else None)

    def limits(self, bound: str) -> list[float]:
        """The limits of a bound that there are, tightest first."""
        return sorted(row["limit"] for row in self.rows if row["bound"] == bound)

    def curve(self, bound: str, measure: str) -> Float[np.ndarray, "L N"]:
        """A measure at each limit, tightest first, of each unit."""
        own = sorted((row for row in self.rows if row["bound"] == bound), key=lambda row: row["limit"])
        return np.array([row[f"{measure}_by_unit"] for row in own])

    def gap(self, bound: str, by: str = "accuracy") -> Float[np.ndarray, "L N"]:
        """Accuracy on U less that on S; `by` names whose, as in the columns of rows."""
        return self.curve(bound, f"{by}_useful") - self.curve(bound, f"{by}_secret")

    def random_gap(self, by: str = "accuracy") -> Units:
        """The same without protection."""
        assert self.random is not None
        useful, secret = (np.array(self.random[f"{by}_{label}_by_unit"]) for label in ("useful", "secret"))
        return useful - secret


@dataclass(frozen=True)
class Claim:
    """A claim: what the paper says, what it prints, the bound it is about, and the number that should be above zero."""

    says: str
    prints: str
    bounds: tuple[str, ...]
    judge: Callable[[Version], Finding]

    def finding(self, version: Version) -> Finding:
        """What this version says, if it was run."""
        enough = all(len(version.limits(bound)) > 1 for bound in self.bounds)
        return self.judge(version) if enough and version.random is not None else UNCHECKED


def verdicts(rows: Sequence[Row], claims: Sequence[Claim]) -> list[tuple[Claim, Finding, Finding]]:
    """Each claim with what the letter says of it, and what the corrected version does."""
    letter, corrected = (Version.of(rows, name) for name in ("letter", "corrected"))
    return [(claim, claim.finding(letter), claim.finding(corrected)) for claim in claims]


def word_of(units: Units) -> Word:
    """By the interval of the mean, which should be above zero."""
    low, high = interval(units)
    if low is None or high is None or low <= 0 <= high:
        return "undecided"
    return "reproduced" if low > 0 else "contradicted"


def rises(bound: str, measure: str, digits: int, scale: float = 1.0) -> Callable[[Version], Finding]:
    """The measure at the loosest bound, less that at the tightest."""

    def judge(version: Version) -> Finding:
        curve, limits = scale * version.curve(bound, measure), version.limits(bound)
        ends = f"{curve[0].mean():.{digits}f} at {limits[0]:g}, {curve[-1].mean():.{digits}f} at {limits[-1]:g}"
        rise = curve[-1] - curve[0]
        return Finding(word_of(rise), f"{ends}; {shown(rise, digits)}")

    return judge


def above_random(bound: str, by: str = "accuracy") -> Callable[[Version], Finding]:
    """The gap of accuracies, on average over the bounds, less that of random sensors."""

    def judge(version: Version) -> Finding:
        gap, without = 100 * version.gap(bound, by).mean(0), 100 * version.random_gap(by)
        more = gap - without
        words = f"gap {gap.mean():.1f}, random {without.mean():.1f}; {shown(more, 1)}"
        return Finding(word_of(more), words)

    return judge


def names_useful_more_often(bound: str) -> Callable[[Version], Finding]:
    """The gap of accuracies itself, on average over the bounds."""

    def judge(version: Version) -> Finding:
        gap = 100 * version.gap(bound)
        wider = int((gap.mean(1) > 0).sum())
        return Finding(word_of(gap.mean(0)), f"{shown(gap.mean(0), 1)}; above zero at {wider} of {len(gap)} bounds")

    return judge


def hides_better(version: Version) -> Finding:
    """How much more often π_MI names S where it names U as often as π_B does, read off its curve."""
    found = np.array([_secret_saved(version, unit) for unit in range(version.gap("confidence").shape[1])])
    if np.isnan(found).any():
        return Finding("undecided", "the two curves do not reach the same accuracies on U")
    return Finding(word_of(100 * found), f"S at equal accuracy on U: {shown(100 * found, 1)}")


def _secret_saved(version: Version, unit: int) -> float:
    curves = [[version.curve(b, f"accuracy_{x}")[:, unit] for x in ("useful", "secret")] for b in BOUNDS]
    (useful, secret), (other, leaked) = curves
    order = np.argsort(other)
    inside = (useful >= other.min()) & (useful <= other.max())
    if not inside.any():
        return float("nan")
    return float((np.interp(useful[inside], other[order], leaked[order]) - secret[inside]).mean())


def stays_below(bound: str) -> Callable[[Version], Finding]:
    """The share of episodes that reached the bound, which should be zero."""

    def judge(version: Version) -> Finding:
        over = 100 * version.curve(bound, "violation_rate")
        least, most = over.mean(1).min(), over.mean(1).max()
        words = f"{least:.1f} to {most:.1f} % of episodes reach it" if over.any() else "no episode reaches it"
        return Finding("reproduced" if not over.any() else "contradicted", words)

    return judge


def widest_at(bound: str, printed: float) -> Callable[[Version], Finding]:
    """The gap at the printed bound, less that at the best of the others."""

    def judge(version: Version) -> Finding:
        gap, limits = 100 * version.gap(bound), version.limits(bound)
        if printed not in limits:
            return Finding("unchecked", f"{printed:g} is not among the bounds that were run")
        at, means = limits.index(printed), gap.mean(1)
        others = [place for place in range(len(limits)) if place != at]
        rival = max(others, key=lambda place: means[place])
        ahead = gap[at] - gap[rival]
        words = f"{means[at]:.1f} at {printed:g}, {means[rival]:.1f} at {limits[rival]:g}; {shown(ahead, 1)}"
        return Finding(word_of(ahead), words)

    return judge


def shown(units: Units, digits: int) -> str:
    """A mean with its sign, and its interval over units."""
    low, high = interval(units)
    ends = "no interval over one unit" if low is None else f"[{low:+.{digits}f}, {high:+.{digits}f}]"
    return f"{units.mean():+.{digits}f} {ends}"


BOUNDS = ("confidence", "information")
