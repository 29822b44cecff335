"""kill -9 at any moment: what came out is on disk, nothing is told twice in two ways, the bound holds."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from reticent.gateway.decisions import Standing
from reticent.gateway.entry import Entry
from reticent.gateway.messages import Outgoing
from reticent.gateway.runtime import Runtime
from reticent.gateway.simulate import Drawn, line
from reticent.gateway.sqlite import SqliteLedger
from reticent.gateway.standing import standing_of
from reticent.gateway.verify import verify
from reticent.problem.bound import Confidence, Information
from reticent.problem.merging import BLEND
from reticent.problem.task import Task
from tests.gateway.parts import coarsened, follow, task, write_policy

SUBJECTS = 6


class Victim:
    """`reticent serve` on one ledger, killed again and again; everything that ever came out of it is kept."""

    def __init__(self, folder: Path, what: Task) -> None:
        self.policy = write_policy(folder / "policy.safetensors", what)
        self.where = folder / "ledger.db"
        self.runtime = Runtime.load(self.policy)
        self.limit = what.bound
        self.said: dict[tuple[str, int, int, bool], bytes] = {}
        self._on_disk: dict[tuple[str, int, int, bool], bytes] = {}
        self._checked: dict[str, tuple[int, str, Standing]] = {}
        self._model, self._runs = what.model, 0
        self._names: list[str] = []

    def run(self, seconds: float) -> int:
        """Feed readings as fast as they are taken, kill after so many seconds of releasing; how many came out."""
        words = [sys.executable, "-m", "reticent", "serve", self.policy, "--ledger", self.where, "--rest", "0.02"]
        # Each time somebody new, of whom nothing is known yet: there is always something left to say.
        self._runs += 1
        self._names = [f"subject {self._runs + i}" for i in range(SUBJECTS)]
        source = Drawn(self._model, self._names, seed=self._runs)
        out: list[bytes] = []
        with subprocess.Popen(words, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, bufsize=0) as process:
            first = threading.Event()
            hearing = threading.Thread(target=self._hear, args=(process, out, first))
            feeding = threading.Thread(target=self._feed, args=(process, source))
            hearing.start()
            feeding.start()
            assert first.wait(60), "nothing came out"
            time.sleep(seconds)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            feeding.join()
            hearing.join()
        # Of the last line perhaps only a part came out; it comes whole after the restart.
        for each in filter(None, b"".join(out).split(b"\n")[:-1]):
            self._remember(each)
        return len(out)

    def _feed(self, process: subprocess.Popen, source: Drawn) -> None:
        assert process.stdin is not None
        try:
            for moment in range(10**9):
                if moment % 20 == 19:
                    source.begin()
                readings = b"".join(line(message, time.time()) + b"\n" for message in source.moment())
                process.stdin.write(readings)
        except (BrokenPipeError, ValueError):
            pass

    def _hear(self, process: subprocess.Popen, out: list[bytes], first: threading.Event) -> None:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), 65_536):
            out.append(piece)
            first.set()

    def _remember(self, said: bytes) -> None:
        out = json.loads(said)
        place = (out["subject"], out["session"], out["step"], out["sensor"] == "stop")
        # What is told again is told in the same bytes.
        assert self.said.setdefault(place, said) == said

    def check(self) -> int:
        """What is new in the ledger continues it, everything that came out is there, and the bound holds."""
        with SqliteLedger(self.where, read_only=True) as ledger:
            for subject in self._names:
                number, before, standing = self._checked.get(subject, (-1, "", self.runtime.first()))
                for entry in islice(ledger.entries(subject), number + 1, None):
                    assert (entry.number, entry.before) == (number + 1, before)
                    number, before, standing = entry.number, entry.hash, self._follow(standing, entry)
                    place = (subject, entry.session, entry.step, entry.symbol is None)
                    assert place not in self._on_disk
                    self._on_disk[place] = _bytes(entry)
                self._checked[subject] = number, before, standing
        assert {place: said for place, said in self.said.items() if self._on_disk.get(place) != said} == {}
        return len(self._on_disk)

    def _follow(self, standing: Standing, entry: Entry) -> Standing:
        """The standing recomputed from what was sent alone: the stored one, and within the bound."""
        if entry.session > standing.session:
            standing = self.runtime.next_session(standing)
        if entry.symbol is not None:
            assert (entry.session, entry.step) == (standing.session, standing.step)
            standing = follow(self.runtime, standing, entry)
        stored = standing_of(entry)
        assert np.allclose(stored.belief, standing.belief, rtol=0, atol=1e-9)
        # A rule that was found with others of its batch may differ by what may be blended in: see `verify`.
        assert stored.spent_bits == pytest.approx(standing.spent_bits, abs=1e-9 if entry.chances is None else BLEND)
        assert (stored.session, stored.step) == (standing.session, standing.step)
        if isinstance(self.limit, Confidence):
            assert entry.confidence < self.limit.limit
        else:
            assert isinstance(self.limit, Information)
            assert entry.spent_bits < self.limit.bits
        return stored


def _bytes(entry: Entry) -> bytes:
    return Outgoing(entry.subject, entry.session, entry.step, entry.sensor, entry.symbol).to_json()


def torture(folder: Path, what: Task, kills: int) -> None:
    victim, draw = Victim(folder, what), random.Random(1)
    for _ in range(kills):
        assert victim.run(draw.uniform(0, 0.2)) > 0
        victim.check()
    assert len(victim.said) > kills
    # A last time, and this time all of it, by the code that operators use.
    with SqliteLedger(victim.where, read_only=True) as ledger:
        assert verify(ledger).fault is None


def generous(horizon: int) -> Task:
    """So much may be said that there is always something to release."""
    return task(Information(1000.0), "mask", horizon)


def test_ten_kills(tmp_path):
    torture(tmp_path, generous(6), 10)


@pytest.mark.slow
def test_seventy_kills(tmp_path):
    torture(tmp_path, generous(6), 70)


@pytest.mark.slow
def test_fifty_kills_while_readings_are_merged(tmp_path):
    torture(tmp_path, coarsened(6), 50)
