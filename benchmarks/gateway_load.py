"""The gateway under load: `reticent serve --on mqtt` against a real broker on this machine.

`python -m benchmarks.gateway_load [SUBJECTS [SECONDS]]`. First a steady stream of readings, for the time from
publishing a reading to hearing its release; then as many as the gateway takes, for decisions per second and memory.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from benchmarks.record import save
from reticent.gateway.simulate import Drawn, line
from reticent.problem.bound import ConfidenceBound, InformationBound
from reticent.problem.model import ReleaseModel
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task
from tests.gateway.brokers import MOSQUITTO, Mosquitto
from tests.gateway.parts import write_policy

SUBJECTS, SECONDS = 2000, 60.0
# The steady part: a reading of every sensor of so many subjects per second.
STEADY_PER_SECOND, STEADY_SHARE = 40, 0.3
# A subject that has not answered for so long has nothing to say: it is spoken to again.
SILENT_SECONDS = 2.0
TASKS = {
    "information, mask": Task(synthetic(), InformationBound(1e6), enforce="mask", horizon=10),
    "confidence, coarsen": Task(synthetic(), ConfidenceBound(0.8), enforce="coarsen", horizon=10),
}


def main(subjects: int = SUBJECTS, seconds: float = SECONDS) -> None:
    if MOSQUITTO is None:
        print(
            "The gateway under load needs mosquitto, an MQTT broker, which is not installed: left out.", file=sys.stderr
        )
        return
    rows = []
    for name, task in TASKS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = measured(Path(folder), task, subjects, seconds)
        taken = found.readings / len(task.model.sensors) / subjects
        rows.append(
            [
                name,
                f"{found.decided / found.busy_seconds:,.0f}",
                f"{found.readings / found.busy_seconds:,.0f}",
                f"{1000 * np.percentile(found.latencies, 50):.1f} ms",
                f"{1000 * np.percentile(found.latencies, 99):.1f} ms",
                f"{found.memory[0]:.0f} -> {found.memory[-1]:.0f} MB",
                f"{taken / 60:.1f} min",
            ]
        )
    headings = ["bound", "decisions/s", "readings/s", "p50", "p99", "memory, early -> end", "worth of traffic"]
    notes = [
        f"{subjects:,} subjects at a time on one gateway (an untrained actor; three sensors, fifty symbols), over MQTT "
        "on loopback with mosquitto, QoS 1 for releases, an SQLite ledger synced to disk with every batch; about "
        f"{seconds:.0f} s each, beside the load generator on the same cores.",
        "Decisions are releases and stops, each on disk before it leaves. Latency is from publishing a reading to "
        f"hearing its release, with readings of {STEADY_PER_SECOND} subjects a second. Decisions per second are with "
        "every subject speaking again as soon as it is answered, and somebody new in its place after each session. "
        "Worth of traffic: what was handled, at one reading per sensor and second of every subject.",
    ]
    save("gateway_load", "Gateway under load", headings, rows, notes)


@dataclass
class Found:
    """What one run measured. Memory is the gateway's resident set, in MB, once everybody was heard and at the end."""

    latencies: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    decided: int = 0
    readings: int = 0
    busy_seconds: float = 0.0


def measured(folder: Path, task: Task, subjects: int, seconds: float) -> Found:
    """One gateway, first steadily, then as fast as it goes."""
    policy = write_policy(folder / "policy.safetensors", task)
    found = Found()
    with contextlib.closing(Mosquitto(folder)) as broker, serving(policy, broker.port, subjects) as process:
        load = Load(broker.port, task.model, subjects, found)
        with contextlib.closing(load):
            load.steady(STEADY_SHARE * seconds)
            # Growth counts from when everybody was heard.
            load.busy((1 - STEADY_SHARE) * seconds, lambda: found.memory.append(resident_mb(process.pid)))
            found.memory.append(resident_mb(process.pid))
    return found


