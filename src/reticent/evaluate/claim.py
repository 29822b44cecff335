"""Claims about people who are still to come, from people of whom it is known: learn then test.

A person counts as over the limit L if an attacker names her secret right in more than L of the cases. The claim is that
of people like those who were looked at, at least a share are not over it. For one policy, made without these n people,
the hypothesis that fewer than the share keep to L has the exact p-value

    P(K <= k),    K ~ Binomial(n, 1 - share),

where k of them were over. Policies are tried in an order that was fixed before, from the most cautious on, each at the
full size 1 - level, until one is not accepted: then the chance that any accepted one breaks the claim is at most 1 -
level (fixed-sequence testing; Angelopoulos et al., "Learn then Test", 2021). Several such sequences share the size.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy import stats

from reticent.errors import InputError


@dataclass(frozen=True)
class Wanted:
    """What is to be claimed: of new people at least the `share` are named right in at most `limit` of the cases, said
    with confidence `level` over the draw of the people who were looked at. `sequences` share the size of the test."""

    limit: float
    level: float = 0.9
    share: float = 0.9
    sequences: int = 1

    def __post_init__(self) -> None:
        for name in ("limit", "level", "share"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} must lie between 0 and 1, but is {getattr(self, name):g}.")

    @property
    def size(self) -> float:
        """The chance of a wrong claim that each sequence may use up."""
        return (1 - self.level) / self.sequences

    @property
    def people_needed(self) -> int:
        """With fewer people the claim cannot be made, even if nobody is over."""
        return math.ceil(math.log(self.size) / math.log(self.share) - 1e-9)

    def p_value(self, over: int, people: int) -> float:
        """How likely so few would be over if fewer than the share kept to the limit: exact."""
        return float(stats.binom.cdf(over, people, 1 - self.share))

    def accepts(self, over: int, people: int) -> bool:
        """Whether the claim can be made of a policy with so many people over."""
        return self.p_value(over, people) <= self.size

    def check(self, people: int) -> None:
        """Refuse a claim for which there are too few people."""
        if people < self.people_needed:
            raise InputError(
                f"Not enough people for this claim: at least {self.people_needed} are needed whom the model was not "
                f"fitted to, and there are {people}. Record more people, leave more out of the fit, or claim less: a "
                f"smaller share or level. {people} people allow a share of {self.size ** (1 / max(people, 1)):.2f}."
            )


@dataclass(frozen=True)
class Claim:
    """A claim that was tested: the words of its three parts are those of policy files, pages and audits."""

    limit: float
    level: float
    share: float
    people: int
    over: int
    p_value: float

    @classmethod
    def of(cls, wanted: Wanted, over: int, people: int) -> "Claim":
        """The claim, for a policy that was accepted."""
        return cls(wanted.limit, wanted.level, wanted.share, people, over, wanted.p_value(over, people))

    @classmethod
    def made_with(cls, made: dict[str, Any]) -> "Claim | None":
        """The claim that was made along with a policy; none where there was none."""
        try:
            return cls(**made["claim"]) if "claim" in made else None
        except TypeError as error:
            raise InputError(
                f"The policy file holds a claim that cannot be read: {made['claim']!r:.200}. Calibrate it anew."
            ) from error

    @property
    def sentence(self) -> str:
        """What is claimed, and on what grounds."""
        return (
            f"with confidence {self.level:.0%}, attackers who learned from other people name the secret of at least "
            f"{self.share:.0%} of people like these right in at most {self.limit:.0%} of the cases ({self.over} of "
            f"{self.people} people were over; exact p = {self.p_value:.3g})"
        )

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, kept with the policy."""
        return asdict(self)


def three_parts(promised: str, claim: Claim | None) -> list[str]:
    """What holds by construction, what statistically, and what not at all."""
    statistically = "nothing was claimed; `reticent calibrate` does" if claim is None else claim.sentence
    return [
        f"By construction: {promised}.",
        f"Statistically: {statistically}.",
        "Not at all: for people unlike those recorded, for attackers who see more than what is sent, and for those who "
        "know of this person what no model here knows.",
    ]


def grid(least: float, limit: float, steps: int) -> Sequence[float]:
    """Bounds on the model's confidence to try, the most cautious first: evenly from just above `least` to the limit."""
    return [least + (limit - least) * step / steps for step in range(1, steps + 1)]
