"""Traces as numbers that a classifier can learn from: scaled, counted, step by step."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.traces import NOTHING, Traces


@dataclass(frozen=True, eq=False)
class Scale:
    """What is usual of each sensor's readings, so that attackers see what is not."""

    centre: Float[np.ndarray, "A D"]
    spread: Float[np.ndarray, "A D"]

    @classmethod
    def of(cls, traces: Traces) -> "Scale | None":
        """Of the sensors that spoke; traces of symbols have none."""
        if traces.reading is None:
            return None
        spoken = [traces.reading[traces.sensor == a] for a in range(len(traces.names.sensors))]
        spoken = [own if len(own) else np.zeros((1, axes_of(traces))) for own in spoken]
        spread = np.stack([own.std(0) for own in spoken])
        return cls(np.stack([own.mean(0) for own in spoken]), np.where(spread > 0, spread, 1.0))


def scaled(traces: Traces, scale: Scale | None) -> Traces:
    """Readings in units of what is usual; zero after the end."""
    if scale is None or traces.reading is None:
        return traces
    sensor = np.maximum(traces.sensor, 0)
    usual = (traces.reading - scale.centre[sensor]) / scale.spread[sensor]
    spoke = (traces.sensor != NOTHING)[:, :, None]
    return replace(traces, reading=np.where(spoke, usual, 0.0).astype(np.float32))


def axes_of(traces: Traces) -> int:
    """How many numbers a reading has."""
    assert traces.reading is not None
    return traces.reading.shape[2]


def symbol_places(traces: Traces) -> tuple[Int[np.ndarray, "N T"], int]:
    """A number for each pair of sensor and symbol, that of none after the end; and how many pairs there are."""
    assert traces.symbol is not None
    symbols = len(traces.names.symbols)
    options = len(traces.names.sensors) * symbols
    return np.where(traces.sensor == NOTHING, options, traces.sensor * symbols + traces.symbol), options


def counted(traces: Traces, place: Int[np.ndarray, "N T K"], options: int) -> Any:
    """How often each of so many things was said in each episode, a sparse matrix."""
    from scipy import sparse

    episode, step = np.nonzero(traces.sensor != NOTHING)
    said = place[episode, step]
    entries = np.ones(said.size, np.float32), (np.repeat(episode, said.shape[1]), said.reshape(-1))
    return sparse.csr_array(entries, shape=(len(traces), options))


def said_at(traces: Traces, step: int, width: int) -> Float[np.ndarray, "N W"]:
    """What one step said, in the columns of the sensor that spoke: which symbol, or that it spoke and its reading."""
    said = np.zeros((len(traces), width), np.float32)
    own = np.flatnonzero(traces.sensor[:, step] != NOTHING)
    sensor = traces.sensor[own, step]
    if traces.reading is None:
        assert traces.symbol is not None
        said[own, sensor * len(traces.names.symbols) + traces.symbol[own, step]] = 1.0
        return said
    axes = axes_of(traces)
    said[own, sensor * (1 + axes)] = 1.0
    for axis in range(axes):
        said[own, sensor * (1 + axes) + 1 + axis] = traces.reading[own, step, axis]
    return said


@dataclass(frozen=True, eq=False)
class Bins:
    """Readings by which part of their sensor's usual readings they lie in, axis by axis."""

    edges: Float[np.ndarray, "A E D"]

    @classmethod
    def of(cls, traces: Traces, parts: int) -> "Bins | None":
        """So many parts of about as many readings each; traces of symbols need none."""
        if traces.reading is None:
            return None
        shares = np.linspace(0, 1, parts + 1)[1:-1]
        spoken = [traces.reading[traces.sensor == a] for a in range(len(traces.names.sensors))]
        spoken = [own if len(own) else np.zeros((1, axes_of(traces))) for own in spoken]
        return cls(np.stack([np.quantile(own, shares, axis=0) for own in spoken]))

    def places(self, traces: Traces) -> tuple[Int[np.ndarray, "N T D"], int]:
        """A number for each triple of sensor, axis and part; and how many there are."""
        assert traces.reading is not None
        parts, axes = self.edges.shape[1] + 1, self.edges.shape[2]
        sensor = np.maximum(traces.sensor, 0)
        # Edge by edge, so that no more than one number per reading is held at a time.
        part = sum((self.edges[sensor, edge] < traces.reading).astype(np.int64) for edge in range(parts - 1))
        return sensor[:, :, None] * parts * axes + parts * np.arange(axes) + part, len(self.edges) * parts * axes


def places(traces: Traces, bins: Bins | None) -> tuple[Int[np.ndarray, "N T K"], int]:
    """A number for each thing that may be said, of symbols or of readings in parts; and how many there are."""
    if bins is not None:
        return bins.places(traces)
    place, options = symbol_places(traces)
    return place[:, :, None], options


def waited(traces: Traces, steps: int) -> Float[np.ndarray, "N W"]:
    """Logarithms of the first waits and of the longest one, and the mean of all, by each clock; no columns without."""
    if traces.waits is None:
        return np.zeros((len(traces), 0), np.float32)
    logs = np.log1p(traces.waits)
    spoken = np.maximum(traces.length + traces.stopped, 1)[:, None]
    first = logs[:, : steps + 1].reshape(len(traces), -1)
    return np.concatenate([first, logs.max(1), logs.sum(1) / spoken], axis=1, dtype=np.float32)
