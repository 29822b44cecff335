"""Bellman targets of a value function at beliefs, and fitting it to them."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float

from reticent.policy.lookahead import ValueFunction
from reticent.policy.network import Network
from reticent.process.process import Process
from reticent.types import Array, Belief, PerSensor, Scalar

# Of the errors of all sensors, beside those of the best.
Q_WEIGHT = 0.25


class Targets(NamedTuple):
    """Beliefs, the bits spent there, and what `ValueFunction.q_values` should say."""

    belief: Any
    spent_bits: Any
    costs: Any


def bellman_target(process: Process, belief: Belief, spent_bits: Scalar, costs: PerSensor) -> Targets:
    """What is to be learned at a belief from each sensor's cost to go."""
    if not process.ends_on_crossing:
        # Far beyond the stop cost it only matters that continuing costs more.
        costs = jnp.minimum(jnp.min(costs, keepdims=True), process.stop_cost(belief) + process.objective.time_cost)
    return Targets(belief, spent_bits, costs)


class Fit(NamedTuple):
    """A network and Adam's memory of it."""

    network: Network
    optimiser: optax.OptState


def fresh_fit(network: Network) -> Fit:
    """Nothing remembered yet."""
    return Fit(network, optax.adam(1.0).init(eqx.filter(network, eqx.is_array)))


class Errors(NamedTuple):
    """By how much a network says too much, of each cost and of the least one, in shares of the error penalty."""

    q_values: Float[Array, "N O"]
    least: Float[Array, " N"]


def errors(process: Process, network: Network, targets: Targets) -> Errors:
    """What is still to be learned."""
    said = jax.vmap(ValueFunction(process, network).q_values)(targets.belief, targets.spent_bits)

    def error(said: Array, asked: Array) -> Array:
        # Sensors that are not allowed cost infinitely much.
        return (jnp.where(jnp.isfinite(asked), said - asked, 0.0) / process.objective.error_penalty).astype(jnp.float32)

    return Errors(error(said, targets.costs), error(said.min(1), targets.costs.min(1)))


def fitted(process: Process, fit: Fit, batches: Targets, rate: Scalar) -> Fit:
    """One step of Adam on the squared errors of each batch.

    The least cost is what the value is made of: where sensors are about as good as each other, errors of each that
    average out would make it too low. The others steady it where few draws make a sensor the best.
    """

    def loss(network: Network, batch: Targets) -> Scalar:
        error = errors(process, network, batch)
        return jnp.mean(error.least**2) + Q_WEIGHT * jnp.mean(error.q_values**2)

    def descend(fit: Fit, batch: Targets) -> tuple[Fit, None]:
        direction, optimiser = optax.adam(1.0).update(jax.grad(loss)(fit.network, batch), fit.optimiser)
        network = eqx.apply_updates(fit.network, jax.tree.map(lambda x: rate * x, direction))
        return Fit(network, optimiser), None

    return jax.lax.scan(descend, fit, batches)[0]


def averaged(old: Network, new: Network, memory: float) -> Network:
    """A running average of networks, the past with weight `memory`."""
    return jax.tree.map(lambda old, new: memory * old + (1 - memory) * new, old, new)
