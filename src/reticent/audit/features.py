"""Numeric features of traces: standardised readings, counts, one-hot releases and log waits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.traces import Traces


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation of each sensor's readings."""

    centre: Float[np.ndarray, "A D"]
    spread: Float[np.ndarray, "A D"]

    @classmethod
    def of(cls, traces: Traces) -> "Scale | None":
        """Estimated from traces; None for traces of symbols."""
        if traces.reading is None:
            return None
        spoken = _by_sensor(traces)
        spread = np.stack([own.std(0) for own in spoken])
        return cls(np.stack([own.mean(0) for own in spoken]), np.where(spread > 0, spread, 1.0))


def _by_sensor(traces: Traces) -> list[Float[np.ndarray, "R D"]]:
    """Readings of each sensor; zeros for a sensor without releases."""
    assert traces.reading is not None
    spoken = [traces.reading[traces.sensor == a] for a in range(len(traces.names.sensors))]
    return [own if len(own) else np.zeros((1, axes_of(traces))) for own in spoken]


def scaled(traces: Traces, scale: Scale | None) -> Traces:
    """Traces with standardised readings, zero after the last release."""
    if scale is None or traces.reading is None:
        return traces
    sensor = np.maximum(traces.sensor, 0)
    usual = (traces.reading - scale.centre[sensor]) / scale.spread[sensor]
    return replace(traces, reading=np.where(traces.released[:, :, None], usual, 0.0).astype(np.float32))


def axes_of(traces: Traces) -> int:
    """Dimension of a reading."""
    assert traces.reading is not None
    return traces.reading.shape[2]


def symbol_places(traces: Traces) -> tuple[Int[np.ndarray, "N T"], int]:
    """Index of the (sensor, symbol) pair of each step, and the number of pairs, which is also the index of padding."""
    assert traces.symbol is not None
    symbols = len(traces.names.symbols)
    options = len(traces.names.sensors) * symbols
    return np.where(traces.released, traces.sensor * symbols + traces.symbol, options), options


def counted(traces: Traces, place: Int[np.ndarray, "N T K"], options: int) -> Any:
    """Count of each index 0..options-1 in each episode, a sparse matrix."""
    from scipy import sparse

    episode, step = np.nonzero(traces.released)
    said = place[episode, step]
    entries = np.ones(said.size, np.float32), (np.repeat(episode, said.shape[1]), said.reshape(-1))
    return sparse.csr_array(entries, shape=(len(traces), options))


def said_at(traces: Traces, step: int, width: int) -> Float[np.ndarray, "N W"]:
    """Release of one step, in the columns of its sensor: one-hot symbol, or an indicator followed by the reading."""
    said = np.zeros((len(traces), width), np.float32)
    own = np.flatnonzero(traces.released[:, step])
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
    """Quantile bins of readings, per sensor and axis."""

    edges: Float[np.ndarray, "A E D"]

    @classmethod
    def of(cls, traces: Traces, parts: int) -> "Bins | None":
        """Bins of equal mass; None for traces of symbols."""
        if traces.reading is None:
            return None
        shares = np.linspace(0, 1, parts + 1)[1:-1]
        return cls(np.stack([np.quantile(own, shares, axis=0) for own in _by_sensor(traces)]))

    def places(self, traces: Traces) -> tuple[Int[np.ndarray, "N T D"], int]:
        """Index of each (sensor, axis, bin), and the number of indices."""
        assert traces.reading is not None
        parts, axes = self.edges.shape[1] + 1, self.edges.shape[2]
        sensor = np.maximum(traces.sensor, 0)
        # Edge by edge, to hold one number per reading at a time.
        part = sum((self.edges[sensor, edge] < traces.reading).astype(np.int64) for edge in range(parts - 1))
        return sensor[:, :, None] * parts * axes + parts * np.arange(axes) + part, len(self.edges) * parts * axes


def places(traces: Traces, bins: Bins | None) -> tuple[Int[np.ndarray, "N T K"], int]:
    """Index of what each step released, by symbol or by bins of the reading, and the number of indices."""
    if bins is not None:
        return bins.places(traces)
    place, options = symbol_places(traces)
    return place[:, :, None], options


def waited(traces: Traces, steps: int) -> Float[np.ndarray, "N W"]:
    """Log waits per clock: the first ones, the largest and the mean. No columns for traces without waits."""
    if traces.waits is None:
        return np.zeros((len(traces), 0), np.float32)
    logs = np.log1p(traces.waits)
    spoken = np.maximum(traces.length + traces.stopped, 1)[:, None]
    first = logs[:, : steps + 1].reshape(len(traces), -1)
    return np.concatenate([first, logs.max(1), logs.sum(1) / spoken], axis=1, dtype=np.float32)
