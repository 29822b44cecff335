"""From recordings to a finite model: a codebook per sensor, smoothed counts, and a power that keeps beliefs honest.

Successive readings of one person resemble each other, so Bayes with plain counts is sure too soon. The likelihoods are
flattened towards the law m(z) of all pairs together,

    q_rho(z | s, u)  proportional to  m(z) (q(z | s, u) / m(z))^rho,

with the power rho (and a clip of the logarithm of the ratio) whose beliefs had the lowest loss on people who were left
out of the fit, one after the other.
"""

from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from reticent.data.load import Source, load
from reticent.data.readings import ReadingKind, Readings, readings, recorded_prior
from reticent.errors import InputError
from reticent.problem.codebook import Codebook
from reticent.problem.model import ReleaseModel
from reticent.problem.prior import check_prior

CODES = 30
# Share of the law of all pairs together in each pair's law: no code is impossible because few people gave it.
SMOOTHING = 0.05
POWERS, CLIPS = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1), (None, 1.0, 0.5)
# Random releases of each left-out person that judge the powers.
JUDGED_EPISODES, JUDGED_READINGS = 2000, 10
CALIBRATION_BINS = 10


@dataclass(frozen=True)
class Flattening:
    """The power and the clip that were chosen, the held-out loss (nats per belief) and calibration error with them,
    and both without."""

    power: float
    clip: float | None
    loss: float
    calibration_error: float
    plain_loss: float
    plain_calibration_error: float


def fitted_readings(model: ReleaseModel, folder: Path, map: str | Path | None) -> Readings:
    """The recordings that the model was fitted to a part of, read again as they were then."""
    match model.fitted:
        case {"recordings": {"name": str(name), **chosen}, "reading": {**reading}}:
            source = Source(name, folder, map=None if map is None else Path(map), **chosen)  # type: ignore[arg-type]
            return readings(load(source), ReadingKind(**reading))  # type: ignore[arg-type]
    raise InputError("A folder of recordings needs a model that `reticent fit` has made from them.")


def fit_model(
    recorded: Readings, codes: int = CODES, seed: int = 0, prior: Float[np.ndarray, "S U"] | None = None
) -> ReleaseModel:
    """The finite model of these people. At least two are needed: the power is chosen by leaving each out once.

    A sensor has `codes` codes, or as many as it has different readings if these are fewer. The prior is the recorded
    one unless another is given.
    """
    people = np.unique(recorded.person)
    if len(people) < 2:
        raise InputError("A model needs recordings of at least two people: each is left out once to judge the rest.")
    for what, labels in (("secret", recorded.secret), ("useful value", recorded.useful)):
        if len(np.unique(labels)) < 2:
            raise InputError(f"Only one {what} was recorded of these people: there is nothing to tell apart.")
    prior = recorded_prior(recorded) if prior is None else prior
    check_prior(prior, recorded)
    codebook = make_codebook(recorded, codes, seed)
    flattening = _choose(recorded, codebook, prior, seed)
    counts = counted(recorded, codebook.codes(recorded.values), codebook.sizes)
    channel = flattened(counts, flattening.power, flattening.clip)
    symbols = tuple(f"code {z}" for z in range(max(codebook.sizes)))
    names = recorded.secrets, recorded.useful_values, recorded.sensors, symbols
    fitted = {
        "codebook": codebook.to_json(),
        "flattening": asdict(flattening),
        "reading": asdict(recorded.kind),
        "features": list(recorded.features),
        "interval": recorded.interval,
        "people": [recorded.people[i] for i in people],
        **({} if recorded.changes is None else recorded.changes.stored()),
    }
    return ReleaseModel(prior, channel, *names, fitted=fitted)


def make_codebook(recorded: Readings, codes: int, seed: int) -> Codebook:
    """Centres per sensor: its different readings if there are no more than `codes`, else by k-means."""
    values = recorded.values.astype(np.float64)
    mean, deviation = values.mean(0), np.maximum(values.std(0), 1e-9)
    scaled = (values - mean) / deviation
    return Codebook(mean, deviation, tuple(_centres(scaled[:, a], codes, seed) for a in range(scaled.shape[1])))


