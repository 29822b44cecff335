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
    pairs: int | None = None
    """n, how many hidden pairs the estimate of information draws (recordings); by default it sums over all of them."""
    draws_per_pair: int = 2
    """k, how many readings it draws for each pair (recordings); even where it sums over all pairs."""

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise InputError(f"The discount lies above 0 and at most at 1, but is {self.discount:g}.")
        for name in ("actor_rate", "critic_rate"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{name} must be a number above 0, but is {getattr(self, name):g}.")
        for name in ("entropy", "violation_cost"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InputError(f"{name} must be a number, zero or more, but is {getattr(self, name):g}.")
        for name in ("pairs", "draws_per_pair"):
            if (count := getattr(self, name)) is not None and count < 1:
                raise InputError(f"{name} must be at least 1, but is {count}.")
        if self.pairs is None and self.draws_per_pair % 2:
            raise InputError(
                f"draws_per_pair must be even where all pairs are summed over, because readings are drawn in "
                f"antithetic pairs, but is {self.draws_per_pair}. Give an even number, or a number of pairs."
            )


USUAL_CHOICES = Choices()
