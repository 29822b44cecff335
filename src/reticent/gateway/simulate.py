"""Sensors that are not there: messages as a gateway would get them, from a model's own law or from recordings.

Everybody has a secret for good, and a useful value for one episode, which now and then stays for the next. In an
episode every sensor of everybody speaks at every moment; then all are silent for a while, so that sessions of the
gateway do not straddle two episodes.
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
from reticent.problem.model import ReleaseModel


class Source(abc.ABC):
    """What sensors say, moment by moment."""

    @abc.abstractmethod
    def begin(self) -> bool:
        """The next episode of everybody; false if there is none."""

    @abc.abstractmethod
    def moment(self) -> Iterator[Message]:
        """What every sensor of everybody says now."""


class Drawn(Source):
    """Readings that are drawn from the model, so that it fits within an episode.

    From one to the next the useful value stays with the chance `stays`, where the gateway takes it as new.
    """

    def __init__(
        self, model: ReleaseModel, subjects: Sequence[str], seed: int | None = 0, stays: float = STAYS
    ) -> None:
        if not 0 <= stays <= 1:
            raise InputError(f"--stays is a chance from 0 to 1, not {stays:g}.")
        self._model, self._subjects, self._stays = model, list(subjects), stays
        self._rng = np.random.default_rng(seed)
        # Sums over symbols, so that a uniform number finds its symbol.
        self._up_to = np.cumsum(model.channel, axis=-1)
        self._secret = self._drawn(np.tile(model.prior.sum(1), (len(self._subjects), 1)))
        self._useful = self._new_useful(self._secret)

    def begin(self) -> bool:
        stay = self._rng.random(len(self._subjects)) < self._stays
        self._useful = np.where(stay, self._useful, self._new_useful(self._secret))
        return True

    def change(self, subject: str, to: str | None = None) -> None:
        """One subject's next episode, or somebody else in its place."""
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
        """A useful value for each secret, by p(u | s)."""
        given = self._model.prior / np.maximum(self._model.prior.sum(1, keepdims=True), 1e-300)
        return self._drawn(given[secrets])

    def _drawn(self, laws: np.ndarray) -> np.ndarray:
        """One index per row, drawn by the row's law."""
        return (np.cumsum(laws, axis=1) < self._rng.random(len(laws))[:, None]).sum(1).clip(max=laws.shape[1] - 1)


class Recorded(Source):
    """What sensors said to people: stream after stream of each, as readings summed up like those of the model."""

    def __init__(self, values: np.ndarray, person: np.ndarray, stream: np.ndarray, names: "Names") -> None:
        self._values, self._names = values, names
        self._streams = {
            who: [np.flatnonzero(stream == each) for each in np.unique(stream[person == index])]
            for index, who in enumerate(names.people)
            if (person == index).any()
        }
        self._now: dict[str, list[int]] = {}
        self._turn = -1
        self.begin()

    def begin(self) -> bool:
        self._turn += 1
        rows = {
            who: streams[self._turn].tolist() for who, streams in self._streams.items() if self._turn < len(streams)
        }
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
    """Who and what recordings hold: people, sensors, and how many numbers a reading of each has."""

    people: tuple[str, ...]
    sensors: tuple[str, ...]
    features: tuple[int, ...]


@dataclass(frozen=True)
class Pace:
    """How fast it is played, in seconds before `speed`."""

    interval: float = 1.0
    """Between two readings of a sensor."""
    readings: int = 30
    """Readings of each sensor in an episode."""
    pause: float = 60.0
    """Silence between episodes: at least as long as the gateway's rest."""
    speed: float = 1.0
    """So many times faster."""

    def __post_init__(self) -> None:
        if not (self.interval >= 0 and self.pause >= 0 and self.speed > 0 and self.readings >= 1):
            raise InputError(
                "--interval and --pause are zero or more seconds, --speed above zero, --readings one or more."
            )


def play(
    source: Source,
    pace: Pace,
    episodes: int,
    send: Callable[[list[Message]], None],
    wait: Callable[[float], Any] = time.sleep,
) -> None:
    """Send what everybody's sensors say, a moment at a time; `episodes` 0 goes on for ever."""
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
    """The message as JSON, stamped with the time; without subject and sensor where a topic says them."""
    fields: dict[str, Any] = {"subject": message.subject, "sensor": message.sensor} if with_place else {}
    value = "symbol" if message.symbol is not None else "reading"
    return json.dumps({**fields, value: getattr(message, value), "time": round(now, 6)}, ensure_ascii=False).encode()
