"""The observation model: a learned normal law of the reading for each sensor and hidden pair (paper, eq. f_psi)."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.types import Array, Index, PRNGKey, Scalar

WIDTH, LAYERS = 256, 3
# Bounds of the logarithm of a standardised reading's deviation, so that no likelihood runs away.
NARROWEST, WIDEST = -6.0, 4.0


class ReadingLaw(eqx.Module):
    """Mean and deviation of each feature of a reading, per sensor and hidden pair."""

    mean: Float[Array, "A S U D"]
    deviation: Float[Array, "A S U D"]

    def draw(self, key: PRNGKey, antithetic_pairs: int) -> Float[Array, "A S U K D"]:
        """Readings of every sensor and pair, in antithetic pairs about the mean, whose errors cancel in part."""
        shape = (*self.mean.shape[:3], antithetic_pairs, self.mean.shape[3])
        noise = jax.random.normal(key, shape, self.mean.dtype)
        return self.mean[..., None, :] + self.deviation[..., None, :] * jnp.concatenate([noise, -noise], axis=3)

    def surprise(self, sensor: Index, secret: Index, useful: Index, reading: Float[Array, " D"]) -> Scalar:
        """-log N(reading | mean, deviation), without the constant."""
        mean, deviation = self.mean[sensor, secret, useful], self.deviation[sensor, secret, useful]
        return jnp.sum(0.5 * ((reading - mean) / deviation) ** 2 + jnp.log(deviation))


class ObservationModel(eqx.Module):
    """(a, s, u) to mean and deviation: three hidden layers of 256."""

    layers: tuple[eqx.nn.Linear, ...]
    sizes: tuple[int, int, int] = eqx.field(static=True)

    def __init__(self, sensors: int, secrets: int, useful: int, features: int, key: PRNGKey) -> None:
        self.sizes = (sensors, secrets, useful)
        widths = [sum(self.sizes), *[WIDTH] * LAYERS, 2 * features]
        keys = jax.random.split(key, len(widths) - 1)
        self.layers = tuple(
            eqx.nn.Linear(*pair, dtype=jnp.float32, key=k) for pair, k in zip(pairwise(widths), keys, strict=True)
        )

    def __call__(self, sensor: Index, secret: Index, useful: Index) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
        """Mean and log deviation of a standardised reading."""
        one_hot = [
            jax.nn.one_hot(i, n, dtype=jnp.float32) for i, n in zip((sensor, secret, useful), self.sizes, strict=True)
        ]
        x = jnp.concatenate(one_hot)
        *hidden, last = self.layers
        for layer in hidden:
            x = jax.nn.leaky_relu(layer(x))
        mean, log_deviation = jnp.split(last(x), 2)
        return mean, jnp.clip(log_deviation, NARROWEST, WIDEST)

    def law(self) -> ReadingLaw:
        """The laws of all sensors and pairs, computed once."""
        over = lambda axis: tuple(0 if i == axis else None for i in range(3))  # noqa: E731
        every = jax.vmap(jax.vmap(jax.vmap(self.__call__, over(2)), over(1)), over(0))
        mean, log_deviation = every(*(jnp.arange(n) for n in self.sizes))
        return ReadingLaw(mean, jnp.exp(log_deviation))
