"""Recordings that tests make up: independent readings of a known model, or files in the published layouts."""

from typing import Any

import numpy as np

from reticent.data.readings import ReadingKind, Readings


def readings_of(model, places, people=4, length=60, seed=0):
    """Readings drawn from a model: each person has one stream per pair; symbol z of sensor a reads `places[a, z]`."""
    rng = np.random.default_rng(seed)
    sensors, secrets, useful, symbols = model.channel.shape
    rows = [(p, s, u) for p in range(people) for s in range(secrets) for u in range(useful) if model.prior[s, u] > 0]
    values, stream, person, secret, used = [], [], [], [], []
    for number, (p, s, u) in enumerate(rows):
        drawn = np.stack([rng.choice(symbols, size=length, p=model.channel[a, s, u]) for a in range(sensors)], axis=1)
        values.append(places[np.arange(sensors)[None], drawn])
        for column, value in ((stream, number), (person, p), (secret, s), (used, u)):
            column.append(np.full(length, value))
    columns = (("stream", stream), ("person", person), ("secret", secret), ("useful", used))
    labels: dict[str, Any] = {name: np.concatenate(column).astype(np.int64) for name, column in columns}
    return Readings(
        values=np.concatenate(values).astype(np.float32),
        **labels,
        features=(places.shape[2],) * sensors,
        people=tuple(f"person {p}" for p in range(people)),
        sensors=model.sensors,
        secrets=model.secrets,
        useful_values=model.useful,
        kind=ReadingKind("sample"),
    )


def places_of(model):
    """Symbol z reads z, of every sensor."""
    sensors, *_, symbols = model.channel.shape
    return np.broadcast_to(np.arange(symbols, dtype=float)[None, :, None], (sensors, symbols, 1)).copy()
