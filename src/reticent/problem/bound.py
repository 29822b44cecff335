"""Bounds: limits on what the provider may learn about the secret.

A bound is a frozen dataclass whose numbers become array leaves in compiled code, so that another limit does not
recompile. Write your own by deriving from `Bound`, or from `PosteriorBound` where it limits the posterior probability
of each secret: then it can be kept by withholding and coarsening, too.
"""

import abc
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent.errors import InputError

# Beliefs are sums of a few products: their rounding errors stay far below this.
ROUNDING = 1e-12


class Knowledge:
    """What the provider knows at one moment; everybody can compute it from what was sent.

    `belief` [... S U]; `spent_bits`, the information spent by the sensors used so far; `said_bits`, by how much the
    entropy of the secret has fallen since the prior.
    """

    belief: Any
    spent_bits: Any
    said_bits: Any


class Prospect:
    """What one release of each sensor can lead to, as far as it must be known before the reading is taken.

    `belief` and `spent_bits` are those before it. `secret` [S A Y] is P(s, y), the joint law of secret and symbol,
    `law` [A Y] is P(y), `bits` [A] is I(S; Y | A=a, beta), the information about the secret, `movement` [A] the
    expected total variation between the belief after the release and before it; `everywhere` [A] is True for all.

    Of many beliefs at once `belief` is [N S U], `spent_bits` [N], `secret` [S N A Y], and the rest begin with N.
    """

    belief: Any
    spent_bits: Any
    secret: Any
    law: Any
    bits: Any
    movement: Any
    everywhere: Any


