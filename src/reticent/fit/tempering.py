"""Likelihood tempering: how far to trust counts whose successive readings are not independent.

Successive readings of one person resemble each other, so Bayes with plain counts is sure too soon. The likelihoods are
tempered towards the law m(z) of all pairs together,

    q_rho(z | s, u)  proportional to  m(z) (q(z | s, u) / m(z))^rho,

with the power rho (and a clip of the logarithm of the ratio) whose beliefs had the lowest loss on people who were left
out of the fit, one after the other. What tells the useful value and what tells the secret beside it resemble their past
for different times, and may have a power each:

    q(z | s, u)  proportional to  m(z) (q(z | u) / m(z))^rho (q(z | s, u) / q(z | u))^rho_S.
"""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.data.readings import Readings
from reticent.data.trajectories import Trajectories
from reticent.fit.calibration import calibration_error
from reticent.fit.codes import counted
from reticent.fit.transition import fit_transition

POWERS, CLIPS = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1), (None, 1.0, 0.5)
# Of a pair that moves: readings of hours resemble each other more than ten in a row do.
PART_POWERS = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
# Random releases of each left-out person that judge the powers.
JUDGED_EPISODES, JUDGED_READINGS = 2000, 10
# Of trajectories, which last longer: so many parts of so many steps.
JUDGED_STRETCHES, JUDGED_STEPS = 100, 240


@dataclass(frozen=True)
class Tempering:
    """The power and the clip that were chosen, the held-out loss (nats per belief) and calibration error with them,
    and both without. `secret_power` is that of the secret beside the useful value; None: one power for both."""

    power: float
    clip: float | None
    loss: float
    calibration_error: float
    plain_loss: float
    plain_calibration_error: float
    secret_power: float | None = None

    def applied(
        self, channel: Float[np.ndarray, "A S U Z"], prior: Float[np.ndarray, "S U"], sharpen: float = 1.0
    ) -> Float[np.ndarray, "A S U Z"]:
        """The channel, tempered so; or with every reading counting `sharpen` times as much."""
        clip = None if self.clip is None else sharpen * self.clip
        own = None if self.secret_power is None else sharpen * self.secret_power
        return Option(sharpen * self.power, clip, own).applied(channel, prior)


class Option(NamedTuple):
    """A way of tempering that is tried."""

    power: float
    clip: float | None
    secret_power: float | None = None

    def applied(
        self, channel: Float[np.ndarray, "A S U Z"], prior: Float[np.ndarray, "S U"]
    ) -> Float[np.ndarray, "A S U Z"]:
        """The channel, tempered so."""
        if self.secret_power is None:
            return tempered(channel, self.power, self.clip)
        return tempered_in_parts(channel, prior, self.power, self.secret_power)


PARTS = [Option(power, None, own) for power, own in product(POWERS, POWERS) if own < power]
STATIC = [*(Option(*each) for each in product(POWERS, CLIPS)), *PARTS]
MOVING = [Option(power, None, own) for power, own in product(PART_POWERS, PART_POWERS) if own <= power]


def tempered(channel: Float[np.ndarray, "A S U Z"], power: float, clip: float | None) -> Float[np.ndarray, "A S U Z"]:
    """The laws drawn towards what they have in common."""
    together = channel.mean((1, 2), keepdims=True)
    # A symbol that a sensor does not have stays at zero.
    ratio = power * np.log(np.divide(channel, together, out=np.ones_like(channel), where=together > 0))
    law = together * np.exp(ratio if clip is None else np.clip(ratio, -clip, clip))
    return law / law.sum(-1, keepdims=True)


def tempered_in_parts(
    channel: Float[np.ndarray, "A S U Z"], prior: Float[np.ndarray, "S U"], power: float, secret_power: float
) -> Float[np.ndarray, "A S U Z"]:
    """The laws of each useful value drawn towards what all have in common, and those of its secrets towards it."""
    together = channel.mean((1, 2), keepdims=True)
    # Of a useful value that cannot be, all secrets alike.
    given = np.where(prior.sum(0) > 0, prior, 1.0)
    by_useful = np.einsum("su,asuz->auz", given / given.sum(0), channel)[:, None]
    told, beside = (
        np.log(np.divide(over, under, out=np.ones(np.broadcast(over, under).shape), where=under > 0))
        for over, under in ((by_useful, together), (channel, by_useful))
    )
    law = together * np.exp(power * told + secret_power * beside)
    return law / law.sum(-1, keepdims=True)


