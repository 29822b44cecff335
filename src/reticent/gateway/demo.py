"""The demo: a made-up problem with simulated visitors, to see a gateway at work without any hardware.

A wristband and a phone should tell whether somebody sits, stands or walks (useful), but not whether they smoke
(secret). Readings are strengths of movement from 1 to 12. The wristband's depend on both; the phone's are noisier, and
depend on the useful value only.
"""

import os
import threading
import time
from collections import Counter, deque
from pathlib import Path

import numpy as np

from reticent.gateway.events import Event
from reticent.gateway.messages import Message
from reticent.gateway.service import Gateway
from reticent.gateway.simulate import Drawn, Pace, line, play
from reticent.problem.model import Model

STRENGTHS = 12
USEFUL = ("sitting", "standing", "walking")
# Per sensor: mean strength when sitting, standing, walking; what smoking adds to each; standard deviation.
SENSORS = {
    "wrist accelerometer": ((3.0, 4.0, 8.5), (0.7, 0.6, 0.5), 1.3),
    "wrist gyroscope": ((2.5, 5.0, 8.5), (1.8, 1.5, 1.2), 1.1),
    "phone accelerometer": ((3.0, 7.5, 8.5), (0.0, 0.0, 0.0), 1.8),
}
# Made by `python -m tests.gateway.make_demo`.
POLICY = Path(__file__).with_name("demo.safetensors")
REST_SECONDS = 4.0
PACE = Pace(interval=0.8, pause=0.0)
VISITORS, SESSIONS = 5, 7


def demo_model() -> Model:
    """Two secrets, three useful values, three sensors, twelve symbols."""
    strength = np.arange(1, STRENGTHS + 1)
    channel = np.zeros((len(SENSORS), 2, len(USEFUL), STRENGTHS))
    for sensor, (means, added, deviation) in enumerate(SENSORS.values()):
        mean = np.stack([np.add(means, added), np.asarray(means)])[..., None]
        channel[sensor] = np.exp(-0.5 * ((strength - mean) / deviation) ** 2)
    channel = np.round(0.98 * channel / channel.sum(-1, keepdims=True) + 0.02 / STRENGTHS, 6)
    return Model(
        prior=np.full((2, len(USEFUL)), 1 / 6),
        channel=channel,
        secrets=("smoking", "not smoking"),
        useful=USEFUL,
        sensors=tuple(SENSORS),
        symbols=tuple(f"strength {level}" for level in strength),
    )


class Visitors:
    """Simulated people who stay for some sessions each; their sensors write to a pipe, read from `readings`.

    When a session ends, the visitor's useful value is drawn anew or, with probability STAYS, kept.
    """

    def __init__(self, gateway: Gateway, seed: int | None = None) -> None:
        names = [f"visitor {number}" for number in range(1, VISITORS + 1)]
        self._source = Drawn(gateway.runtime.task.model, names, seed)
        self._come, self._sessions = VISITORS, Counter[str]()
        self._ended: deque[str] = deque()
        self._leave = threading.Event()
        self.readings, self._pipe = os.pipe()
        self._unsubscribe = gateway.subscribe(self._notice)
        self._thread = threading.Thread(target=self._speak, name="visitors", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the simulation and close the pipe."""
        self._leave.set()
        self._unsubscribe()
        os.close(self.readings)
        self._thread.join()

    def _notice(self, event: Event) -> None:
        if event["kind"] == "stop":
            self._ended.append(event["subject"])

    def _speak(self) -> None:
        try:
            play(self._source, PACE, None, self._write, self._wait)
        except OSError:
            pass  # Nobody listens any more.
        finally:
            os.close(self._pipe)

    def _write(self, messages: list[Message]) -> None:
        os.write(self._pipe, b"".join(line(message, time.time()) + b"\n" for message in messages))

    def _wait(self, seconds: float) -> None:
        if self._leave.wait(seconds):
            raise BrokenPipeError
        while self._ended:
            self._next(self._ended.popleft())

    def _next(self, name: str) -> None:
        """Begin the visitor's next session or, after SESSIONS of them, replace it by a new visitor."""
        self._sessions[name] += 1
        if self._sessions[name] < SESSIONS:
            return self._source.change(name)
        del self._sessions[name]
        self._come += 1
        return self._source.change(name, f"visitor {self._come}")
