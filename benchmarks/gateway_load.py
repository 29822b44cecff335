"""The gateway under load: `reticent serve --on mqtt` against a real broker on this machine.

First a steady stream of readings, for the time from
publishing a reading to hearing its release; then as many as the gateway takes, for decisions per second and memory,
until an hour's worth of traffic was handled or the seconds are over.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from benchmarks.catalogue import Measured
from reticent.gateway.simulate import Drawn, line
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Coarsen, Mask
from reticent.problem.model import Model
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task

SUBJECTS, SECONDS = 2000, 400.0
# The steady part: a reading of every sensor of so many subjects per second.
STEADY_PER_SECOND, STEADY_SECONDS = 40, 30.0
# What counts as an hour's worth of traffic: each sensor of each subject speaks so often.
SECONDS_BETWEEN_READINGS = 20
# Messages are small: held back until the one before is acknowledged, each would wait for the peer's delay.
AT_ONCE = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
# A subject that has not answered for so long will not: somebody else speaks in its place.
SILENT_SECONDS = 30.0
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
BROKER = ("persistence false", "max_queued_messages 0", "allow_anonymous true", "set_tcp_nodelay true")
TASKS = (
    Task(synthetic(), Information(1e6), enforcement=Mask(), horizon=10),
    Task(synthetic(), Confidence(0.8), enforcement=Coarsen(), horizon=10),
)
WIDTH = 8


def load() -> Measured:
    """Both tasks, each on a gateway and a broker of its own."""
    if MOSQUITTO is None:
        raise SystemExit("mosquitto, an MQTT broker, is not installed. Nothing was measured.")
    rows = []
    for task in TASKS:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(Path(folder), task, SUBJECTS, SECONDS)
        worth = found.readings / len(task.model.sensors) / SUBJECTS * SECONDS_BETWEEN_READINGS
        p50, p99 = 1000 * np.percentile(found.latencies, [50, 99])
        rows.append(
            {
                "bound": task.bound.name,
                "enforcement": task.enforcement.name,
                "decisions_per_second": found.decided / found.busy_seconds,
                "readings_per_second": found.readings / found.busy_seconds,
                "latency_p50_milliseconds": p50,
                "latency_p99_milliseconds": p99,
                **{f"megabytes_quarter_{quarter}": each for quarter, each in enumerate(found.memory, 1)},
                "minutes_of_traffic": worth / 60,
                "minutes": found.busy_seconds / 60,
            }
        )
    notes = [
        f"{SUBJECTS:,} subjects at a time on one gateway (an untrained actor; three sensors, fifty symbols), over MQTT "
        "on loopback with mosquitto, QoS 1 for releases, an SQLite ledger synced to disk with every batch; beside the "
        "load generator on the same cores.",
        "Decisions are releases and stops, each on disk before it leaves. Latency is from publishing a reading to "
        f"hearing its release, with readings of {STEADY_PER_SECOND} subjects a second. Decisions per second are with "
        "every subject speaking again as soon as it is answered, and somebody new in its place after each session. "
        f"Minutes of traffic: what was handled, at one reading per sensor every {SECONDS_BETWEEN_READINGS} s of every "
        f"subject; it ends with an hour's worth, or after {SECONDS:.0f} s. Memory: resident, after each quarter of it.",
    ]
    return rows, notes


@dataclass
class Found:
    """What one run measured. Memory is the gateway's resident set, in MB, over time."""

    latencies: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    decided: int = 0
    readings: int = 0
    busy_seconds: float = 0.0


def measured(folder: Path, task: Task, subjects: int, seconds: float) -> Found:
    """One gateway, first steadily, then as fast as it goes."""
    policy = untrained(folder / "policy.safetensors", task)
    found = Found()
    with broker(folder) as port, serving(policy, port, subjects) as process:
        load = Load(port, task.model, subjects, found)
        with contextlib.closing(load):
            load.steady(STEADY_SECONDS)
            load.busy(seconds, lambda: found.memory.append(resident_mb(process.pid)))
    return found


def untrained(path: Path, task: Task) -> Path:
    """A random actor that never stops before the horizon."""
    rng, cells, actions = np.random.default_rng(0), task.model.prior.size, len(task.model.sensors) + 1
    arrays = {}
    for i, size in enumerate([(WIDTH, cells), (WIDTH, WIDTH), (actions, WIDTH)]):
        arrays[f"layers.{i}.weight"] = rng.normal(size=size).astype(np.float32)
        arrays[f"layers.{i}.bias"] = np.zeros(size[0], np.float32)
    arrays["layers.2.bias"][-1] = -9.0
    PolicyFile("actor", task, {"inputs": "belief", "width": WIDTH, "greedy": True}, arrays, {}).save(path)
    return path


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[int]:
    """A mosquitto of its own, on a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # As root it would become a user who may not read the folder.
    lines = [f"listener {port} 127.0.0.1", *BROKER, *(["user root"] if os.geteuid() == 0 else [])]
    settings = folder / "mosquitto.conf"
    settings.write_text("\n".join(lines) + "\n")
    with (folder / "mosquitto.log").open("wb") as log:
        process = subprocess.Popen([str(MOSQUITTO), "-c", str(settings)], stdout=log, stderr=log)
        try:
            while not _listens(port):
                assert process.poll() is None, "mosquitto did not start"
                time.sleep(0.05)
            yield port
        finally:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


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

    def __init__(self, port: int, model: Model, subjects: int, found: Found) -> None:
        self._found, self._names = found, [f"s{i}.0" for i in range(subjects)]
        self._readings = self._drawn(model)
        self._asked_at: dict[str, float] = {}
        self._keep_going, self._lock = False, threading.Lock()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.max_inflight_messages_set(10_000)
        self._client.on_message = self._hear
        self._client.on_socket_open = lambda client, userdata, opened: cast(socket.socket, opened).setsockopt(*AT_ONCE)
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
        time.sleep(1)
        self._asked_at.clear()

    def busy(self, seconds: float, at_quarter: Callable[[], None]) -> None:
        """Everybody speaks again as soon as it was answered, until an hour's worth or the seconds are over."""
        self._found.decided = self._found.readings = 0
        hour = 3600 // SECONDS_BETWEEN_READINGS * len(self._names) * len(self._readings[0])
        latencies = list(self._found.latencies)
        self._keep_going, started = True, time.monotonic()
        for name in self._names:
            self._speak(name)
        for quarter in (0.25, 0.5, 0.75, 1.0):
            while time.monotonic() < started + quarter * seconds and self._found.readings < quarter * hour:
                time.sleep(0.2)
                self._replace_silent()
            at_quarter()
        self._keep_going = False
        self._found.busy_seconds, self._found.latencies = time.monotonic() - started, latencies

    def _replace_silent(self) -> None:
        now = time.monotonic()
        for name, asked in list(self._asked_at.items()):
            if now - asked > SILENT_SECONDS:
                self._replace(name)

    def _replace(self, name: str) -> None:
        """Somebody new."""
        del self._asked_at[name]
        place, _, visit = name.partition(".")
        self._speak(f"{place}.{int(visit) + 1}")

    def _drawn(self, model: Model) -> list[list[tuple[str, bytes]]]:
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
