"""What must not become known: a limit on the provider's confidence in S, or on the information about S."""

import math
from dataclasses import dataclass

from reticent.errors import InputError


@dataclass(frozen=True)
class ConfidenceBound:
    """max_s beta(s) < limit at every step (the paper's L_B), a probability."""

    limit: float

    def __post_init__(self) -> None:
        if self.limit > 1:
            raise InputError(
                f"The confidence bound is a probability, at most 1, but is {self.limit:g}. Write 80 % as 0.8; no bound "
                "at all is --unbounded on the command line, NO_BOUND in Python and unbounded = true in a sweep file."
            )

    def check(self, largest_secret_prior: float) -> None:
        """Refuse a limit that the prior alone already reaches."""
        if not math.isfinite(self.limit):
            raise InputError(f"The confidence bound must be a number, but is {self.limit}.")
        if not self.limit > largest_secret_prior:
            raise InputError(
                f"The confidence bound {self.limit:g} is not above {largest_secret_prior:.6g}, the largest "
                "prior probability of a secret: it would be crossed before anything is released."
            )


@dataclass(frozen=True)
class Unbounded(ConfidenceBound):
    """No bound: a confidence bound that no belief can reach, because its limit is above 1.

    What a network sees is relative to the limit, so a policy file keeps the limit that it was trained with.
    """

    limit: float = 2.0

    def __post_init__(self) -> None:
        if not self.limit > 1:
            raise InputError(f"A confidence of {self.limit:g} can be reached: that is a ConfidenceBound.")


@dataclass(frozen=True)
class InformationBound:
    """The ledger sum_t I_{a_t}(beta_t) of the sensors used stays < limit_bits on every path (the paper's L_MI)."""

    limit_bits: float

    def check(self, largest_secret_prior: float) -> None:
        """Refuse a limit that forbids even a release that says nothing."""
        if not (math.isfinite(self.limit_bits) and self.limit_bits > 0):
            raise InputError(f"The information bound must be a number of bits above 0, but is {self.limit_bits}.")


@dataclass(frozen=True)
class ExpectedInformationBound:
    """H(S) - E[H(beta_tau(S))] <= limit_bits: what an episode says about the secret by its end, on average.

    Weaker than `InformationBound`, which holds on every path: single episodes may say more.
    """

    limit_bits: float

    def check(self, largest_secret_prior: float) -> None:
        """Refuse a limit that only silence about the secret would keep."""
        if not (math.isfinite(self.limit_bits) and self.limit_bits > 0):
            raise InputError(
                f"The expected-information bound must be a number of bits above 0, but is {self.limit_bits}."
            )


Bound = ConfidenceBound | InformationBound | ExpectedInformationBound
NO_BOUND = Unbounded()
