"""Entropies and the information of one release, in bits."""

from typing import Any

from jaxtyping import Float

from reticent.belief.bayes import secret_joint, secret_marginal, useful_joint, useful_marginal
from reticent.types import Belief

NATS_PER_BIT = 0.6931471805599453


def entropy_terms(probability: Float[Any, "*any"]) -> Float[Any, "*any"]:
    """-p log2 p, zero at zero: the share of each outcome in the entropy."""
    xp = probability.__array_namespace__()
    # Clipping the logarithm's argument from below is more than twice as fast as selecting around zero (xlogy).
    return probability * xp.log(xp.maximum(probability, xp.finfo(probability.dtype).tiny)) / -NATS_PER_BIT


def entropy_bits(probabilities: Float[Any, "*batch X"]) -> Float[Any, "*batch"]:
    """H(p) = - sum p log2 p."""
    return entropy_terms(probabilities).sum(-1)


def secret_information_bits(belief: Belief, channel: Float[Any, "*A S U Z"]) -> Float[Any, "*A"]:
    """I_a(beta) = I(S; Z | A=a, beta): what one release says about the secret (paper, theorem 3, sign corrected)."""
    return information_bits(secret_marginal(belief), secret_joint(belief, channel))


def useful_information_bits(belief: Belief, channel: Float[Any, "*A S U Z"]) -> Float[Any, "*A"]:
    """I(U; Z | A=a, beta): what one release says about the useful value."""
    return information_bits(useful_marginal(belief), useful_joint(belief, channel))


def information_bits(marginal: Float[Any, "*N X"], joint: Float[Any, "X *N_A Z"]) -> Float[Any, "*N_A"]:
    """I(X; Z) = H(X) + H(Z) - H(X, Z), never below zero by rounding."""
    joint_bits, own_bits = entropy_terms(joint).sum((0, -1)), entropy_bits(marginal)
    own_bits = own_bits.reshape((*own_bits.shape, *(1,) * (joint_bits.ndim - own_bits.ndim)))
    bits = own_bits + entropy_bits(joint.sum(0)) - joint_bits
    return bits.__array_namespace__().maximum(bits, 0.0)
