"""Traces: what was released, one row per episode, padded to one length."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

# Sensor and symbol index of steps after the last release of an episode. Elsewhere: `Traces.released`.
PADDING = -1
# Value of each array with a step axis after the last release.
FILL = {"sensor": PADDING, "symbol": PADDING, "reading": 0.0, "likelihood": 1.0, "waits": 0.0}


@dataclass(frozen=True)
class Names:
    """Names of all indices. Traces of raw readings have no symbols; `clocks` are the columns that waits come from."""

    sensors: tuple[str, ...]
    symbols: tuple[str, ...]
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    clocks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Traces:
    """Episodes as padded arrays; `FILL` holds the values after the last release. A release is a symbol or a reading.

    `stopped` is true if the stop was observed, false if the episode was cut off at the horizon. `person` identifies
    whose episode it is, so that attackers are never tested on people they were trained on; without people, every
    episode has a number of its own. `likelihood`, where a model is known, is P(release | s, u) under the public rule
    in force, the factor of exact Bayes. `waits`, where releases are not evenly spaced, is the time since the previous
    release on each clock; the wait of the stop follows that of the last release, hence one more column.
    """

    sensor: Int[np.ndarray, "N T"]
    symbol: Int[np.ndarray, "N T"] | None
    reading: Float[np.ndarray, "N T D"] | None
    stopped: Bool[np.ndarray, " N"]
    person: Int[np.ndarray, " N"]
    secret: Int[np.ndarray, " N"]
    useful: Int[np.ndarray, " N"]
    names: Names
    likelihood: Float[np.ndarray, "N T S U"] | None = None
    waits: Float[np.ndarray, "N T1 W"] | None = None

    def __len__(self) -> int:
        return len(self.secret)

    @property
    def released(self) -> Bool[np.ndarray, "N T"]:
        """Which steps hold a release."""
        return self.sensor != PADDING

    @property
    def length(self) -> Int[np.ndarray, " N"]:
        """Number of releases of each episode."""
        return self.released.sum(1)

    @property
    def longest(self) -> int:
        """Length of the step axis: the most releases an episode can have."""
        return self.sensor.shape[1]

    def take(self, rows: Any) -> "Traces":
        """A subset of the episodes."""
        return replace(self, **{name: value[rows] for name, value in vars(self).items() if _is_array(value)})

    def until(self, moment: int | Int[np.ndarray, " N"]) -> "Traces":
        """Episodes truncated after `moment` steps. The stop is a step of its own, after the last release."""
        moment = np.broadcast_to(moment, len(self))
        changed: dict[str, Any] = {"stopped": self.stopped & (self.length < moment)}
        for name, value in _by_step(self).items():
            past = np.arange(value.shape[1])[None] >= moment[:, None]
            past = past.reshape(*past.shape, *[1] * (value.ndim - 2))
            changed[name] = np.where(past, FILL[name], value).astype(value.dtype)
        return replace(self, **changed)

    def padded(self, longest: int) -> "Traces":
        """Step axis of exactly this length; later releases are cut off."""
        more = longest - self.longest
        if more == 0:
            return self
        if more < 0:
            # Keep the stop if it directly follows the last release that is kept.
            short = self.until(longest + 1)
            room = {"waits": longest + 1}
            return replace(
                short, **{name: value[:, : room.get(name, longest)] for name, value in _by_step(short).items()}
            )
        wide = {
            name: np.pad(value, [(0, 0), (0, more), *[(0, 0)] * (value.ndim - 2)], constant_values=FILL[name])
            for name, value in _by_step(self).items()
        }
        return replace(self, **wide)


def joined(first: Traces, second: Traces) -> Traces:
    """Concatenation of the episodes of both."""
    longest = max(first.longest, second.longest)
    parts = [vars(traces.padded(longest)) for traces in (first, second)]
    both = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if _is_array(parts[0][name])}
    return replace(first, **both)


def padded_rows(
    episode: Int[np.ndarray, " R"],
    step: Int[np.ndarray, " R"],
    values: np.ndarray,
    shape: tuple[int, int],
    fill: int | float,
) -> np.ndarray:
    """Array [episode, step] from one value per (episode, step) row; `fill` elsewhere."""
    table = np.full((*shape, *values.shape[1:]), fill, values.dtype)
    table[episode, step] = values
    return table


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _by_step(traces: Traces) -> dict[str, np.ndarray]:
    found = {name: getattr(traces, name) for name in FILL}
    return {name: value for name, value in found.items() if value is not None}
