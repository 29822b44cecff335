"""Exact belief over the hidden pair (secret, useful), one symbol at a time."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from reticent.types import Array, Belief, Channel, Index, Law, Mechanism


def predict(belief: Belief, mechanism: Mechanism) -> Law:
    """Law of the next symbol, p(z | beta, a) = sum_su q(z | a, s, u) beta(s, u)."""
    return jnp.einsum("su,suz->z", belief, mechanism)


def correct(belief: Belief, mechanism: Mechanism, symbol: Index) -> Belief:
    """Belief weighted by the likelihood of the symbol, q(z | a, s, u) beta(s, u): not yet normalised."""
    return belief * mechanism[:, :, symbol]


def normalise(joint: Belief) -> Belief:
    """A belief from a weighted one that is known to have mass."""
    return joint / jnp.sum(joint)


def update(belief: Belief, channel: Channel, action: Index, symbol: Index) -> Belief:
    """Posterior after symbol z came from sensor a (paper, eq. BeliefUpdate).

        beta'(s, u) = q(z | a, s, u) beta(s, u) / p(z | beta, a)

    A symbol that the model calls impossible is an error that names sensor and symbol, never renormalised away.
    """
    sensors, _, _, symbols = channel.shape
    sentences = [
        f"Sensor {a} gave symbol {z}, which has probability zero under the model and the belief so far: "
        "the model does not fit this sensor."
        for a in range(sensors)
        for z in range(symbols)
    ]
    joint = correct(belief, channel[action], symbol)
    joint = eqx.branched_error_if(joint, jnp.sum(joint) <= 0, action * symbols + symbol, sentences)
    return normalise(joint)


def posteriors(belief: Belief, mechanism: Mechanism) -> tuple[Law, Float[Array, "Z S U"]]:
    """Law of the next symbol and the belief after each; a symbol of probability zero leaves the belief as it was."""
    joint = jnp.moveaxis(belief[:, :, None] * mechanism, -1, 0)
    law = joint.sum((1, 2))
    possible = law > 0
    scale = jnp.where(possible, law, 1.0)[:, None, None]
    return law, jnp.where(possible[:, None, None], joint / scale, belief[None])


def secret_joint(belief: Belief, channel: Float[Array, "*A S U Z"]) -> Float[Array, "S *A Z"]:
    """P(s, z) = sum_u beta(s, u) q(z | s, u), for one mechanism or for a whole channel.

    One small product per secret: batched over beliefs, each becomes a plain matrix product, about ten times
    faster on CPUs than the equivalent single einsum.
    """
    return jnp.stack([jnp.tensordot(belief[s], channel[..., s, :, :], (0, -2)) for s in range(belief.shape[0])])


def useful_joint(belief: Belief, channel: Float[Array, "*A S U Z"]) -> Float[Array, "U *A Z"]:
    """P(u, z) = sum_s beta(s, u) q(z | s, u), for one mechanism or for a whole channel."""
    return jnp.stack([jnp.tensordot(belief[:, u], channel[..., :, u, :], (0, -2)) for u in range(belief.shape[1])])


def secret_marginal(belief: Belief) -> Float[Array, " S"]:
    """beta(s) = sum_u beta(s, u)."""
    return belief.sum(1)


def useful_marginal(belief: Belief) -> Float[Array, " U"]:
    """beta(u) = sum_s beta(s, u)."""
    return belief.sum(0)
