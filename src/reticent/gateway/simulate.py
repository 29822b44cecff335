"""Simulated sensors: messages for a gateway, drawn from a model or replayed from recordings.

Each subject has one secret, and one useful value per episode, which is sometimes kept for the next. Within an
episode every sensor of every subject sends a reading at every time step; between episodes all are silent, so that
sessions of the gateway do not straddle two episodes.
"""

import abc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.gateway.messages import Message
from reticent.gateway.sessions import STAYS
from reticent.problem.model import Model


class Source(abc.ABC):
    """What sensors send, one time step after the other."""

    @abc.abstractmethod
    def begin(self) -> bool:
        """Begin the next episode of every subject; False if there is none."""

    @abc.abstractmethod
    def moment(self) -> Iterator[Message]:
        """The messages of every sensor of every subject at the next time step."""


class Drawn(Source):
    """Readings drawn from the model, so that it fits within an episode.

    The useful value stays for the next episode with probability `stays`; the gateway's model draws it anew.
    """

    def __init__(self, model: Model, subjects: Sequence[str], seed: int | None = 0, stays: float = STAYS) -> None:
        if not 0 <= stays <= 1:
            raise InputError(f"--stays must be a probability from 0 to 1; it is {stays:g}.")
        self._model, self._subjects, self._stays = model, list(subjects), stays
        self._rng = np.random.default_rng(seed)
        # Cumulative distribution over symbols, for inverse transform sampling.
        self._up_to = np.cumsum(model.channel, axis=-1)
        self._secret = self._drawn(np.tile(model.prior.sum(1), (len(self._subjects), 1)))
        self._useful = self._new_useful(self._secret)

    def begin(self) -> bool:
        stay = self._rng.random(len(self._subjects)) < self._stays
        self._useful = np.where(stay, self._useful, self._new_useful(self._secret))
        return True

    def change(self, subject: str, to: str | None = None) -> None:
        """Begin the next episode of one subject, or replace it by a new subject of the name `to`."""
        which = self._subjects.index(subject)
        if to is None and self._rng.random() < self._stays:
            return
        if to is not None:
            self._subjects[which] = to
            self._secret[which] = self._drawn(self._model.prior.sum(1)[None])[0]
        self._useful[which] = self._new_useful(self._secret[which : which + 1])[0]

    def moment(self) -> Iterator[Message]:
        up_to = self._up_to[:, self._secret, self._useful]
        codes = (up_to < self._rng.random(up_to.shape[:2])[..., None]).sum(-1)
        codes = np.minimum(codes, len(self._model.symbols) - 1)
        for who, subject in enumerate(self._subjects):
            for sensor, name in enumerate(self._model.sensors):
                yield Message(subject, name, symbol=self._model.symbols[codes[sensor, who]])

    def _new_useful(self, secrets: np.ndarray) -> np.ndarray:
        """A useful value for each secret, drawn from p(u | s)."""
        given = self._model.prior / np.maximum(self._model.prior.sum(1, keepdims=True), 1e-300)
        return self._drawn(given[secrets])

    def _drawn(self, laws: np.ndarray) -> np.ndarray:
        """One index per row, drawn from the row's distribution."""
        return (np.cumsum(laws, axis=1) < self._rng.random(len(laws))[:, None]).sum(1).clip(max=laws.shape[1] - 1)


