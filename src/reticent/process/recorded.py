"""Recorded codes in place of a model's readings: what a sensor says at a step is what it said at that moment."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from reticent.data.episodes import Episodes
from reticent.types import Array, Index, Kernels, PRNGKey


class Recorded(eqx.Module):
    """The code of each sensor's reading at each moment, and where episodes start."""

    codes: Int[Array, "N A"]
    episodes: Episodes

    def symbol(self, key: PRNGKey, row: Index, sensor: Index, kernels: Kernels | None) -> Index:
        """The code of this moment, or what the kernels in force send in its place."""
        code = self.codes[row, sensor]
        if kernels is None:
            return code
        option = draw(key, kernels[sensor, :, code])
        return jnp.where(option == 0, code, kernels.shape[-1] + option - 1)


def draw(key: PRNGKey, law: Float[Array, " X"]) -> Index:
    """One draw by inverse distribution function; never an outcome of probability zero."""
    cumulative = jnp.cumsum(law)
    return jnp.sum(cumulative <= jax.random.uniform(key) * cumulative[-1])
