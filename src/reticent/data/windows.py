"""What one reading is: a sample as it is, or a window of samples summed up. Shared by recordings and live sensors.

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
HAIR = 1e-3


@dataclass(frozen=True)
class ReadingKind:
    """One sample, as in the paper, or a window of some seconds: the mean of each axis, then the logarithm of its
    deviation."""

    kind: Literal["window", "sample"] = "window"
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.kind == "window" and not 0 < self.seconds < 3600:
            raise InputError(f"A window lasts some seconds, more than 0, not {self.seconds}.")

    def expected(self, interval: float) -> float:
        """How many samples that are so many seconds apart a window has: at least two, or it has no deviation."""
        expected = self.seconds / interval
        if expected < 2:
            raise InputError(f"A window of {self.seconds:g} s has fewer than two samples {interval:.3g} s apart.")
        return expected


def log_deviation(variance: float) -> float:
    """What a window says about how much an axis moved."""
    return math.log(max(math.sqrt(max(variance, 0.0)), LEAST_DEVIATION))