class Lived(Source):
    """Readings of people whose hidden pair moves by the model's chain, from one time step to the next."""

    def __init__(self, model: Model, subjects: Sequence[str], seed: int | None = 0) -> None:
        self._model, self._subjects = model, list(subjects)
        self._rng = np.random.default_rng(seed)
        self._up_to = np.cumsum(model.channel, axis=-1).reshape(len(model.sensors), -1, len(model.symbols))
        self._moves = np.cumsum(model.dynamics.reshape(model.prior.size, -1), axis=1)
        self._pair = self._drawn(np.tile(np.cumsum(model.prior), (len(self._subjects), 1)))

    @property
    def pair(self) -> np.ndarray:
        """Secret * U + useful of each subject, after the last time step."""
        return self._pair

    def begin(self) -> bool:
        return True

    def moment(self) -> Iterator[Message]:
        codes = self._drawn(self._up_to[:, self._pair])
        for who, subject in enumerate(self._subjects):
            for sensor, name in enumerate(self._model.sensors):
                yield Message(subject, name, symbol=self._model.symbols[codes[sensor, who]])
        self._pair = self._drawn(self._moves[self._pair])

    def _drawn(self, up_to: np.ndarray) -> np.ndarray:
        """An index by each cumulative distribution along the last axis."""
        drawn = (up_to < self._rng.random(up_to.shape[:-1])[..., None] * up_to[..., -1:]).sum(-1)
        return np.minimum(drawn, up_to.shape[-1] - 1)


class Recorded(Source):
    """Readings replayed from recordings: each person's streams one after the other, in the model's features."""

    def __init__(self, values: np.ndarray, person: np.ndarray, stream: np.ndarray, names: "Names") -> None:
        self._values, self._names = values, names
        self._streams = {
            who: [np.flatnonzero(stream == each) for each in np.unique(stream[person == index])]
            for index, who in enumerate(names.people)
            if (person == index).any()
        }
        self._now: dict[str, list[int]] = {}
        self._begun = 0
        self.begin()

    def begin(self) -> bool:
        turn, self._begun = self._begun, self._begun + 1
        rows = {who: streams[turn].tolist() for who, streams in self._streams.items() if turn < len(streams)}
        self._now = {who: own[::-1] for who, own in rows.items()}
        return bool(rows)

    def moment(self) -> Iterator[Message]:
        for who, rows in self._now.items():
            if not rows:
                continue
            row = self._values[rows.pop()]
            for sensor, (name, features) in enumerate(zip(self._names.sensors, self._names.features, strict=True)):
                yield Message(who, name, reading=tuple(map(float, row[sensor, :features])))


@dataclass(frozen=True)
class Names:
    """Names in recordings: people and sensors; `features` counts the numbers in a reading of each sensor."""

    people: tuple[str, ...]
    sensors: tuple[str, ...]
    features: tuple[int, ...]


@dataclass(frozen=True)
class Pace:
    """How fast readings are sent. Times are in seconds, and divided by `speed`."""

    interval: float = 1.0
    """Between two readings of a sensor."""
    readings: int = 30
    """Readings of each sensor in an episode."""
    pause: float = 60.0
    """Silence between episodes: at least as long as the gateway's rest."""
    speed: float = 1.0
    """Factor by which everything is faster."""

    def __post_init__(self) -> None:
        if not (self.interval >= 0 and self.pause >= 0 and self.speed > 0 and self.readings >= 1):
            raise InputError(
                "--interval and --pause must be at least 0 seconds, --speed above 0, --readings at least 1."
            )


def play(
    source: Source,
    pace: Pace,
    episodes: int | None,
    send: Callable[[list[Message]], None],
    wait: Callable[[float], Any] = time.sleep,
) -> None:
    """Send the messages of all sensors, one time step after the other; without end if `episodes` is None."""
    begun = 0
    while True:
        for _ in range(pace.readings):
            messages = list(source.moment())
            if not messages:
                break
            send(messages)
            wait(pace.interval / pace.speed)
        begun += 1
        if begun == episodes or not source.begin():
            return
        wait(pace.pause / pace.speed)


def line(message: Message, now: float, with_place: bool = True) -> bytes:
    """The message as JSON with this time; without subject and sensor (`with_place` False) where a topic has them."""
    fields: dict[str, Any] = {"subject": message.subject, "sensor": message.sensor} if with_place else {}
    value = "symbol" if message.symbol is not None else "reading"
    return json.dumps({**fields, value: getattr(message, value), "time": round(now, 6)}, ensure_ascii=False).encode()
