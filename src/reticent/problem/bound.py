"""What must not become known: a limit on the provider's confidence in S, or on the information about S."""

import math
from dataclasses import dataclass

from reticent.errors import InputError


@dataclass(frozen=True)
class ConfidenceBound:
    """max_s beta(s) < limit at every step (the paper's L_B). A limit above 1 is never reached: no bound."""

    limit: float

    def check(self, largest_secret_prior: float) -> None:
        """Refuse a limit that the prior alone already reaches."""
        if not math.isfinite(self.limit):
            raise InputError(f"The confidence bound must be a number, but is {self.limit}; above 1 means no bound.")
        if not self.limit > largest_secret_prior:
            raise InputError(
                f"The confidence bound {self.limit:g} is not above {largest_secret_prior:.6g}, the largest "
                "prior probability of a secret: it would be crossed before anything is released."
            )


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
NO_BOUND = ConfidenceBound(2.0)
