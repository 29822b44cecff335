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
