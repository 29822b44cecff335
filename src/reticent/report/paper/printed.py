"""What the paper prints: its table of accuracies, and which of its cells cannot be."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linprog

Bound = Literal["confidence", "information"]
# Numbers are printed to a few digits: an accuracy in % may be off by as much as this.
ROUNDING = 0.05 + 1e-9


@dataclass(frozen=True)
class Line:
    """A line of the paper's table: releases, mean of max beta(u), and accuracies of the provider, overall and of each
    value, in %."""

    bound: Bound
    limit: float
    releases: float
    confidence_useful: float
    useful: float
    per_useful: tuple[float, float, float]
    secret: float
    per_secret: tuple[float, float, float]

    @property
    def gap(self) -> float:
        """Accuracy on U less that on S."""
        return self.useful - self.secret


TABLE = (
    Line("confidence", 0.5, 3.12, 43.0, 44.4, (60.67, 53.44, 5.65), 41.2, (24.58, 23.6, 4.58)),
    Line("confidence", 0.65, 5.6, 74.0, 77.4, (78.9, 69.15, 88.21), 46.2, (55.32, 48.05, 5.15)),
    Line("confidence", 0.8, 7.15, 77.0, 78.4, (85.07, 61.99, 92.52), 54.3, (68.77, 48.95, 34.5)),
    Line("confidence", 0.95, 8.64, 81.0, 85.3, (91.58, 71.23, 96.3), 65.3, (79.48, 73.07, 42.8)),
    Line("information", 0.5, 3.0, 38.0, 37.5, (47.01, 51.1, 0.0), 36.4, (46.53, 52.01, 0.74)),
    Line("information", 0.75, 4.34, 40.0, 42.7, (63.29, 49.17, 0.0), 38.3, (47.26, 53.74, 1.2)),
    Line("information", 1.0, 6.25, 62.0, 65.0, (87.26, 55.35, 46.7), 56.5, (47.48, 57.42, 13.83)),
    Line("information", 1.25, 6.7, 88.0, 87.1, (94.0, 80.8, 80.86), 68.6, (89.55, 65.63, 28.74)),
    Line("information", 1.5, 7.06, 91.0, 91.2, (97.62, 84.0, 92.16), 79.0, (93.02, 72.22, 34.67)),
    Line("information", 1.75, 7.8, 93.0, 93.7, (98.42, 88.8, 96.25), 80.8, (96.9, 96.38, 87.3)),
    Line("information", 2.0, 8.5, 94.0, 95.7, (99.45, 96.19, 97.78), 81.9, (98.3, 98.12, 92.64)),
)
POLICIES: dict[Bound, str] = {"confidence": "π_B", "information": "π_MI"}


def impossible_cells() -> list[str]:
    """Accuracies of the table that lie outside of the range of those of their values, one sentence each.

    An overall accuracy is a mean of the accuracies of the values, weighted by how often each occurs.
    """
    return [
        f"{POLICIES[line.bound]} at {line.limit:g}, {name}: {overall:g} % overall, but "
        f"{' / '.join(f'{x:g}' for x in own)} % of the three values, whose mean lies between {min(own):g} and "
        f"{max(own):g}."
        for line in TABLE
        for name, overall, own in (("U", line.useful, line.per_useful), ("S", line.secret, line.per_secret))
        if not possible(overall, own)
    ]


def possible(overall: float, own: tuple[float, float, float]) -> bool:
    """Whether a mean of the accuracies of the values can be the overall one."""
    return min(own) - ROUNDING <= overall <= max(own) + ROUNDING


def shares_exist(lines: list[tuple[float, tuple[float, float, float]]]) -> bool:
    """Whether some shares of the values, the same in every line, give all these overall accuracies."""
    rows = np.array([own for _, own in lines])
    overall = np.array([each for each, _ in lines])
    slack = 2 * ROUNDING
    found = linprog(
        np.zeros(3),
        A_ub=np.vstack([rows, -rows]),
        b_ub=np.concatenate([overall + slack, slack - overall]),
        A_eq=np.ones((1, 3)),
        b_eq=[1.0],
        bounds=[(0, 1)] * 3,
    )
    return found.status == 0
