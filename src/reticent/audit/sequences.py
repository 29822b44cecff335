"""Traces as integer and float sequences that a recurrent network reads step by step."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.features import Scale, scaled
from reticent.audit.traces import PADDING, Traces

# Longer episodes are truncated.
MOST_STEPS = 200


class Sequences(NamedTuple):
    """Episodes as network input. The stop is a step of its own; `numbers` holds readings and log waits."""

    sensor: Int[np.ndarray, "N T"]
    symbol: Int[np.ndarray, "N T"]
    numbers: Float[np.ndarray, "N T K"]
    length: Int[np.ndarray, " N"]
    pair: Int[np.ndarray, " N"]

    def take(self, rows: Any) -> "Sequences":
        """A subset of the episodes."""
        return Sequences(*(each[rows] for each in self))


def sequences_of(traces: Traces, scale: Scale | None) -> Sequences:
    """Encode traces, with readings standardised by `scale`."""
    traces = traces.padded(min(traces.longest, MOST_STEPS))
    room = ((0, 0), (0, 1))
    stop = np.where(np.arange(traces.longest + 1)[None] == traces.length[:, None], traces.stopped[:, None], False)
    sensor = np.pad(traces.sensor, room, constant_values=PADDING)
    spoken = np.zeros_like(traces.sensor) if traces.symbol is None else traces.symbol
    silent = max(len(traces.names.symbols), 1)
    symbol = np.pad(spoken, room, constant_values=PADDING)
    return Sequences(
        sensor=np.maximum(np.where(stop, len(traces.names.sensors), sensor), 0),
        # The stop has a sensor index of its own and no symbol.
        symbol=np.where(symbol == PADDING, silent, symbol),
        numbers=_numbers(scaled(traces, scale)),
        length=traces.length + stop.any(1),
        pair=traces.secret * len(traces.names.useful) + traces.useful,
    )


def _numbers(traces: Traces) -> Float[np.ndarray, "N T1 K"]:
    """Readings and log waits of each step, with room for the stop."""
    numbers = [np.zeros((len(traces), traces.longest + 1, 0), np.float32)]
    if traces.reading is not None:
        numbers.append(np.pad(traces.reading, ((0, 0), (0, 1), (0, 0))))
    if traces.waits is not None:
        numbers.append(np.log1p(traces.waits))
    return np.concatenate(numbers, axis=2, dtype=np.float32)
