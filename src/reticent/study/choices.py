"""What the paper does not say of its agent, its cost and its estimate, and what is taken in its place.

Each is an option of `reticent reproduce --to-the-letter` and of `[choices]` in a spec file. Nothing heavy is imported
here: the command line reads the options.
"""

import math
from dataclasses import dataclass

from reticent.errors import InputError


@dataclass(frozen=True)
class Choices:
    """Numbers that the paper leaves open. They are those of its own agent (a2c), cost and estimate only; C_B is shared
    by the corrected cost."""

    discount: float = 0.99
    """Discount gamma (a2c). The paper: close to 1."""
    actor_rate: float = 1e-3
    """Learning rate of the actor (a2c)."""
    critic_rate: float = 1e-3
    """Learning rate of the critic (a2c)."""
    entropy: float = 0.1
    """Weight of an entropy bonus (a2c), in units of the scaled cost. The paper names none; without one the agent soon
    stops at once."""
    violation_cost: float = 50.0
    """C_B and C_MI. The paper: very large."""
    hidden_pairs: int | None = None
    """n, how many hidden pairs the estimate of information draws (recordings); by default it takes all of them once,
    weighted by the belief."""
    readings_per_pair: int = 2
    """k, how many readings it draws for each pair (recordings): an even number, as they come in antithetic pairs."""

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise InputError(f"The discount lies above 0 and at most at 1, but is {self.discount:g}.")
        for name in ("actor_rate", "critic_rate"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{name} must be a number above 0, but is {getattr(self, name):g}.")
        for name in ("entropy", "violation_cost"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InputError(f"{name} must be a number, zero or more, but is {getattr(self, name):g}.")
        if self.hidden_pairs is not None and not _whole(self.hidden_pairs, 1):
            raise InputError(f"hidden_pairs must be a whole number, at least 1, but is {self.hidden_pairs}.")
        if not _whole(self.readings_per_pair, 2) or self.readings_per_pair % 2:
            raise InputError(f"readings_per_pair must be an even number, at least 2, but is {self.readings_per_pair}.")


def _whole(number: object, least: int) -> bool:
    return type(number) is int and number >= least


USUAL_CHOICES = Choices()
