"""Codes: a codebook per sensor by k-means, and how often each code was given by each pair of labels."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.problem.codebook import Codebook

# Share of the law of all pairs together in each pair's law: no code is impossible because few people gave it.
SMOOTHING = 0.05


def make_codebook(recorded: Readings, codes: int, seed: int) -> Codebook:
    """Centres per sensor: its different readings if there are no more than `codes`, else by k-means."""
    mean, deviation, may_lack = standardisation(recorded)
    scaled = [(own - mean[sensor]) / deviation[sensor] for sensor, own in enumerate(_spoken(recorded))]
    return Codebook(mean, deviation, tuple(centres_of(own, codes, seed) for own in scaled), may_lack)


def standardisation(recorded: Readings) -> tuple[Float[np.ndarray, "A D"], Float[np.ndarray, "A D"], bool]:
    """Mean and deviation of each sensor's readings, and whether some sensor is not there at times."""
    spoken = _spoken(recorded)
    if lost := [name for name, own in zip(recorded.sensors, spoken, strict=True) if not len(own)]:
        raise InputError(f"The sensors {lost} are there in no reading of these people. Leave them out.")
    mean, deviation = np.stack([own.mean(0) for own in spoken]), np.stack([own.std(0) for own in spoken])
    return mean, np.maximum(deviation, 1e-9), bool(np.isnan(recorded.values).any())


def _spoken(recorded: Readings) -> list[Float[np.ndarray, "N D"]]:
    """The readings of each sensor, where it was there."""
    values = recorded.values.astype(np.float64)
    return [own[~np.isnan(own).any(1)] for own in values.swapaxes(0, 1)]


def centres_of(scaled: Float[np.ndarray, "N D"], codes: int, seed: int) -> Float[np.ndarray, "Z D"]:
    """The different values if there are no more than `codes`, else centres by k-means."""
    from sklearn.cluster import KMeans

    distinct = np.unique(scaled, axis=0)
    if len(distinct) <= codes:
        return distinct
    return KMeans(codes, n_init=2, random_state=seed).fit(scaled).cluster_centers_  # type: ignore[arg-type]


class Counts(NamedTuple):
    """How often each person P gave each code under each pair of labels, as laws, and who was recorded with which pair;
    laws of pairs that somebody was not recorded with are zero."""

    law: Float[np.ndarray, "P A S U Z"]
    seen: Bool[np.ndarray, "P S U"]


def counts_of(recorded: Readings, codes: Int[np.ndarray, "N A"], owned: Bool[np.ndarray, "A Z"]) -> Counts:
    """Of each person who was recorded, in the order of their numbers."""
    sensors, symbols = owned.shape
    people = np.unique(recorded.person).tolist()
    shape = (len(people), len(recorded.secrets), len(recorded.useful_values))
    law, seen = np.zeros((shape[0], sensors, *shape[1:], symbols)), np.zeros(shape, bool)
    for person, secret, useful in set(zip(recorded.person, recorded.secret, recorded.useful, strict=True)):
        own = (recorded.person == person) & (recorded.secret == secret) & (recorded.useful == useful)
        number = people.index(person)
        for sensor in range(sensors):
            law[number, sensor, secret, useful] = np.bincount(codes[own, sensor], minlength=symbols) / own.sum()
        seen[number, secret, useful] = True
    return Counts(law, seen)


def smoothed(
    counts: Counts, owned: Bool[np.ndarray, "A Z"], weight: Float[np.ndarray, " P"] | None = None
) -> Float[np.ndarray, "A S U Z"]:
    """q(z | a, s, u): every person with the pair counts alike, or by weight, however long the recording; smoothed.

    Symbols that a sensor does not own have probability zero.
    """
    weight = np.ones(len(counts.law)) if weight is None else weight
    seen = np.einsum("p,psu->su", weight, counts.seen)
    channel = np.einsum("p,pasuz->asuz", weight, counts.law) / np.where(seen > 0, seen, 1)[None, :, :, None]
    together = channel.sum((1, 2), keepdims=True) / (seen > 0).sum()
    # A pair that nobody was recorded with has prior zero; its law does not matter, but must be one.
    channel = np.where((seen > 0)[None, :, :, None], channel, together)
    # Codes that none of these people gave are still not impossible.
    even = (owned / owned.sum(1, keepdims=True))[:, None, None]
    together = (1 - SMOOTHING) * together + SMOOTHING * even
    return (1 - SMOOTHING) * channel + SMOOTHING * together


def counted(
    recorded: Readings, codes: Int[np.ndarray, "N A"], owned: Bool[np.ndarray, "A Z"]
) -> Float[np.ndarray, "A S U Z"]:
    """q(z | a, s, u) of these people together, smoothed."""
    return smoothed(counts_of(recorded, codes, owned), owned)