def chosen_tempering(
    recorded: Readings,
    codes: Int[np.ndarray, "N A"],
    owned: Bool[np.ndarray, "A Z"],
    prior: Float[np.ndarray, "S U"],
    seed: int,
    lives: Trajectories | None = None,
) -> Tempering:
    """The option of the lowest mean loss over left-out people. The codebook, which gave the codes, knows no labels: it
    is of all.

    Where the pair moves, `lives` says how, and beliefs are judged over hours of steps in place of a few readings.
    """
    options, rng = STATIC if lives is None else MOVING, np.random.default_rng(seed)
    losses, confidences, rights = [], [], []
    # Somebody whose stretches are all too short for a trajectory judges nothing.
    for person in np.unique((recorded if lives is None else lives).person).tolist():
        own = recorded.person == person
        others = recorded.of(np.unique(recorded.person[~own]).tolist())
        channel = counted(others, codes[~own], owned)
        if lives is None:
            transition, judged = None, _random_releases(recorded.of([person]), codes[own], prior, rng)
        else:
            transition = fit_transition(lives.of(np.unique(others.person).tolist()), prior)
            judged = _random_stretches(lives.of([person]), rng)
        found = [_judge(prior, option.applied(channel, prior), transition, judged) for option in options]
        for each, column in zip(zip(*found, strict=True), (losses, confidences, rights), strict=True):
            column.append(each)
    # All left-out people together: one person's secret is often the same all along, so that one cannot be calibrated.
    error = [calibration_error(*pair) for pair in zip(*(_pooled(x) for x in (confidences, rights)), strict=True)]
    return _best(options, np.mean(losses, 0), error)


def _best(options: list[Option], loss: Float[np.ndarray, " O"], error: list[float]) -> Tempering:
    """The option of the lowest loss, beside the first one, which trusts the counts as they are."""
    best = int(loss.argmin())
    return Tempering(
        power=options[best].power,
        clip=options[best].clip,
        loss=float(loss[best]),
        calibration_error=error[best],
        plain_loss=float(loss[0]),
        plain_calibration_error=error[0],
        secret_power=options[best].secret_power,
    )


class Released(NamedTuple):
    """Which sensors spoke and their codes, and the hidden pair then: one column where it stays."""

    sensor: Int[np.ndarray, "N T"]
    code: Int[np.ndarray, "N T"]
    pair: Int[np.ndarray, "N T1"]


def _random_releases(
    recorded: Readings, codes: Int[np.ndarray, "N A"], prior: Float[np.ndarray, "S U"], rng: np.random.Generator
) -> Released:
    """Random sensors over random stretches of one person in which nothing changes."""
    left = recorded.left
    pair = recorded.secret * len(recorded.useful_values) + recorded.useful
    length = int(min(JUDGED_READINGS, left.max()))
    able = np.flatnonzero(left >= length)
    # Each pair that the person was recorded with counts as the prior has it.
    weight = prior.reshape(-1)[pair[able]] / np.bincount(pair[able])[pair[able]]
    start = rng.choice(able, JUDGED_EPISODES, p=weight / weight.sum())
    sensors = rng.integers(codes.shape[1], size=(JUDGED_EPISODES, length))
    return Released(sensors, codes[start[:, None] + np.arange(length), sensors], pair[start, None])


def _random_stretches(lives: Trajectories, rng: np.random.Generator) -> Released:
    """Random sensors over random parts of one person's trajectories."""
    length = int(min(JUDGED_STEPS, lives.lengths.max()))
    ends = np.cumsum(lives.lengths)
    left = np.repeat(ends, lives.lengths) - np.arange(len(lives))
    rows = rng.choice(np.flatnonzero(left >= length), JUDGED_STRETCHES)[:, None] + np.arange(length)
    sensors = rng.integers(lives.codes.shape[1], size=rows.shape)
    return Released(sensors, lives.codes[rows, sensors], lives.pair[rows])


def _pooled(by_person: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """Of each option, what all people gave."""
    return [np.concatenate([np.ravel(each) for each in option]) for option in zip(*by_person, strict=True)]


def _judge(
    prior: Float[np.ndarray, "S U"],
    channel: Float[np.ndarray, "A S U Z"],
    transition: Float[np.ndarray, "S U S U"] | None,
    released: Released,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean loss of the beliefs after each reading, the confidence in the secret there, and whether it was right."""
    likely = channel[released.sensor, :, :, released.code].reshape(*released.sensor.shape, -1)
    beliefs = np.empty_like(likely)
    belief = np.broadcast_to(prior.reshape(-1), likely[:, 0].shape)
    for step in range(likely.shape[1]):
        moved = belief if transition is None or step == 0 else belief @ transition.reshape(prior.size, -1)
        belief = moved * likely[:, step]
        belief = belief / belief.sum(-1, keepdims=True)
        beliefs[:, step] = belief
    pair = np.broadcast_to(released.pair, released.sensor.shape)
    right = np.take_along_axis(beliefs, pair[..., None], -1)
    by_secret = beliefs.reshape(*pair.shape, *prior.shape).sum(-1)
    named = by_secret.argmax(-1) == pair // prior.shape[1]
    return float(-np.log(np.maximum(right, 1e-12)).mean()), by_secret.max(-1), named
