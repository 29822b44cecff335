"""LSTM over sequences of releases, with a softmax over the hidden pairs (s, u)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.audit.sequences import Sequences
from reticent.types import Array, PRNGKey, Scalar

WIDTH = 48


class Network(eqx.Module):
    """One LSTM layer. The gates add an embedding of the sensor, one of the symbol, and a linear map of the numbers."""

    sensor: Float[Array, "A G"]
    symbol: Float[Array, "Z G"]
    numbers: Float[Array, "K G"]
    recurrent: Float[Array, "W G"]
    head: Float[Array, "W P"]
    bias: Float[Array, " P"]

    def __init__(self, sensors: int, symbols: int, numbers: int, pairs: int, key: PRNGKey) -> None:
        keys = jax.random.split(key, 4)

        def drawn(key: PRNGKey, rows: int) -> Array:
            return 0.3 * jax.random.normal(key, (rows, 4 * WIDTH), jnp.float32)

        self.sensor, self.symbol, self.numbers = (
            drawn(k, n) for k, n in zip(keys[:3], (sensors, symbols, numbers), strict=True)
        )
        self.recurrent = jax.random.normal(keys[3], (WIDTH, 4 * WIDTH), jnp.float32) / np.float32(WIDTH**0.5)
        self.head, self.bias = jnp.zeros((WIDTH, pairs), jnp.float32), jnp.zeros(pairs, jnp.float32)

    def log_beliefs(self, seen: Sequences, possible: Bool[Array, " P"]) -> Float[Array, "N T P"]:
        """Log posterior after each step; pairs that are not `possible` have probability zero."""
        logits = self.logits(seen.sensor, seen.symbol, seen.numbers)
        return jax.nn.log_softmax(jnp.where(possible[None, None], logits, -1e9))

    def logits(
        self, sensor: Int[Any, "N T"], symbol: Int[Any, "N T"], numbers: Float[Any, "N T K"]
    ) -> Float[Array, "N T P"]:
        """A linear map of the state after each step."""
        gates = self.sensor[sensor] + self.symbol[symbol] + numbers @ self.numbers

        def step(carry, gates):
            hidden, cell = carry
            input_gate, forget_gate, output_gate, candidate = jnp.split(gates + hidden @ self.recurrent, 4, -1)
            # A forget bias of one keeps the cell state early in training.
            cell = jax.nn.sigmoid(forget_gate + 1) * cell + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
            hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
            return (hidden, cell), hidden

        start = jnp.zeros((len(sensor), WIDTH), jnp.float32)
        _, hidden = jax.lax.scan(step, (start, start), jnp.swapaxes(gates, 0, 1))
        return jnp.swapaxes(hidden, 0, 1) @ self.head + self.bias[None, None]


def cross_entropy(
    network: Network, possible: Bool[Array, " P"], seen: Sequences, weight: Float[Array, " N"] | float
) -> Scalar:
    """Cross-entropy with the hidden pair: mean over the steps of each episode, weighted sum over episodes."""
    log_beliefs = network.log_beliefs(seen, possible)
    true = jnp.take_along_axis(log_beliefs, seen.pair[:, None, None], axis=2)[:, :, 0]
    counts = jnp.arange(true.shape[1])[None] < seen.length[:, None]
    each = -jnp.sum(jnp.where(counts, true, 0.0), axis=1) / jnp.maximum(seen.length, 1)
    return jnp.sum(weight * each)


@jax.jit
def final_posterior(network: Network, possible: Array, seen: Sequences) -> Float[Array, "N P"]:
    """Posterior after the last step of each episode."""
    log_beliefs = network.log_beliefs(seen, possible)
    last = jnp.maximum(seen.length - 1, 0)[:, None, None]
    return jnp.exp(jnp.take_along_axis(log_beliefs, last, axis=1)[:, 0])
