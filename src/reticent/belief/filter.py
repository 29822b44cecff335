"""Filters: how the provider updates its belief. Exact and learned beliefs behind one interface.

Beliefs are kept in 64-bit floats, because a bound on them must not depend on rounding: importing this module switches
JAX's 64-bit mode on. Networks stay in 32-bit floats explicitly.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.bayes import emitted, secret_marginal, update
from reticent.belief.information import entropy_bits
from reticent.belief.prospect import EstimatedProspect, ExactProspect, Joint
from reticent.errors import InputError
from reticent.problem.bound import Prospect
from reticent.types import Array, Belief, Channel, Flag, Index, Kernels, PerSensor, PRNGKey, Scalar

jax.config.update("jax_enable_x64", True)

# What a filter carries from step to step: arrays in some structure of its own.
Memory = Any
Reading = Float[Array, " D"]


class Filter(eqx.Module):
    """Takes in one observation after the other. Its memory is public: everybody can compute it from what was sent."""

    prior: eqx.AbstractVar[Belief]
    sensors: eqx.AbstractVar[int]

    @abc.abstractmethod
    def initial(self) -> Memory:
        """The memory before the first observation."""

    @abc.abstractmethod
    def update(self, memory: Memory, sensor: Index, observed: Any, kernels: Kernels | None) -> tuple[Memory, Flag]:
        """The memory after one observation more, and whether the filter holds that observation possible."""

    @abc.abstractmethod
    def belief(self, memory: Memory) -> Belief:
        """beta(s, u)."""

    @abc.abstractmethod
    def prospect(self, key: PRNGKey, memory: Memory, spent_bits: Scalar, kernels: Kernels | None) -> Prospect:
        """What one release of each sensor would tell."""

    @abc.abstractmethod
    def said_bits(self, before: Prospect, sensor: Index, after: Belief) -> Scalar:
        """What the release of this sensor adds to the information spent, where no estimate was made before it."""

    def first_prospect(self, kernels: Kernels | None) -> Prospect:
        """The prospect before the first observation; computed once, so it may cost more."""
        return self.prospect(None, self.initial(), jnp.zeros(()), kernels)

    @property
    def model_channel(self) -> Channel:
        """q(z | a, s, u) of a filter with a finite model."""
        raise InputError("This process has a learned belief and no finite model, which is needed here.")


class ExactFilter(Filter):
    """Bayes with a finite model; an observation is the index of a symbol."""

    prior: Belief
    channel: Channel

    def __init__(self, prior: Belief, channel: Channel) -> None:
        self.prior, self.channel = prior, channel

    @property
    def sensors(self) -> int:  # type: ignore[override]
        """Number of sensors."""
        return self.channel.shape[0]

    @property
    def model_channel(self) -> Channel:
        return self.channel

    def emissions(self, kernels: Kernels | None) -> Float[Array, "A S U Y"]:
        """Law of what leaves the device when each sensor speaks: its readings, or what is sent in their place."""
        return emitted(self.channel, kernels)

    def initial(self) -> Belief:
        return self.prior

    def update(self, memory: Belief, sensor: Index, observed: Index, kernels: Kernels | None) -> tuple[Belief, Flag]:
        return update(memory, self.emissions(kernels)[sensor, :, :, observed])

    def belief(self, memory: Belief) -> Belief:
        return memory

    def prospect(self, key: PRNGKey, memory: Belief, spent_bits: Scalar, kernels: Kernels | None) -> ExactProspect:
        del key
        return ExactProspect(Joint(memory, self.channel), spent_bits, kernels)

    def said_bits(self, before: Prospect, sensor: Index, after: Belief) -> Scalar:
        del after
        assert isinstance(before, ExactProspect)
        return before.bits_of(sensor)


class NearestSymbolFilter(Filter):
    """Bayes with a finite model; a reading counts as the symbol whose place is nearest to it."""

    prior: Belief
    exact: ExactFilter
    places: Float[Array, "A Z D"]

    def __init__(self, prior: Belief, channel: Channel, places: Float[Array, "A Z D"]) -> None:
        self.prior, self.exact, self.places = prior, ExactFilter(prior, channel), places

    @property
    def sensors(self) -> int:  # type: ignore[override]
        """Number of sensors."""
        return self.exact.sensors

    def initial(self) -> Belief:
        return self.prior

    def update(self, memory: Belief, sensor: Index, observed: Reading, kernels: Kernels | None) -> tuple[Belief, Flag]:
        symbol = jnp.argmin(jnp.sum((self.places[sensor] - observed[None]) ** 2, axis=-1))
        return self.exact.update(memory, sensor, symbol, kernels)

    def belief(self, memory: Belief) -> Belief:
        return memory

    def prospect(self, key: PRNGKey, memory: Belief, spent_bits: Scalar, kernels: Kernels | None) -> ExactProspect:
        return self.exact.prospect(key, memory, spent_bits, kernels)

    def said_bits(self, before: Prospect, sensor: Index, after: Belief) -> Scalar:
        return self.exact.said_bits(before, sensor, after)


class LearnedFilter(Filter):
    """What learned beliefs share: the information of the next reading is an estimate."""

    @abc.abstractmethod
    def information_bits(self, key: PRNGKey, memory: Memory) -> PerSensor:
        """I(S; Z | A=a, memory): an estimate for each sensor."""

    def prospect(self, key: PRNGKey, memory: Memory, spent_bits: Scalar, kernels: Kernels | None) -> EstimatedProspect:
        assert kernels is None
        bits = lambda: self.information_bits(key, memory)  # noqa: E731
        return EstimatedProspect(self.belief(memory), spent_bits, self.sensors, bits)

    def said_bits(self, before: Prospect, sensor: Index, after: Belief) -> Scalar:
        """The fall of the entropy of S: on average the information, as far as the belief is calibrated."""
        del sensor
        return entropy_bits(secret_marginal(before.belief)) - entropy_bits(secret_marginal(after))
