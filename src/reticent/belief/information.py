"""Entropies and the information of one release, in bits."""

import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.bayes import secret_joint, secret_marginal, useful_joint, useful_marginal
from reticent.types import Array, Belief, Scalar

NATS_PER_BIT = 0.6931471805599453


def surprise_bits(probability: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """-p log2 p, zero at zero: the share of each outcome in the entropy."""
    # A floor under the logarithm's argument is more than twice as fast as selecting around zero (xlogy).
    tiny = jnp.finfo(probability.dtype).tiny
    return -probability * jnp.log(jnp.maximum(probability, tiny)) / NATS_PER_BIT


def entropy_bits(probabilities: Float[Array, "..."]) -> Scalar:
    """H(p) = - sum p log2 p over all entries."""
    return jnp.sum(surprise_bits(probabilities))


def secret_information_bits(belief: Belief, channel: Float[Array, "*A S U Z"]) -> Float[Array, "*A"]:
    """I_a(beta) = I(S; Z | A=a, beta): what one release says about the secret (paper, theorem 3, sign mended)."""
    return information_bits(secret_marginal(belief), secret_joint(belief, channel))


def useful_information_bits(belief: Belief, channel: Float[Array, "*A S U Z"]) -> Float[Array, "*A"]:
    """I(U; Z | A=a, beta): what one release says about the useful value."""
    return information_bits(useful_marginal(belief), useful_joint(belief, channel))


def information_bits(marginal: Float[Array, " X"], joint: Float[Array, "X *A Z"]) -> Float[Array, "*A"]:
    """I(X; Z) = H(X) + H(Z) - H(X, Z), never below zero by rounding."""
    symbol_bits = surprise_bits(joint.sum(0)).sum(-1)
    joint_bits = surprise_bits(joint).sum((0, -1))
    return jnp.maximum(entropy_bits(marginal) + symbol_bits - joint_bits, 0.0)
