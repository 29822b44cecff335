"""The objective: the price of a release, and that of a wrong guess."""

import math
from dataclasses import dataclass

from reticent.errors import InputError


@dataclass(frozen=True)
class Objective:
    """What is wanted: the price of a release, and that of a wrong guess of U at the stop.

    The paper's experiments on recordings use time_cost 0.5 with error_penalty 50.

    Args:
        time_cost: What one release costs; the paper's C_T.
        error_penalty: What a wrong guess of the useful value costs; the paper's lambda.

    Example:
        >>> rt.Objective(time_cost=0.5).error_penalty
        50.0
    """

    time_cost: float = 1.0
    error_penalty: float = 50.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_cost) and self.time_cost > 0):
            raise InputError(f"The time cost must be a positive number, but is {self.time_cost}.")
        if not (math.isfinite(self.error_penalty) and self.error_penalty > 0):
            raise InputError(f"The error penalty must be a positive number, but is {self.error_penalty}.")
