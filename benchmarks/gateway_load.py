"""The gateway under load beside 0.4.0: `reticent serve --on mqtt` against a real broker on this machine, in turn.

First a steady stream of readings, for the time from publishing a reading to hearing its release; then as many as the
gateway takes, for decisions per second, CPU time and memory. One process, and two that share the subjects.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.beside import Version, both
from benchmarks.catalogue import Measured
from reticent.gateway.link import Link, Published
from reticent.gateway.mqtt import Broker
from reticent.gateway.simulate import Drawn, line
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Coarsen, Mask
from reticent.problem.model import Model
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task

SUBJECTS, SECONDS = 2000, 20.0
# The steady part: a reading of every sensor of so many subjects per second.
STEADY_PER_SECOND, STEADY_SECONDS = 40, 8.0
# A subject that has not answered for so long will not: somebody else speaks in its place.
SILENT_SECONDS = 30.0
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
BROKER = ("persistence false", "max_queued_messages 0", "allow_anonymous true", "set_tcp_nodelay true")
TASKS = (
    Task(synthetic(), Information(1e6), enforcement=Mask(), horizon=10),
    Task(synthetic(), Confidence(0.8), enforcement=Coarsen(), horizon=10),
)
# The same in the words of 0.4.0.
WRITE_THEN = (
    "import sys; from pathlib import Path; from benchmarks.gateway_load import TASKS; "
    "from tests.gateway.parts import write_policy; "
    "write_policy(Path(sys.argv[1]), list(TASKS.values())[int(sys.argv[2])])"
)
WRITE_NOW = (
    "import sys; from pathlib import Path; from benchmarks.gateway_load import TASKS, untrained; "
    "untrained(Path(sys.argv[1]), TASKS[int(sys.argv[2])])"
)
WIDTH = 8


def load() -> Measured:
    """Both tasks on both versions, each on a gateway and a broker of its own; and on two workers."""
    if MOSQUITTO is None:
        raise SystemExit("mosquitto, an MQTT broker, is not installed. Nothing was measured.")
    rows = []
    with both() as (then, now):
        for index, task in enumerate(TASKS):
            for version, workers in ((then, 1), (now, 1), (now, 2)):
                with tempfile.TemporaryDirectory() as folder:
                    found = measured(Path(folder), version, index, workers)
                rows.append(_row(task, version, workers, found))
    for row in rows:
        [before] = [each for each in rows if each["version"] == "0.4.0" and each["bound"] == row["bound"]]
        row["times_0.4.0"] = row["decisions_per_second"] / before["decisions_per_second"]
        row["times_0.4.0_by_cpu"] = before["cpu_microseconds"] / row["cpu_microseconds"]
    notes = [
        f"{SUBJECTS:,} subjects at a time (an untrained actor; three sensors, fifty symbols), over MQTT on loopback "
        "with mosquitto, QoS 1 for releases, an SQLite ledger synced to disk with every batch. The load generator and "
        "whatever else the machine does is on the same cores: CPU time compares versions better than the clock.",
        "Decisions are releases and stops, each on disk before it leaves; CPU microseconds are those that all "
        "processes of the gateway took for each. Latency is from publishing a reading to hearing its release, with "
        f"readings of {STEADY_PER_SECOND} subjects a second; under load, with every subject speaking again as soon as "
        "it is answered and somebody new in its place after each session. Memory: resident, of all processes.",
    ]
    return rows, notes


def _row(task: Task, version: Version, workers: int, found: "Found") -> dict[str, Any]:
    p50, p99 = 1000 * np.percentile(found.steady, [50, 99])
    return {
        "bound": task.bound.name,
        "enforcement": task.enforcement.name,
        "version": version.name,
        "workers": workers,
        "decisions_per_second": found.decided / found.seconds,
        "cpu_microseconds": 1e6 * found.cpu_seconds / found.decided,
        "latency_p50_milliseconds": p50,
        "latency_p99_milliseconds": p99,
        "under_load_p99_milliseconds": 1000 * float(np.percentile(found.busy, 99)),
        "megabytes": found.megabytes,
    }


@dataclass
class Found:
    """What one run measured: seconds of waiting, steadily and under load; and of the part under load the rest."""

    steady: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    decided: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    megabytes: float = 0.0


def measured(folder: Path, version: Version, task: int, workers: int) -> Found:
    """One gateway, first steadily, then as fast as it goes."""
    policy, found = folder / "policy.safetensors", Found()
    version.python("-c", WRITE_THEN if version.name == "0.4.0" else WRITE_NOW, str(policy), str(task))
    with broker(folder) as port, serving(version, policy, port, workers) as gateway:
        asyncio.run(Load(TASKS[task].model, found, gateway.pid).play(port))
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
def serving(version: Version, policy: Path, port: int, workers: int) -> Iterator[subprocess.Popen]:
    words = [sys.executable, "-m", "reticent", "serve", str(policy), "--on", "mqtt", "--broker", f"127.0.0.1:{port}"]
    words += ["--subjects", str(SUBJECTS)] + (["--workers", str(workers)] if workers > 1 else [])
    place = {**os.environ, "PYTHONPATH": f"{version.folder / 'src'}"}
    with policy.with_name("gateway.log").open("wb") as log:
        process = subprocess.Popen(words, stderr=log, env=place, cwd=version.folder)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


class Load:
    """Sensors of many subjects, and the provider who hears what is released."""

    _link: Link

    def __init__(self, model: Model, found: Found, gateway: int) -> None:
        self._found, self._gateway = found, gateway
        self._names = [f"s{i}.0" for i in range(SUBJECTS)]
        # Some moments of one person, made beforehand, so that the generator takes little of the machine.
        source = Drawn(model, ["anybody"], seed=0)
        self._moments = [[(m.sensor, line(m, 0.0, with_place=False)) for m in source.moment()] for _ in range(500)]
        self._spoken = 0
        self._asked_at: dict[str, float] = {}
        self._waits: list[float] = found.steady
        self._answers = False

    async def play(self, port: int) -> None:
        """The two parts, one after the other."""
        async with Broker("127.0.0.1", port).linked(Link(self._hear, lambda: None)) as self._link:
            await self._link.subscribe("out/#", 0)
            await self._until_served()
            await self._steadily()
            await self._as_fast_as_it_goes()

    async def _until_served(self) -> None:
        end = time.monotonic() + 120
        # With several workers, until each of them has answered.
        while len(self._found.steady) < 50:
            assert time.monotonic() < end, "the gateway does not answer"
            for visit in range(10):
                self._speak(f"first {time.monotonic()} {visit}.0")
            await asyncio.sleep(0.5)
        self._found.steady.clear()
        self._asked_at.clear()

    async def _steadily(self) -> None:
        """So many subjects a second, one after the other: how long each waits."""
        rng, end = np.random.default_rng(1), time.monotonic() + STEADY_SECONDS
        while time.monotonic() < end:
            self._speak(self._names[rng.integers(len(self._names))])
            await asyncio.sleep(1 / STEADY_PER_SECOND)
        await asyncio.sleep(1)
        self._asked_at.clear()

    async def _as_fast_as_it_goes(self) -> None:
        """Everybody speaks again as soon as it was answered."""
        found, self._answers, self._waits = self._found, True, self._found.busy
        found.decided, started, cpu = 0, time.monotonic(), cpu_seconds(self._gateway)
        for name in self._names:
            self._speak(name)
        while time.monotonic() < started + SECONDS:
            await asyncio.sleep(0.2)
            self._replace_silent()
        found.seconds, found.cpu_seconds = time.monotonic() - started, cpu_seconds(self._gateway) - cpu
        found.megabytes = resident_mb(self._gateway)

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

    def _speak(self, name: str) -> None:
        self._spoken += 1
        self._asked_at[name] = time.monotonic()
        said = b'"time": %.6f' % time.time()
        for sensor, payload in self._moments[self._spoken % len(self._moments)]:
            self._link.publish(f"in/{name}/{sensor}", payload.replace(b'"time": 0.0', said))

    def _hear(self, message: Published) -> None:
        name = message.topic.removeprefix("out/")
        self._found.decided += 1
        asked = self._asked_at.get(name)
        if asked is None:
            return
        if json.loads(message.payload)["sensor"] == "stop":
            if self._answers:
                self._replace(name)
            return
        self._waits.append(time.monotonic() - asked)
        if self._answers:
            self._speak(name)


def _family(process: int) -> list[int]:
    """The process and those that it started."""
    return [process, *map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]


def resident_mb(process: int) -> float:
    """Of all processes of a gateway."""
    told = (Path(f"/proc/{each}/status").read_text() for each in _family(process))
    return sum(int(status.partition("VmRSS:")[2].split()[0]) for status in told) / 1024


def cpu_seconds(process: int) -> float:
    """What all processes of a gateway have taken so far."""
    told = (Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in _family(process))
    return sum(int(fields[11]) + int(fields[12]) for fields in told) / os.sysconf("SC_CLK_TCK")