@contextlib.contextmanager
def serving(policy: Path, port: int, subjects: int) -> Iterator[subprocess.Popen]:
    words = [sys.executable, "-m", "reticent", "serve", str(policy), "--on", "mqtt", "--broker", f"127.0.0.1:{port}"]
    with policy.with_name("gateway.log").open("wb") as log:
        process = subprocess.Popen([*words, "--subjects", str(subjects)], stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


class Load:
    """Sensors of many subjects, and the provider who hears what is released."""

    def __init__(self, port: int, model: ReleaseModel, subjects: int, found: Found) -> None:
        self._found, self._names = found, [f"s{i}.0" for i in range(subjects)]
        self._readings = self._drawn(model)
        self._asked_at: dict[str, float] = {}
        self._keep_going, self._lock = False, threading.Lock()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(10_000)
        self._client.on_message = self._hear
        self._client.connect("127.0.0.1", port)
        self._client.subscribe("out/#", 0)
        self._client.loop_start()
        self._wait_until_served()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def steady(self, seconds: float) -> None:
        """So many subjects a second, one after the other: how long each waits."""
        rng, end = np.random.default_rng(1), time.monotonic() + seconds
        while time.monotonic() < end:
            self._speak(self._names[rng.integers(len(self._names))])
            time.sleep(1 / STEADY_PER_SECOND)
        time.sleep(SILENT_SECONDS)
        self._asked_at.clear()

    def busy(self, seconds: float, at_quarter: Callable[[], None]) -> None:
        """Everybody speaks again as soon as it was answered; who has nothing to say makes room."""
        self._found.decided = self._found.readings = 0
        latencies = list(self._found.latencies)
        self._keep_going, started, early = True, time.monotonic(), True
        while (now := time.monotonic()) < started + seconds:
            for name, asked in list(self._asked_at.items()):
                if now - asked > SILENT_SECONDS:
                    self._replace(name)
            for name in self._names:
                self._speak(name)
            self._names = []
            if early and now > started + seconds / 4:
                early = False
                at_quarter()
            time.sleep(0.2)
        self._keep_going = False
        self._found.busy_seconds, self._found.latencies = time.monotonic() - started, latencies

    def _replace(self, name: str) -> None:
        """Somebody new."""
        del self._asked_at[name]
        place, _, visit = name.partition(".")
        self._speak(f"{place}.{int(visit) + 1}")

    def _drawn(self, model: ReleaseModel) -> list[list[tuple[str, bytes]]]:
        """Some moments of one person, made beforehand, so that the generator takes little of the machine."""
        source = Drawn(model, ["anybody"], seed=0)
        return [[(m.sensor, line(m, 0.0, with_place=False)) for m in source.moment()] for _ in range(500)]

    def _speak(self, name: str) -> None:
        now = time.time()
        with self._lock:
            self._found.readings += len(self._readings[0])
            moment = self._readings[self._found.readings % len(self._readings)]
        self._asked_at[name] = time.monotonic()
        for sensor, payload in moment:
            stamped = payload.replace(b'"time": 0.0', b'"time": %.6f' % now)
            self._client.publish(f"in/{name}/{sensor}", stamped, 0)

    def _hear(self, client: Any, userdata: Any, message: Any) -> None:
        name = message.topic.removeprefix("out/")
        self._found.decided += 1
        asked = self._asked_at.get(name)
        if asked is None:
            return
        if json.loads(message.payload)["sensor"] == "stop":
            return self._replace(name) if self._keep_going else None
        self._found.latencies.append(time.monotonic() - asked)
        return self._speak(name) if self._keep_going else None

    def _wait_until_served(self) -> None:
        end = time.monotonic() + 60
        while not self._found.latencies:
            assert time.monotonic() < end, "the gateway does not answer"
            self._speak("first.0")
            time.sleep(0.5)
        self._found.latencies.clear()
        self._asked_at.clear()


def resident_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


if __name__ == "__main__":
    asked = [float(word) for word in sys.argv[1:3]] + [SUBJECTS, SECONDS][len(sys.argv) - 1 :]
    main(int(asked[0]), asked[1])
