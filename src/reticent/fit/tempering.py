"""Likelihood tempering: how far to trust counts whose successive readings are not independent.

Successive readings of one person resemble each other, so Bayes with plain counts is sure too soon. The likelihoods are
tempered towards the law m(z) of all pairs together,

    q_rho(z | s, u)  proportional to  m(z) (q(z | s, u) / m(z))^rho,

with the power rho (and a clip of the logarithm of the ratio) whose beliefs had the lowest loss on people who were left
out of the fit, one after the other.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from reticent.data.readings import Readings
from reticent.fit.calibration import calibration_error
from reticent.fit.codes import counted
from reticent.problem.codebook import Codebook

POWERS, CLIPS = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1), (None, 1.0, 0.5)
# Random releases of each left-out person that judge the powers.
JUDGED_EPISODES, JUDGED_READINGS = 2000, 10


@dataclass(frozen=True)
class Tempering:
    """The power and the clip that were chosen, the held-out loss (nats per belief) and calibration error with them,
    and both without."""

    power: float
    clip: float | None
    loss: float
    calibration_error: float
    plain_loss: float
    plain_calibration_error: float


def tempered(channel: Float[np.ndarray, "A S U Z"], power: float, clip: float | None) -> Float[np.ndarray, "A S U Z"]:
    """The laws drawn towards what they have in common."""
    together = channel.mean((1, 2), keepdims=True)
    # A symbol that a sensor does not have stays at zero.
    ratio = power * np.log(np.divide(channel, together, out=np.ones_like(channel), where=together > 0))
    law = together * np.exp(ratio if clip is None else np.clip(ratio, -clip, clip))
    return law / law.sum(-1, keepdims=True)


def chosen_tempering(recorded: Readings, codebook: Codebook, prior: Float[np.ndarray, "S U"], seed: int) -> Tempering:
    """The power and clip of the lowest mean loss over left-out people. The codebook knows no labels: it is of all."""
    rng = np.random.default_rng(seed)
    options = list(product(POWERS, CLIPS))
    losses, confidences, rights = [], [], []
    people = np.unique(recorded.person).tolist()
    for person in people:
        others = recorded.of([other for other in people if other != person])
        channel = counted(others, codebook.codes(others.values), codebook.sizes)
        judged = _random_releases(recorded.of([person]), codebook, prior, rng)
        loss, confidence, right = zip(
            *(_judge(prior, tempered(channel, *option), *judged) for option in options), strict=True
        )
        for found, column in ((loss, losses), (confidence, confidences), (right, rights)):
            column.append(found)
    # All left-out people together: one person's secret is often the same all along, so that one cannot be calibrated.
    loss = np.mean(losses, 0)
    error = [calibration_error(*pair) for pair in zip(*(_pooled(x) for x in (confidences, rights)), strict=True)]
    best, plain = int(loss.argmin()), options.index((1.0, None))
    numbers = [float(x) for x in (loss[best], error[best], loss[plain], error[plain])]
    return Tempering(*options[best], *numbers)


def _random_releases(recorded: Readings, codebook: Codebook, prior: Float[np.ndarray, "S U"], rng: np.random.Generator):
    """Sensors and codes [N T] of random stretches of one person, and the pairs [N]."""
    codes, left = codebook.codes(recorded.values), recorded.left
    pair = recorded.secret * len(recorded.useful_values) + recorded.useful
    length = int(min(JUDGED_READINGS, left.max()))
    able = np.flatnonzero(left >= length)
    # Each pair that the person was recorded with counts as the prior has it.
    weight = prior.reshape(-1)[pair[able]] / np.bincount(pair[able])[pair[able]]
    start = rng.choice(able, JUDGED_EPISODES, p=weight / weight.sum())
    sensors = rng.integers(codes.shape[1], size=(JUDGED_EPISODES, length))
    return sensors, codes[start[:, None] + np.arange(length), sensors], pair[start]


def _pooled(by_person: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """Of each option, what all people gave."""
    return [np.concatenate([np.ravel(each) for each in option]) for option in zip(*by_person, strict=True)]


def _judge(prior: Float[np.ndarray, "S U"], channel: Float[np.ndarray, "A S U Z"], sensors, codes, pairs):
    """Mean loss of the beliefs after each reading, the confidence in the secret there, and whether it was right."""
    secrets, useful = channel.shape[1:3]
    likely = np.cumsum(np.log(channel[sensors, :, :, codes]), axis=1).reshape(*sensors.shape, -1)
    logs = np.where(prior.reshape(-1) > 0, likely + np.log(np.maximum(prior.reshape(-1), 1e-300)), -np.inf)
    beliefs = np.exp(logs - logs.max(-1, keepdims=True))
    beliefs /= beliefs.sum(-1, keepdims=True)
    right = np.take_along_axis(beliefs, np.broadcast_to(pairs[:, None, None], (*sensors.shape, 1)), -1)
    by_secret = beliefs.reshape(*sensors.shape, secrets, useful).sum(-1)
    named = by_secret.argmax(-1) == (pairs // useful)[:, None]
    return float(-np.log(np.maximum(right, 1e-12)).mean()), by_secret.max(-1), named
