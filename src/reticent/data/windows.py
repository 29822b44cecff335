"""What one reading is: a sample as it is, or the summary of a window of samples. Shared by recordings and live sensors.

Windows follow each other from the first sample of an unbroken stretch on. Nothing here needs a table.
"""

import math
from dataclasses import dataclass
from typing import Literal

from reticent.errors import InputError

# A window with less than this share of its samples is left out.
FULL_ENOUGH = 0.5
# Under every deviation before its logarithm: a sensor that does not move at all is no infinity.
LEAST_DEVIATION = 1e-4
# A pause of more than this many usual intervals breaks a stream.
LONGEST_PAUSE = 5.5
# A share of the interval, so that a sample that is due at the edge counts into the next window despite rounding.
TIME_TOLERANCE = 1e-3
# Seconds that no window reaches.
LONGEST_WINDOW = 3600.0


@dataclass(frozen=True)
class ReadingKind:
    """One sample, as in the paper, or a window of some seconds: the mean of each axis, then the logarithm of its
    deviation."""

    kind: Literal["window", "sample"] = "window"
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.kind == "window" and not 0 < self.seconds < LONGEST_WINDOW:
            raise InputError(
                f"A window lasts more than 0 and less than {LONGEST_WINDOW:g} seconds, not {self.seconds:g}. Single "
                "samples are --window 0."
            )

    def expected(self, interval: float) -> float:
        """How many samples that are so many seconds apart a window has: at least two, or it has no deviation."""
        expected = self.seconds / interval
        if expected < 2:
            raise InputError(
                f"A window of {self.seconds:g} s has fewer than two samples, which are {interval:.3g} s apart. Take "
                f"{suggestion(LONGEST_WINDOW, interval)}."
            )
        return expected


def usual_kind(interval: float) -> ReadingKind:
    """Windows of a second; single samples where a second has fewer than two."""
    return ReadingKind() if ReadingKind().seconds >= 2 * interval else ReadingKind("sample")


def suggestion(longest: float, interval: float) -> str:
    """Windows of two samples at least and of `longest` seconds at most, as an option to give; else single samples."""
    least = _rounded_up(2 * interval)
    if least > longest or least >= LONGEST_WINDOW:
        return "single samples (--window 0)"
    usual = least if longest >= LONGEST_WINDOW else max(least, _rounded_down(longest))
    more = " or more" if longest >= LONGEST_WINDOW else ""
    return f"--window {usual:g}{more}, or single samples (--window 0)"


def _rounded_up(seconds: float) -> float:
    """To two digits."""
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    # What is a whole number of units but for rounding stays as it is.
    return float(f"{math.ceil(seconds / unit - 1e-6) * unit:.2g}")


def _rounded_down(seconds: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return float(f"{math.floor(seconds / unit + 1e-6) * unit:.2g}")


def log_deviation(variance: float) -> float:
    """What a window says about how much an axis moved."""
    return math.log(max(math.sqrt(max(variance, 0.0)), LEAST_DEVIATION))