def _centres(scaled: Float[np.ndarray, "N D"], codes: int, seed: int) -> Float[np.ndarray, "Z D"]:
    from sklearn.cluster import KMeans

    distinct = np.unique(scaled, axis=0)
    if len(distinct) <= codes:
        return distinct
    return KMeans(codes, n_init=2, random_state=seed).fit(scaled).cluster_centers_  # type: ignore[arg-type]


def counted(recorded: Readings, codes: Int[np.ndarray, "N A"], sizes: tuple[int, ...]) -> Float[np.ndarray, "A S U Z"]:
    """q(z | a, s, u): every person with the pair counts alike, however long the recording; smoothed.

    `sizes` says how many codes each sensor has; symbols beyond have probability zero.
    """
    sensors, symbols = codes.shape[1], max(sizes)
    channel = np.zeros((sensors, len(recorded.secrets), len(recorded.useful_values), symbols))
    seen = np.zeros(channel.shape[1:3], int)
    for person, secret, useful in set(zip(recorded.person, recorded.secret, recorded.useful, strict=True)):
        own = (recorded.person == person) & (recorded.secret == secret) & (recorded.useful == useful)
        for sensor in range(sensors):
            channel[sensor, secret, useful] += np.bincount(codes[own, sensor], minlength=symbols) / own.sum()
        seen[secret, useful] += 1
    channel = channel / np.maximum(seen, 1)[None, :, :, None]
    together = channel.sum((1, 2), keepdims=True) / (seen > 0).sum()
    # A pair that nobody was recorded with has prior zero; its law does not matter, but must be one.
    channel = np.where((seen > 0)[None, :, :, None], channel, together)
    # Codes that none of these people gave are still not impossible.
    own_codes = np.arange(symbols) < np.array(sizes)[:, None]
    even = (own_codes / np.array(sizes)[:, None])[:, None, None]
    together = (1 - SMOOTHING) * together + SMOOTHING * even
    return (1 - SMOOTHING) * channel + SMOOTHING * together


def flattened(channel: Float[np.ndarray, "A S U Z"], power: float, clip: float | None) -> Float[np.ndarray, "A S U Z"]:
    """The laws drawn towards what they have in common."""
    together = channel.mean((1, 2), keepdims=True)
    # A symbol that a sensor does not have stays at zero.
    ratio = power * np.log(np.divide(channel, together, out=np.ones_like(channel), where=together > 0))
    law = together * np.exp(ratio if clip is None else np.clip(ratio, -clip, clip))
    return law / law.sum(-1, keepdims=True)


def _choose(recorded: Readings, codebook: Codebook, prior: Float[np.ndarray, "S U"], seed: int) -> Flattening:
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
            *(_judge(prior, flattened(channel, *option), *judged) for option in options), strict=True
        )
        for found, column in ((loss, losses), (confidence, confidences), (right, rights)):
            column.append(found)
    # All left-out people together: one person's secret is often the same all along, so that one cannot be calibrated.
    loss = np.mean(losses, 0)
    error = [calibration_error(*pair) for pair in zip(*(_pooled(x) for x in (confidences, rights)), strict=True)]
    best, plain = int(loss.argmin()), options.index((1.0, None))
    numbers = [float(x) for x in (loss[best], error[best], loss[plain], error[plain])]
    return Flattening(*options[best], *numbers)


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


def calibration_error(confidence: Any, right: Any) -> float:
    """Mean distance between confidence and how often it is right, over bins of confidence, weighted by their size."""
    confidence, right = np.ravel(confidence), np.ravel(right)
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    count = np.bincount(bins, minlength=CALIBRATION_BINS)
    apart = np.bincount(bins, right - confidence, minlength=CALIBRATION_BINS)
    return float(np.abs(apart).sum() / count.sum())
