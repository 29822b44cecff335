"""Traces of a hidden pair that moves: what was released step after step, silence included."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.traces import PADDING, Names


@dataclass(frozen=True, eq=False)
class MovingTraces:
    """One row a step, episode after episode; an episode is an unbroken time of one person.

    Sensor and symbol are `PADDING` where nothing was sent. `likelihood`, where a model is known, is P(what was sent |
    s, u) under the public rule in force, and one everywhere in silence.
    """

    sensor: Int[np.ndarray, " N"]
    symbol: Int[np.ndarray, " N"]
    episode: Int[np.ndarray, " N"]
    person: Int[np.ndarray, " N"]
    secret: Int[np.ndarray, " N"]
    useful: Int[np.ndarray, " N"]
    names: Names
    likelihood: Float[np.ndarray, "N S U"] | None = None

    def __len__(self) -> int:
        return len(self.secret)

    @property
    def episodes(self) -> int:
        """How many there are."""
        return int(self.episode[-1]) + 1 if len(self) else 0

    @property
    def begins(self) -> Int[np.ndarray, " N"]:
        """The first row of each row's episode."""
        return np.searchsorted(self.episode, self.episode)

    @property
    def step(self) -> Int[np.ndarray, " N"]:
        """The place of each row in its episode."""
        return np.arange(len(self)) - self.begins

    @property
    def said(self) -> Int[np.ndarray, " N"]:
        """What was sent as one number: 0 for silence, then every symbol of every sensor."""
        return np.where(self.sensor == PADDING, 0, 1 + self.sensor * len(self.names.symbols) + self.symbol)

    @property
    def different(self) -> int:
        """How many different things can be said."""
        return 1 + len(self.names.sensors) * len(self.names.symbols)

    @property
    def pair(self) -> Int[np.ndarray, " N"]:
        """Secret * U + useful."""
        return self.secret * len(self.names.useful) + self.useful

    def take(self, rows: Any) -> "MovingTraces":
        """Whole episodes: a mask that is the same for all rows of one, or the rows in their order."""
        arrays = {name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        new = np.diff(arrays["episode"], prepend=PADDING) != 0
        return replace(self, **{**arrays, "episode": np.cumsum(new) - 1})

    def padded(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Values of rows side by side by episode, [E T ...]; `fill` after the end of shorter ones."""
        step = self.step
        table = np.full((self.episodes, int(step.max()) + 1, *values.shape[1:]), fill, values.dtype)
        table[self.episode, step] = values
        return table


def pair_frequencies(traces: MovingTraces) -> Float[np.ndarray, "S U"]:
    """How often each hidden pair is there."""
    shape = len(traces.names.secrets), len(traces.names.useful)
    return np.bincount(traces.pair, minlength=shape[0] * shape[1]).reshape(shape) / len(traces)
