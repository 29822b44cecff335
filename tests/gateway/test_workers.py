"""Several processes on one machine: each subject is one worker's, whatever becomes of the workers."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.cli.serve import Serve
from reticent.errors import InputError
from reticent.gateway.ledger import LedgerTrouble
from reticent.gateway.runtime import Runtime
from reticent.gateway.share import Share
from reticent.gateway.sqlite import SqliteLedger
from reticent.gateway.verify import verify
from reticent.gateway.workers import orphaned, work_together
from tests.gateway.brokers import needs_mosquitto
from tests.gateway.on_broker import Outside, until
from tests.gateway.parts import Place, write_policy


@given(st.lists(st.text(), unique=True), st.integers(1, 9))
def test_every_subject_is_of_one_worker(names, workers):
    for name in names:
        assert [Share(index, workers).holds(name) for index in range(workers)].count(True) == 1


def test_workers_get_about_as_many_subjects():
    found = Counter(next(i for i in range(4) if Share(i, 4).holds(f"subject {n}")) for n in range(4_000))
    # Binomial, by far more than five standard deviations of 27.
    assert all(abs(found[i] - 1_000) < 200 for i in range(4))


def test_a_worker_does_not_send_what_another_has_decided(tmp_path):
    place = Place(tmp_path)
    names = [f"subject {i}" for i in range(12)]
    place.gateway.handle([place.message(name) for name in names])
    for index in range(2):
        share = Share(index, 2)
        place.again(share=share)
        again = [out.subject for out in place.gateway.resend()]
        assert 0 < len(again) < len(names)
        assert sorted(again) == sorted(name for name in names if share.holds(name))
    place.ledger.close()


def test_a_worker_writes_the_ledger_that_its_parent_has_locked(tmp_path):
    place = Place(tmp_path)
    place.tick()
    with SqliteLedger(place.where, worker=True) as ledger:
        last = ledger.last("ada")
        assert last is not None
        assert ledger.append([replace(last, number=1, before=last.hash)]) == [True]
        place.where.rename(tmp_path / "moved")
        with pytest.raises(LedgerTrouble, match="removed or replaced"):
            ledger.last("ada")
    place.ledger.close()


def stay(folder: Path, share: Share) -> None:
    """A worker that tells its name, and does nothing until it is asked to end."""
    folder.joinpath(str(share.index)).write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        time.sleep(0.05)


def test_a_worker_that_ends_is_started_again_and_all_end_together(tmp_path):
    killed = []

    def ended():
        told = {path.name: int(path.read_text() or 0) for path in tmp_path.iterdir()}
        if len(told) == 2 and not killed and all(told.values()):
            killed.append(told)
            os.kill(told["1"], signal.SIGKILL)
        return bool(killed) and told["1"] not in (0, killed[0]["1"])

    work_together(partial(stay, tmp_path), 2, ended)
    assert int((tmp_path / "0").read_text()) == killed[0]["0"]
    assert not multiprocessing.active_children()


def test_a_worker_notices_that_its_parent_is_gone():
    assert not orphaned(os.getppid())
    assert orphaned(os.getpid())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"workers": 0}, "at least 1"),
        ({"workers": 2}, "--on mqtt"),
        ({"workers": 2, "on": "mqtt", "page": ()}, "--page"),
    ],
)
def test_options_are_checked(options, sentence):
    with pytest.raises(InputError, match=sentence):
        Serve(Path("policy.safetensors"), **options).run()


@pytest.mark.slow
@needs_mosquitto
def test_workers_that_are_killed_lose_nothing_and_decide_nothing_twice(tmp_path, mosquitto):
    policy, ledger = write_policy(tmp_path / "policy.safetensors"), tmp_path / "ledger.db"
    words = [sys.executable, "-m", "reticent", "serve", str(policy), "--on", "mqtt", "--rest", "0", "--workers", "2"]
    words += ["--broker", f"127.0.0.1:{mosquitto.port}", "--ledger", str(ledger)]
    names, draw, kills = [f"subject {i}" for i in range(20)], random.Random(0), 0
    with closing(Outside(mosquitto.port)) as outside, subprocess.Popen(words, stderr=-3) as command:
        until(lambda: online(outside) >= 2, 60)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for name in names:
                outside.say(name)
            time.sleep(0.05)
            if draw.random() < 0.03 and (found := children(command.pid)):
                os.kill(draw.choice(found), signal.SIGKILL)
                kills += 1
        command.terminate()
        assert command.wait(40) == 0
        # What was decided last, and perhaps not delivered, comes with the next gateway.
        with subprocess.Popen(words, stderr=-3) as again:
            with SqliteLedger(ledger, read_only=True) as kept:
                until(lambda: not kept.undelivered().entries, 60)
            again.terminate()
    assert kills > 3
    with SqliteLedger(ledger, read_only=True) as found:
        assert verify(found, Runtime.load(policy)).fault is None
        on_disk = {(e.subject, e.session, e.step, e.sensor, e.symbol) for e in found.entries()}
    said = defaultdict(set)
    for topic, out, _ in outside.heard:
        if topic.startswith("out/"):
            place = (topic.removeprefix("out/"), out["session"], out["step"], out["sensor"] == "stop")
            said[place].add((out["sensor"], out.get("symbol")))
    assert all(len(same) == 1 for same in said.values())
    told = {(name, session, step, *next(iter(same))) for (name, session, step, _), same in said.items()}
    assert told == on_disk
    assert {name for name, *_ in on_disk} == set(names)


def online(outside):
    return sum(payload == b"online" for payload, _ in outside.presence)


def children(parent):
    """The workers of a gateway: the processes that it has started, but for the one that tracks them."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(each) for each in found if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
