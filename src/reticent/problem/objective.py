"""What is wanted: three prices."""

import math
from dataclasses import dataclass

from reticent.errors import InputError


@dataclass(frozen=True)
class Objective:
    """Prices of a release, of a wrong guess of U, and of entering the forbidden region.

    The paper writes C_T, lambda and C_B (C_MI for the information bound). Its experiments on recordings use
    time_cost 0.5 with error_penalty 50.
    """

    time_cost: float = 1.0
    error_penalty: float = 50.0
    violation_cost: float = 50.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_cost) and self.time_cost > 0):
            raise InputError(f"The time cost must be a positive number, but is {self.time_cost}.")
        if not (math.isfinite(self.error_penalty) and self.error_penalty > 0):
            raise InputError(f"The error penalty must be a positive number, but is {self.error_penalty}.")
        if not self.violation_cost >= 0:
            raise InputError(f"The violation cost must be zero or more, but is {self.violation_cost}.")
