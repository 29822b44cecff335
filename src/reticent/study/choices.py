"""What the paper does not say of its agent, its cost and its estimate, and what is taken in its place.

Each is an option of `reticent reproduce --to-the-letter` and of `[choices]` in a spec file. Nothing heavy is imported
here: the command line reads the options.
"""

import math
from dataclasses import asdict, dataclass, replace

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


@dataclass(frozen=True)
class LeftOpen:
    """Something that the paper does not say, what it does say of it, and why it is as it is: by an `option` of
    `Choices` or of the command, or always as `taken`."""

    what: str
    printed: str
    why: str
    option: str = ""
    taken: str = ""


def left_open() -> list[LeftOpen]:
    """All that the paper leaves open, with what is taken where nothing is chosen."""
    own = asdict(USUAL_CHOICES)
    usual = {name: "all of them" if number is None else f"{number:g}" for name, number in own.items()}
    return [replace(each, taken=each.taken or usual[each.option]) for each in _LEFT_OPEN]


_LEFT_OPEN = (
    LeftOpen("discount", "close to 1", "episodes take a few steps", "discount"),
    LeftOpen("learning rate of the actor", "not said", "the usual one of Adam", "actor_rate"),
    LeftOpen("learning rate of the critic", "not said", "that of the actor", "critic_rate"),
    LeftOpen("weight of an entropy bonus", "no bonus", "without one the agent soon stops at once", "entropy"),
    LeftOpen("C_B and C_MI", "ideally infinite, in practice very large", "as much as a wrong guess", "violation_cost"),
    LeftOpen("n of the estimate of information", "n", "the same mean as draws, with less noise", "hidden_pairs"),
    LeftOpen("k of the estimate of information", "k", "one antithetic pair", "readings_per_pair"),
    LeftOpen("where the 50 symbols lie", "not said", "three deviations beyond all means", "z_range", "-4.5 to 7.5"),
    LeftOpen("deviations of the readings", "drawn from [0.5, 1.5]", "each draw is another problem", "draws", "5 draws"),
    LeftOpen("length of the training", "not said", "that of the corrected agent", "steps", "10^6; recorded 200,000"),
    LeftOpen("prices of the synthetic problem", "1 and λ", "those of recordings are 0.5 and 50", "", "C_T 1, λ 50"),
    LeftOpen("longest episode", "not said", "so that every episode ends", "", "50 readings; 10 recorded"),
    LeftOpen("optimiser", "plain gradient steps", "the usual one", "", "Adam, gradients clipped at norm 0.5"),
    LeftOpen("batch", "one gradient step each", "as it fits the machine", "", "256 (recorded 128) episodes, 4 steps"),
    LeftOpen("unit of information", "log", "as everywhere here", "", "bits"),
    LeftOpen("three portions", "of the training data", "so that nobody is met again", "", "portions of people"),
)
