"""Gateways on several machines share the readings of one broker, and one ledger."""

import random
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing

import pytest

from reticent.errors import InputError
from reticent.gateway.mqtt import Broker, MqttService
from reticent.gateway.opening import open_ledger
from reticent.gateway.runtime import Runtime
from reticent.gateway.verify import verify
from tests.gateway.brokers import needs_mosquitto
from tests.gateway.on_broker import Outside, until
from tests.gateway.parts import write_policy


def test_a_group_needs_a_ledger_for_all(place):
    with pytest.raises(InputError, match="PostgreSQL"):
        MqttService(place.gateway, Broker(group="fleet"))
    for name in ("", "a/b", "#", "a\n"):
        with pytest.raises(InputError, match="no name of a group"):
            Broker(group=name)


def heard_of(outside):
    """What was told at each place: subject, session, step, and whether it is a stop."""
    said = defaultdict(set)
    for topic, out, _ in outside.heard:
        if topic.startswith("out/"):
            place = (topic.removeprefix("out/"), out["session"], out["step"], out["sensor"] == "stop")
            said[place].add((out["sensor"], out.get("symbol")))
    return said


@pytest.mark.slow
@needs_mosquitto
def test_gateways_that_share_readings_and_are_killed_lose_nothing_and_say_nothing_twice(tmp_path, mosquitto, postgres):
    policy, where = write_policy(tmp_path / "policy.safetensors"), postgres.place().where
    words = [sys.executable, "-m", "reticent", "serve", str(policy), "--on", "mqtt", "--share", "fleet", "--rest", "0"]
    words += ["--broker", f"127.0.0.1:{mosquitto.port}", "--ledger", where]
    names, draw, kills = [f"subject {i}" for i in range(10)], random.Random(1), 0

    def begun():
        return subprocess.Popen(words, stderr=-3)

    with closing(Outside(mosquitto.port)) as outside:
        gateways = [begun(), begun()]
        try:
            until(lambda: sum(payload == b"online" for payload, _ in outside.presence) >= 2, 60)
            end = time.monotonic() + 25
            while time.monotonic() < end:
                for name in names:
                    outside.say(name)
                time.sleep(0.1)
                if draw.random() < 0.02:
                    which, kills = draw.randrange(2), kills + 1
                    gateways[which].kill()
                    gateways[which].wait()
                    gateways[which] = begun()
            with open_ledger(where, read_only=True) as ledger:
                until(lambda: len({name for name, *_ in heard_of(outside)}) == len(names), 60)
                until(lambda: not ledger.undelivered().entries, 90)
        finally:
            for gateway in gateways:
                gateway.terminate()
                gateway.wait(60)
        said = heard_of(outside)
    assert kills > 1
    assert all(len(same) == 1 for same in said.values())
    with open_ledger(where, read_only=True) as ledger:
        assert verify(ledger, Runtime.load(policy)).fault is None
        on_disk = {(e.subject, e.session, e.step, e.sensor, e.symbol) for e in ledger.entries()}
    assert {(name, session, step, *next(iter(same))) for (name, session, step, _), same in said.items()} == on_disk
