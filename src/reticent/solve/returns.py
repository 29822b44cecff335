"""Advantages along one trajectory. Unbatched; callers vmap."""

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from reticent.types import Array


def lambda_advantages(
    costs: Float[Array, " T"],
    values: Float[Array, " T"],
    next_values: Float[Array, " T"],
    terminated: Bool[Array, " T"],
    truncated: Bool[Array, " T"],
    discount: float,
    trace: float,
) -> Float[Array, " T"]:
    """Exponentially weighted sum of TD errors (generalised advantage estimation).

        delta_t = c_t + discount v'_t (1 - terminated_t) - v_t
        A_t     = delta_t + discount trace (1 - done_t) A_{t+1}

    v'_t is the value of the state reached by step t, before any restart: a truncated episode is bootstrapped,
    a terminated one is not. trace 0 gives the TD error of the paper.
    """
    deltas = costs + discount * jnp.where(terminated, 0.0, next_values) - values
    carries = jnp.where(terminated | truncated, 0.0, discount * trace)

    def backward(advantage: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        delta_t, carry_t = step
        advantage = delta_t + carry_t * advantage
        return advantage, advantage

    return jax.lax.scan(backward, jnp.zeros_like(deltas[0]), (deltas, carries), reverse=True)[1]
