"""Exact leakage of one release, and of a whole policy where exact Bayes is known.

Of a channel P(z | s) with prior p(s), in bits (Alvim et al., "The Science of Quantitative Information Flow"):

    Shannon      I(S; Z)
    min-entropy  log2 of  sum_z max_s p(s) P(z | s)  over  max_s p(s): how much likelier the best guess becomes
    maximal      log2 of  sum_z max_s P(z | s): the largest min-entropy leakage over all priors, and over all
                 functions of the secret that somebody might guess (Issa, Wagner and Kamath)
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from reticent.audit.measures import Resampler
from reticent.evaluate.estimate import Estimate
from reticent.problem.model import Model


@dataclass(frozen=True)
class ChannelLeakage:
    """What one raw reading of a sensor says about the secret, before anything else was said. Exact."""

    sensor: str
    shannon_bits: float
    min_entropy_bits: float
    maximal_bits: float


def channel_leakage(model: Model) -> list[ChannelLeakage]:
    """One reading of each sensor."""
    prior = model.prior.sum(1)
    possible = prior > 0
    found = []
    for name, channel in zip(model.sensors, model.channel, strict=True):
        joint = np.einsum("su,suz->sz", model.prior, channel)[possible]
        law, given = joint.sum(0), joint / prior[possible, None]
        held = joint > 0
        ratio = joint[held] / (prior[possible, None] * law[None])[held]
        found.append(
            ChannelLeakage(
                name,
                float((joint[held] * np.log2(ratio)).sum()),
                float(np.log2(joint.max(0).sum() / prior.max())),
                float(np.log2(given.max(0).sum())),
            )
        )
    return found


@dataclass(frozen=True)
class PolicyLeakage:
    """What whole episodes say about the secret to exact Bayes with the true model: estimates, in bits.

    `vulnerability` is the chance that the best guess is right. It and Shannon's are unbiased; the others are logarithms
    of unbiased means.
    """

    shannon_bits: Estimate
    vulnerability: Estimate
    min_entropy_bits: Estimate
    maximal_bits: Estimate


def policy_leakage(
    belief: Float[np.ndarray, "N S"], prior: Float[np.ndarray, " S"], resampler: Resampler
) -> PolicyLeakage:
    """From the beliefs of exact Bayes at the ends of episodes.

    Each is a mean over traces w: I = H(S) - E[H(beta_w)], V = E[max_s beta_w(s)], and sum_w max_s P(w | s) is
    E[max_s beta_w(s) / p(s)].
    """
    held = prior > 0
    logs = np.log2(np.maximum(belief, 1e-300))
    prior_bits = float(-(prior[held] * np.log2(prior[held])).sum())
    vulnerability = resampler.ratio(belief.max(1))
    largest_ratio = resampler.ratio((belief[:, held] / prior[held]).max(1))
    return PolicyLeakage(
        shannon_bits=resampler.ratio(prior_bits + (belief * logs).sum(1)),
        vulnerability=vulnerability,
        min_entropy_bits=_log2(vulnerability, float(prior.max())),
        maximal_bits=_log2(largest_ratio, 1.0),
    )


def _log2(estimate: Estimate, unit: float) -> Estimate:
    value, low, high = (float(np.log2(x / unit)) for x in (estimate.value, estimate.low, estimate.high))
    return Estimate(value, low, high, estimate.interval)
