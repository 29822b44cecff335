"""What the provider knows at one moment, and what one release of each sensor would tell it."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from reticent.belief.bayes import posteriors, secret_joint, secret_marginal, useful_joint
from reticent.belief.information import entropy_bits, information_bits, secret_information_bits
from reticent.errors import InputError
from reticent.problem.bound import Knowledge, Prospect
from reticent.types import Array, Belief, PerSensor, Scalar


class Known(Knowledge):
    """The belief, the information spent, and what was said about the secret since the prior."""

    def __init__(self, prior: Belief, belief: Belief, spent_bits: Scalar) -> None:
        self.prior, self.belief, self.spent_bits = prior, belief, spent_bits

    @cached_property
    def said_bits(self) -> Scalar:
        """H_0 - H(beta_S): what was said about the secret by now, on average over all that leads to such beliefs."""
        return entropy_bits(secret_marginal(self.prior)) - entropy_bits(secret_marginal(self.belief))


class ExactProspect(Prospect):
    """By Bayes, from the law of what leaves the device."""

    def __init__(self, belief: Belief, spent_bits: Scalar, emissions: Float[Array, "A S U Y"]) -> None:
        self.belief, self.spent_bits, self.emissions = belief, spent_bits, emissions

    @cached_property
    def secret(self) -> Float[Array, "S A Y"]:
        return secret_joint(self.belief, self.emissions)

    @cached_property
    def useful(self) -> Float[Array, "U A Y"]:
        """P(u, y) of each sensor."""
        return useful_joint(self.belief, self.emissions)

    @cached_property
    def law(self) -> Float[Array, "A Y"]:
        return self.useful.sum(0)

    @cached_property
    def bits(self) -> PerSensor:
        return secret_information_bits(self.belief, self.emissions)

    def bits_of(self, sensor: Any) -> Scalar:
        """Only that of one sensor: logarithms are most of the cost of a step."""
        return information_bits(secret_marginal(self.belief), self.secret[:, sensor])

    @cached_property
    def everywhere(self) -> Bool[Array, " A"]:
        return jnp.ones(len(self.emissions), bool)

    @cached_property
    def movement(self) -> PerSensor:
        apart = jnp.abs(self.emissions - self.law[:, None, None])
        return 0.5 * jnp.sum(self.belief[None, :, :, None] * apart, axis=(1, 2, 3))

    @cached_property
    def posteriors(self) -> Float[Array, "A Y S U"]:
        """The belief after each symbol; one of probability zero leaves it as it was."""
        return jax.vmap(posteriors, (None, 0))(self.belief, self.emissions)[1]


class EstimatedProspect(Prospect):
    """Of a learned belief: the information is estimated where it is asked for, the law of readings is not known."""

    def __init__(self, belief: Belief, spent_bits: Scalar, sensors: int, bits: Callable[[], PerSensor]) -> None:
        self.belief, self.spent_bits, self._sensors, self._bits = belief, spent_bits, sensors, bits

    @cached_property
    def bits(self) -> PerSensor:
        return self._bits()

    @property
    def everywhere(self) -> Bool[Array, " A"]:
        return jnp.ones(self._sensors, bool)

    @property
    def movement(self) -> PerSensor:
        raise InputError(NO_LAW)

    @property
    def secret(self) -> Float[Array, "S A Y"]:
        raise InputError(NO_LAW)

    @property
    def law(self) -> Float[Array, "A Y"]:
        raise InputError(NO_LAW)


NO_LAW = "A learned belief knows no finite law of the next reading: this enforcement needs a finite model."