class Bound(abc.ABC):
    """A limit on what the provider knows.

    `name` is that of files and the command line, `unit` that of the limit. `pathwise`: it is on every single episode,
    not on their mean. `crossable`: something can cross it. `on_spending`: it limits the information spent, which is
    then part of the state. Numbers of a bound of your own are its dataclass fields: the page docs/own-parts.md writes
    one.

    Example:
        >>> rt.Information(0.5).unit, rt.Information(0.5).on_spending
        ('bits', True)
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    pathwise: ClassVar[bool] = True
    crossable: ClassVar[bool] = True
    on_spending: ClassVar[bool] = False

    @property
    def number(self) -> Any:
        """The number that is not to be reached, in `unit`; None where there is no single one."""
        return None

    @abc.abstractmethod
    def level(self, known: Knowledge) -> Any:
        """What is compared with the limit, in `unit`."""

    @abc.abstractmethod
    def used(self, known: Knowledge) -> Any:
        """Share of the bound that is used up: one where it is reached."""

    def crossed(self, known: Knowledge) -> Any:
        """Whether the bound is reached at this moment."""
        return self.used(known) >= 1

    def entered(self, secret: Any, law: Any) -> Any:
        """Which weighted posteriors P(s, .) [S ...] of mass `law` [...] cross the bound by themselves: none here."""
        del secret
        return law < 0

    @abc.abstractmethod
    def may_cross(self, prospect: Prospect) -> Any:
        """Which sensors could cross the bound with their next release, [A]."""

    def secret_limits(self, secrets: int) -> Any:
        """The limit on the posterior of each secret, [S]; an `InputError` for a bound that has none."""
        del secrets
        raise InputError(
            f"A bound on {self.name} does not limit the posterior of a secret, so nothing can be merged to keep it. "
            "Choose a confidence bound, or enforce this one in another way."
        )

    def posterior_limit(self, secrets: int) -> float | None:
        """The posterior that no secret may reach, whichever it is; None for a bound that does not limit posteriors."""
        del secrets
        return None

    def check(self, prior: np.ndarray) -> None:
        """Refuse a limit that makes no sense for a model with this prior [S U]."""
        del prior

    def paper_cost(self, time_cost: Any, cost: Any, before: Any, after: Any) -> Any:
        """What a release costs by the paper, given whether the bound is reached before and after it."""
        del before
        return time_cost + cost * after

    def range_used(self, prior: np.ndarray, horizon: int, never: bool) -> tuple[float, float]:
        """Limits of `used` over an episode; `never`: the enforcement never lets the bound be crossed."""
        del prior, horizon, never
        return 0.0, math.inf


@dataclass(frozen=True)
class PosteriorBound(Bound):
    """P(s | all that was sent) < limit(s) at every step, for every secret s.

    Derive from it, and define `secret_limits`, for limits of your own: withholding, coarsening and answers keep them.

    Example:
        >>> rt.Confidence(0.8).secret_limits(2)
        array([0.8, 0.8])
    """

    unit: ClassVar[str] = "probability"

    @abc.abstractmethod
    def secret_limits(self, secrets: int) -> Any:
        """The limit on the posterior of each secret, [S]."""

    def posterior_limit(self, secrets: int) -> float | None:
        return float(np.max(self.secret_limits(secrets)))

    def level(self, known: Knowledge) -> Any:
        return known.belief.sum(-1).max(-1)

    def used(self, known: Knowledge) -> Any:
        secret = known.belief.sum(-1)
        return (secret / self.secret_limits(secret.shape[-1])).max(-1)

    def crossed(self, known: Knowledge) -> Any:
        secret = known.belief.sum(-1)
        return (secret >= self.secret_limits(secret.shape[-1])).any(-1)

    def entered(self, secret: Any, law: Any) -> Any:
        return (secret >= self._aligned(secret) * law[None]).any(0)

    def may_cross(self, prospect: Prospect) -> Any:
        """Beliefs within ROUNDING of the limit count as having reached it; symbols of probability zero never come."""
        secret, law = prospect.secret, prospect.law
        return ((secret >= (self._aligned(secret) - ROUNDING) * law[None]).any(0) & (law > 0)).any(-1)

    def check(self, prior: np.ndarray) -> None:
        limits, secret = np.asarray(self.secret_limits(len(prior))), prior.sum(1)
        if not (secret < limits).all():
            raise InputError(
                f"The bound {self!r} is not above {secret.max():.6g}, the largest prior probability of a secret: "
                "it would be crossed before anything is released."
            )

    def paper_cost(self, time_cost: Any, cost: Any, before: Any, after: Any) -> Any:
        """The paper charges C_B, in place of C_T, for a release FROM the forbidden region."""
        del after
        return time_cost + (cost - time_cost) * before

    def range_used(self, prior: np.ndarray, horizon: int, never: bool) -> tuple[float, float]:
        del horizon, never
        limits = np.asarray(self.secret_limits(len(prior)))
        return float(1 / limits.sum()), float(1 / limits.min())

    def _aligned(self, secret: Any) -> Any:
        """The limits along the first of so many axes."""
        return self.secret_limits(len(secret)).reshape(-1, *[1] * (secret.ndim - 1))


@dataclass(frozen=True)
class Confidence(PosteriorBound):
    """max_s beta(s) < limit at every step: the provider is never so sure of any secret (the paper's L_B).

    Args:
        limit: A probability above the largest prior of a secret.

    Example:
        >>> rt.Confidence(80.0)
        Traceback (most recent call last):
        reticent.errors.InputError: The confidence bound is a probability, at most 1, but is 80. ...
    """

    name: ClassVar[str] = "confidence"
    limit: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.limit):
            raise InputError(f"The confidence bound must be a number, but is {self.limit}.")
        if self.limit > 1:
            raise InputError(
                f"The confidence bound is a probability, at most 1, but is {self.limit:g}. Write 80 % as 0.8; no bound "
                "at all is --unbounded on the command line, Unbounded() in Python and unbounded = true in a sweep file."
            )

    @property
    def number(self) -> Any:
        return self.limit

    def secret_limits(self, secrets: int) -> Any:
        # Booleans take the type of whatever they are multiplied with: 32 bits stay 32 bits.
        return np.ones(secrets, bool) * self.limit

    def check(self, prior: np.ndarray) -> None:
        largest = float(prior.sum(1).max())
        if not self.limit > largest:
            raise InputError(
                f"The confidence bound {self.limit:g} is not above {largest:.6g}, the largest "
                "prior probability of a secret: it would be crossed before anything is released."
            )


@dataclass(frozen=True)
class Unbounded(Bound):
    """No bound: nothing crosses it.

    Example:
        >>> rt.Task(rt.synthetic(), rt.Unbounded()).bound.number is None
        True
    """

    name: ClassVar[str] = "unbounded"
    unit: ClassVar[str] = "probability"
    crossable: ClassVar[bool] = False

    def level(self, known: Knowledge) -> Any:
        return known.belief.sum(-1).max(-1)

    def used(self, known: Knowledge) -> Any:
        return 0.0 * known.spent_bits

    def crossed(self, known: Knowledge) -> Any:
        return known.spent_bits < 0

    def may_cross(self, prospect: Prospect) -> Any:
        return ~prospect.everywhere

    def range_used(self, prior: np.ndarray, horizon: int, never: bool) -> tuple[float, float]:
        del prior, horizon, never
        return 0.0, 0.0


@dataclass(frozen=True)
class Information(Bound):
    """The information spent, sum_t I_{a_t}(beta_t) over the sensors used, stays < bits on every path (paper's L_MI).

    Args:
        bits: The limit.

    Example:
        >>> rt.Task(rt.synthetic(), rt.Information(0.5)).enforcement
        Mask()
    """

    name: ClassVar[str] = "information"
    unit: ClassVar[str] = "bits"
    on_spending: ClassVar[bool] = True
    bits: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bits) and self.bits > 0):
            raise InputError(f"The information bound must be a number of bits above 0, but is {self.bits}.")

    @property
    def number(self) -> Any:
        return self.bits

    def level(self, known: Knowledge) -> Any:
        return known.spent_bits

    def used(self, known: Knowledge) -> Any:
        return known.spent_bits / self.bits

    def crossed(self, known: Knowledge) -> Any:
        return known.spent_bits >= self.bits

    def may_cross(self, prospect: Prospect) -> Any:
        return prospect.spent_bits[..., None] + prospect.bits >= self.bits

    def range_used(self, prior: np.ndarray, horizon: int, never: bool) -> tuple[float, float]:
        # One release says at most all there is to know.
        return 0.0, 1.0 if never else horizon * math.log2(len(prior)) / float(self.bits)


@dataclass(frozen=True)
class ExpectedInformation(Bound):
    """H(S) - E[H(beta_tau(S))] <= bits: the information of an episode about the secret, on average.

    Weaker than `Information`, which holds on every path: single episodes may say more.

    Args:
        bits: The limit.

    Example:
        >>> rt.Task(rt.synthetic(), rt.ExpectedInformation(0.5)).enforcement.promise.value
        'kept on average'
    """

    name: ClassVar[str] = "expected information"
    unit: ClassVar[str] = "bits"
    pathwise: ClassVar[bool] = False
    bits: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bits) and self.bits > 0):
            raise InputError(f"The expected-information bound must be a number of bits above 0, but is {self.bits}.")

    @property
    def number(self) -> Any:
        return self.bits

    def level(self, known: Knowledge) -> Any:
        return known.said_bits

    def used(self, known: Knowledge) -> Any:
        return known.said_bits / self.bits

    def crossed(self, known: Knowledge) -> Any:
        return known.spent_bits < 0

    def may_cross(self, prospect: Prospect) -> Any:
        return ~prospect.everywhere

    def range_used(self, prior: np.ndarray, horizon: int, never: bool) -> tuple[float, float]:
        del horizon, never
        secret = prior.sum(1)
        at_first = -float((secret * np.log2(np.where(secret > 0, secret, 1.0))).sum())
        bits = float(self.bits)
        return (at_first - math.log2(len(secret))) / bits, at_first / bits


BOUNDS: dict[str, type[Bound]] = {kind.name: kind for kind in (Confidence, Information, ExpectedInformation, Unbounded)}
