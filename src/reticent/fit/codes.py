"""Codes: a codebook per sensor by k-means, and how often each code was given by each pair of labels."""

import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.problem.codebook import Codebook

# Share of the law of all pairs together in each pair's law: no code is impossible because few people gave it.
SMOOTHING = 0.05


def make_codebook(recorded: Readings, codes: int, seed: int) -> Codebook:
    """Centres per sensor: its different readings if there are no more than `codes`, else by k-means."""
    values = recorded.values.astype(np.float64)
    spoken = [own[~np.isnan(own).any(1)] for own in values.swapaxes(0, 1)]
    if lost := [name for name, own in zip(recorded.sensors, spoken, strict=True) if not len(own)]:
        raise InputError(f"The sensors {lost} are there in no reading of these people. Leave them out.")
    mean, deviation = np.stack([own.mean(0) for own in spoken]), np.stack([own.std(0) for own in spoken])
    deviation = np.maximum(deviation, 1e-9)
    scaled = [(own - mean[sensor]) / deviation[sensor] for sensor, own in enumerate(spoken)]
    return Codebook(mean, deviation, tuple(_centres(own, codes, seed) for own in scaled), bool(np.isnan(values).any()))


def _centres(scaled: Float[np.ndarray, "N D"], codes: int, seed: int) -> Float[np.ndarray, "Z D"]:
    from sklearn.cluster import KMeans

    distinct = np.unique(scaled, axis=0)
    if len(distinct) <= codes:
        return distinct
    return KMeans(codes, n_init=2, random_state=seed).fit(scaled).cluster_centers_  # type: ignore[arg-type]


def counted(
    recorded: Readings, codes: Int[np.ndarray, "N A"], owned: Bool[np.ndarray, "A Z"]
) -> Float[np.ndarray, "A S U Z"]:
    """q(z | a, s, u): every person with the pair counts alike, however long the recording; smoothed.

    Symbols that a sensor does not own have probability zero.
    """
    sensors, symbols = owned.shape
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
    even = (owned / owned.sum(1, keepdims=True))[:, None, None]
    together = (1 - SMOOTHING) * together + SMOOTHING * even
    return (1 - SMOOTHING) * channel + SMOOTHING * together
