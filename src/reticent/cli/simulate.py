"""`reticent simulate`."""

import os
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from reticent.cli.broker import BrokerOptions
from reticent.cli.options import check_seed
from reticent.cli.terminal import say
from reticent.errors import InputError
from reticent.gateway.sessions import STAYS

if TYPE_CHECKING:
    from reticent.gateway.messages import Message
    from reticent.gateway.simulate import Pace, Source
    from reticent.problem.model import Model

ENDING = ".safetensors"


@dataclass(frozen=True)
class PaceOptions:
    """How fast readings are sent."""

    interval: float = 1.0
    """Seconds between two readings of a sensor."""
    readings: int = 30
    """Readings of each sensor in an episode, within which the useful value stays."""
    pause: float = 60.0
    """Seconds of silence between episodes: at least the gateway's --rest."""
    speed: float = 1.0
    """Speed-up of everything; divide the gateway's --rest by it, too."""


@dataclass(frozen=True)
class Simulate:
    """Simulate sensors: `reticent simulate synthetic | reticent serve policy.safetensors`."""

    problem: Annotated[Positional[str], arg(metavar="PROBLEM")]
    """A policy file, a JSON problem file, or `synthetic`: readings are drawn from its model."""
    subjects: int = 5
    """Number of simulated people."""
    episodes: int = 10
    """Episodes of each person; 0 for no end."""
    pace: Annotated[PaceOptions, arg(name="")] = field(default_factory=PaceOptions)
    data: Path | None = None
    """For a fitted model: replay the recordings in this folder instead of drawing readings."""
    map: Path | None = None
    """With --data: the TOML file that says what the columns are (table, smoking)."""
    on: Literal["stdio", "mqtt"] = "stdio"
    """Lines of JSON on standard output, or an MQTT broker."""
    mqtt: Annotated[BrokerOptions, arg(name="")] = field(default_factory=BrokerOptions)
    seed: int = 0
    """Random seed of people and readings."""
    stays: float = STAYS
    """Probability that a person's useful value stays the same in the next episode; not for recordings (--data)."""

    def run(self) -> None:
        """Send readings until the episodes are over or the reader has gone."""
        from reticent.gateway.simulate import play

        check_seed(self.seed)
        if self.subjects < 1 or self.episodes < 0:
            raise InputError(
                f"--subjects must be at least 1 and --episodes at least 0; they are {self.subjects}, {self.episodes}."
            )
        if self.map is not None and self.data is None:
            raise InputError("--map needs --data.")
        source, pace, episodes = self._source(), self._pace(), self.episodes or None
        self._tell()
        if self.on == "mqtt":
            import asyncio

            from reticent.gateway.mqtt import publish_all

            return asyncio.run(publish_all(self.mqtt.settings(), lambda send: play(source, pace, episodes, send)))
        return play(source, pace, episodes, _print)

    def _pace(self) -> "Pace":
        """As given; whose pair moves lives on without pauses."""
        from reticent.gateway.simulate import Pace

        pace = Pace(**vars(self.pace))
        return replace(pace, pause=0.0) if _model(self.problem).moves else pace

    def _source(self) -> "Source":
        from reticent.gateway.simulate import Drawn, Lived

        model = _model(self.problem)
        if self.data is not None:
            return self._recorded(model, self.data)
        people = [f"person {number}" for number in range(1, self.subjects + 1)]
        return Lived(model, people, self.seed) if model.moves else Drawn(model, people, self.seed, self.stays)

    def _tell(self) -> None:
        """Print to standard error what to expect of a gateway that gets these readings."""
        from reticent.gateway.forecast import forecast_file
        from reticent.gateway.sessions import ASSUMPTION

        if self.data is None and not _model(self.problem).moves:
            say(f"the useful value stays in the next episode with chance {self.stays:g}.")
        found = forecast_file(self.problem, self.stays) if self.problem.endswith(ENDING) else None
        if found is not None:
            for sentence in (found.silence, ASSUMPTION, found.informed):
                say(sentence)

    def _recorded(self, model: "Model", folder: Path) -> "Source":
        from reticent.fit.recorded import fitted_readings
        from reticent.gateway.simulate import Names, Recorded

        found = fitted_readings(model, folder, self.map)
        people = tuple(person.replace("/", " ") for person in found.people)[: self.subjects]
        names = Names(people, found.sensors, found.features)
        return Recorded(found.values, found.person, found.stream, names)


def _model(problem: str) -> "Model":
    from reticent.cli.options import model_of
    from reticent.policy.store import PolicyFile

    return PolicyFile.load(problem).made_for.model if problem.endswith(ENDING) else model_of(problem)


def _print(messages: "list[Message]") -> None:
    from reticent.gateway.simulate import line

    try:
        sys.stdout.buffer.write(b"".join(line(message, time.time()) + b"\n" for message in messages))
        sys.stdout.buffer.flush()
    except OSError as error:
        # The rest of the buffer goes to /dev/null, so that flushing it at exit raises nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            # The gateway has ended.
            raise SystemExit(0) from None
        raise InputError(
            f"The readings cannot be written ({error.strerror}). Check the disk, and start again."
        ) from None
