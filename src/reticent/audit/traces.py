"""What was released, episode by episode."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

NOTHING = -1


@dataclass(frozen=True)
class Names:
    """What everything is called. Traces of raw readings have no symbols; `clocks` are the columns that waits are of."""

    sensors: tuple[str, ...]
    symbols: tuple[str, ...]
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    clocks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Traces:
    """One line per episode, with -1 after its last release. What a release said is a symbol or a reading.

    `stopped`: the end was announced; an episode that was cut at the horizon just ends. `person` tells whose episode it
    is, so that nobody is judged by attackers who learned from them; episodes of nobody in particular have persons of
    their own. `likelihood`, where a model is known, is the chance of each release under each hidden pair, with the
    public rule in force: what exact Bayes multiplies; one after the end. `waits`, where releases do not follow each
    other at equal distances, is how long each came after the one before, by each clock; the stop's stands after that
    of the last release, so there is room for one more; zero after the end.
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
    def length(self) -> Int[np.ndarray, " N"]:
        """Releases of each episode."""
        return (self.sensor != NOTHING).sum(1)

    @property
    def longest(self) -> int:
        """Releases of the longest episode that there is room for."""
        return self.sensor.shape[1]

    def take(self, rows: Any) -> "Traces":
        """Some of the episodes."""
        return replace(self, **{name: value[rows] for name, value in vars(self).items() if _is_array(value)})

    def until(self, moment: int | Int[np.ndarray, " N"]) -> "Traces":
        """What was known after so many steps. The stop is a step of its own, after the last release."""
        moment = np.broadcast_to(moment, len(self))
        past = np.arange(self.longest)[None] >= moment[:, None]
        changed: dict[str, Any] = {"sensor": np.where(past, NOTHING, self.sensor)}
        changed["stopped"] = self.stopped & (self.length < moment)
        if self.symbol is not None:
            changed["symbol"] = np.where(past, NOTHING, self.symbol)
        if self.reading is not None:
            changed["reading"] = np.where(past[:, :, None], 0.0, self.reading).astype(self.reading.dtype)
        if self.likelihood is not None:
            changed["likelihood"] = np.where(past[:, :, None, None], 1.0, self.likelihood)
        if self.waits is not None:
            late = np.arange(self.longest + 1)[None] >= moment[:, None]
            changed["waits"] = np.where(late[:, :, None], 0.0, self.waits).astype(self.waits.dtype)
        return replace(self, **changed)

    def padded(self, longest: int) -> "Traces":
        """Room for exactly so many releases; what came later is cut off."""
        more = longest - self.longest
        if more == 0:
            return self
        if more < 0:
            # With the stop, where it comes right after the last release that there is room for.
            short = self.until(longest + 1)
            room = {"waits": longest + 1}
            return replace(
                short, **{name: value[:, : room.get(name, longest)] for name, value in _by_step(short).items()}
            )
        fill = {"sensor": NOTHING, "symbol": NOTHING, "reading": 0.0, "likelihood": 1.0, "waits": 0.0}
        wide = {
            name: np.pad(value, [(0, 0), (0, more), *[(0, 0)] * (value.ndim - 2)], constant_values=fill[name])
            for name, value in _by_step(self).items()
        }
        return replace(self, **wide)


def joined(first: Traces, second: Traces) -> Traces:
    """The episodes of both."""
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
    """One value per row of (episode, step), in a table of episodes by steps."""
    table = np.full((*shape, *values.shape[1:]), fill, values.dtype)
    table[episode, step] = values
    return table


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _by_step(traces: Traces) -> dict[str, np.ndarray]:
    found = {name: getattr(traces, name) for name in ("sensor", "symbol", "reading", "likelihood", "waits")}
    return {name: value for name, value in found.items() if value is not None}
