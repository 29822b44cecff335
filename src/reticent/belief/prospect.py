"""What the provider knows at one moment, and what one release of each sensor would tell it."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from jaxtyping import Bool, Float, Inexact

from reticent.belief.bayes import emitted, posteriors, secret_joint, secret_marginal, sent_joint, useful_joint
from reticent.belief.information import entropy_bits, information_bits
from reticent.errors import InputError
from reticent.problem.bound import Knowledge, Prospect
from reticent.types import Belief, Channel, PerSensor


class Known(Knowledge):
    """The belief, the information spent, and what was said about the secret since the prior."""

    def __init__(self, prior: Belief, belief: Inexact[Any, "*N S U"], spent_bits: Any) -> None:
        self.prior, self.belief, self.spent_bits = prior, belief, spent_bits

    @cached_property
    def said_bits(self) -> Inexact[Any, "*N"]:
        """H_0 - H(beta_S): what was said about the secret by now, on average over all that leads to such beliefs."""
        return entropy_bits(secret_marginal(self.prior)) - entropy_bits(secret_marginal(self.belief))


class Joint:
    """The joint laws of the hidden pair and the next reading of each sensor, each found when it is first asked for.

    Of one belief, or of many.
    """

    def __init__(self, belief: Float[Any, "*N S U"], channel: Channel) -> None:
        self.belief, self.channel = belief, channel

    @cached_property
    def secret(self) -> Float[Any, "S *N A Z"]:
        """P(s, z)."""
        return secret_joint(self.belief, self.channel)

    @cached_property
    def useful(self) -> Float[Any, "U *N A Z"]:
        """P(u, z)."""
        return useful_joint(self.belief, self.channel)

    @cached_property
    def law(self) -> Float[Any, "*N A Z"]:
        """P(z)."""
        return self.secret.sum(0)


class ExactProspect(Prospect):
    """By Bayes, from the law of the readings and what is sent in their place. Of one belief, or of many."""

    def __init__(self, readings: Joint, spent_bits: Any, kernels: Float[Any, "*N A O Z"] | None) -> None:
        self.belief, self.readings, self.spent_bits, self._kernels = readings.belief, readings, spent_bits, kernels

    @cached_property
    def emissions(self) -> Float[Any, "*N A S U Y"]:
        """Law of what leaves the device when each sensor speaks: its readings, or what is sent in their place."""
        emissions = emitted(self.readings.channel, self._kernels)
        beliefs = self.belief.shape[:-2]
        if not beliefs or self._kernels is not None:
            return emissions
        return emissions.__array_namespace__().broadcast_to(emissions, (*beliefs, *emissions.shape))

    @cached_property
    def secret(self) -> Float[Any, "S *N A Y"]:
        return sent_joint(self.readings.secret, self._kernels)

    @cached_property
    def useful(self) -> Float[Any, "U *N A Y"]:
        """P(u, y) of each sensor."""
        return sent_joint(self.readings.useful, self._kernels)

    @cached_property
    def law(self) -> Float[Any, "*N A Y"]:
        return self.useful.sum(0)

    @cached_property
    def bits(self) -> Float[Any, "*N A"]:
        return information_bits(secret_marginal(self.belief), self.secret)

    def bits_of(self, sensor: Any) -> Float[Any, "*N"]:
        """Only that of one sensor, or of one for each belief: logarithms are most of the cost of a step."""
        secret = self.secret[:, sensor] if self.belief.ndim == 2 else self.secret[:, range(len(sensor)), sensor]
        return information_bits(secret_marginal(self.belief), secret)

    @cached_property
    def everywhere(self) -> Bool[Any, "*N A"]:
        return self.belief.__array_namespace__().ones((*self.belief.shape[:-2], len(self.readings.channel)), bool)

    @cached_property
    def movement(self) -> Float[Any, "*N A"]:
        apart = abs(self.emissions - self.law[..., None, None, :])
        return 0.5 * (self.belief[..., None, :, :, None] * apart).sum((-3, -2, -1))

    @cached_property
    def posteriors(self) -> Float[Any, "*N A Y S U"]:
        """The belief after each symbol; one of probability zero leaves it as it was."""
        return posteriors(self.belief, self.emissions)[1]


class EstimatedProspect(Prospect):
    """Of a learned belief: the information is estimated where it is asked for, the law of readings is not known."""

    def __init__(self, belief: Belief, spent_bits: Any, sensors: int, bits: Callable[[], PerSensor]) -> None:
        self.belief, self.spent_bits, self._sensors, self._bits = belief, spent_bits, sensors, bits

    @cached_property
    def bits(self) -> PerSensor:
        return self._bits()

    @property
    def everywhere(self) -> Bool[Any, " A"]:
        return self.belief.__array_namespace__().ones(self._sensors, bool)

    @property
    def movement(self) -> PerSensor:
        raise InputError(NO_LAW)

    @property
    def secret(self) -> Float[Any, "S A Y"]:
        raise InputError(NO_LAW)

    @property
    def law(self) -> Float[Any, "A Y"]:
        raise InputError(NO_LAW)


NO_LAW = "A learned belief knows no finite law of the next reading: this enforcement needs a finite model."
