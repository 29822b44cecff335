"""Codes: a codebook per sensor by k-means, and how often each code was given by each pair of labels."""

import numpy as np
from jaxtyping import Float, Int

from reticent.data.readings import Readings
from reticent.problem.codebook import Codebook

# Share of the law of all pairs together in each pair's law: no code is impossible because few people gave it.
SMOOTHING = 0.05


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
