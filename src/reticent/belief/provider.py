"""What a service provider makes of the readings it is sent: the door that exact and learned beliefs share."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.bayes import update
from reticent.belief.information import secret_information_bits
from reticent.types import Array, Belief, Channel, Flag, Index, PerSensor, PRNGKey

# What a provider remembers: arrays in some structure of its own.
Known = Any
Reading = Float[Array, " D"]


class Provider(eqx.Module):
    """Learns from one reading after the other. What it knows is public: everybody can compute it from the readings."""

    prior: eqx.AbstractVar[Belief]
    sensors: eqx.AbstractVar[int]

    @abc.abstractmethod
    def start(self) -> Known:
        """What it knows before the first reading."""

    @abc.abstractmethod
    def learn(self, known: Known, sensor: Index, reading: Reading) -> tuple[Known, Flag]:
        """What it knows after one reading more, and whether it holds that reading possible."""

    @abc.abstractmethod
    def belief(self, known: Known) -> Belief:
        """beta(s, u)."""

    @abc.abstractmethod
    def information_bits(self, key: PRNGKey, known: Known) -> PerSensor:
        """I(S; Z | A=a, what it knows): what the next reading of each sensor would say about the secret."""


class BayesProvider(Provider):
    """Exact, with a known channel: a reading counts as the symbol whose place is nearest to it."""

    prior: Belief
    channel: Channel
    places: Float[Array, "A Z D"]

    def __init__(self, prior: Belief, channel: Channel, places: Float[Array, "A Z D"]) -> None:
        self.prior, self.channel, self.places = prior, channel, places

    @property
    def sensors(self) -> int:  # type: ignore[override]
        """Number of sensors."""
        return self.channel.shape[0]

    def start(self) -> Known:
        return self.prior

    def learn(self, known: Known, sensor: Index, reading: Reading) -> tuple[Known, Flag]:
        symbol = jnp.argmin(jnp.sum((self.places[sensor] - reading[None]) ** 2, axis=-1))
        return update(known, self.channel[sensor, :, :, symbol])

    def belief(self, known: Known) -> Belief:
        return known

    def information_bits(self, key: PRNGKey, known: Known) -> PerSensor:
        del key
        return secret_information_bits(known, self.channel)
