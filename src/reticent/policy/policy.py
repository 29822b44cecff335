"""The interface of a policy, and two baselines: random sensor and fixed sensor."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.bayes import useful_marginal
from reticent.process.process import Process, Public, PublicState
from reticent.types import Array, Index, PRNGKey, Scalar

# A threshold on a probability that no belief reaches: the policy never stops by it.
NEVER = jnp.inf


class Policy(eqx.Module):
    """Chooses an action from the public state. It must never choose one that is not allowed.

    Write your own by deriving from it: its fields are arrays, and `act` is compiled, so it says `jnp.where` for `if`.

    Example:
        >>> import jax.numpy as jnp
        >>> class Patient(rt.Policy):
        ...     def act(self, key, public):
        ...         return jnp.argmax(public.allowed)
    """

    @abc.abstractmethod
    def act(self, key: PRNGKey, public: Public) -> Index:
        """Index of a sensor, or one past the last sensor to stop."""

    def acts_in(self, process: Process) -> Process:
        """The process that it acts in: this one, unless it carries along one with numbers that it has learned."""
        return process

    @property
    def control_variate(self) -> Any:
        """Its value function, where it has one: simulated costs then have narrower intervals."""
        return None


def choose(key: PRNGKey, public: Public, weight: Float[Array, " A"], stop: Array) -> Index:
    """Stop if told to or if no sensor is allowed; else an allowed sensor, drawn by weight."""
    sensors = public.allowed[:-1]
    weight = jnp.where(sensors, weight, 0.0)
    # An allowed sensor of weight zero is still better than a forbidden one.
    weight = jnp.where(jnp.any(weight > 0), weight, sensors.astype(weight.dtype))
    sensor = jax.random.categorical(key, jnp.log(weight))
    return jnp.where(stop | ~jnp.any(sensors), sensors.size, sensor)


def best(public: Public, score: Float[Array, " A"], stop: Array) -> Index:
    """Stop if told to or if no sensor is allowed; else the allowed sensor of the highest score."""
    sensors = public.allowed[:-1]
    sensor = jnp.argmax(jnp.where(sensors, score, -jnp.inf))
    return jnp.where(stop | ~jnp.any(sensors), sensors.size, sensor)


def sure_enough(public: Public, threshold: Scalar) -> Array:
    """Whether the provider's best guess of U has reached the threshold."""
    return jnp.max(useful_marginal(public.belief)) >= threshold


class RandomSensor(Policy):
    """A random allowed sensor until the provider is sure enough of U."""

    threshold: Scalar

    def act(self, key: PRNGKey, public: Public) -> Index:
        return choose(key, public, jnp.ones(public.allowed.size - 1), sure_enough(public, self.threshold))


class FixedSensor(Policy):
    """Always the same sensor until the provider is sure enough of U; stops when that sensor is not allowed."""

    sensor: Index
    threshold: Scalar

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        del key
        stop = sure_enough(public, self.threshold) | ~public.allowed[self.sensor]
        return jnp.where(stop, public.allowed.size - 1, self.sensor)


class NoProtection(Policy):
    """The paper's no-PUT policy: random sensors, whatever they reveal; it never stops by itself.

    Run it in a process without bound whose horizon is the number of readings.
    """

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        return jax.random.randint(key, (), 0, public.allowed.size - 1)
