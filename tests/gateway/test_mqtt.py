"""Over a real broker: many subjects, garbage, a broker that dies."""

import asyncio
import json
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing, suppress

import pytest

from reticent.cli.broker import BrokerOptions
from reticent.cli.simulate import PaceOptions, Simulate
from reticent.errors import InputError
from reticent.gateway import mqtt
from reticent.gateway.link import LONGEST_PACKET, BrokerTrouble, Link, Published
from reticent.gateway.messages import LONGEST_MESSAGE
from reticent.gateway.mqtt import Broker, Inbox, MqttService
from reticent.gateway.sqlite import SqliteLedger
from reticent.problem.bound import Information
from reticent.problem.model import Model
from reticent.problem.synthetic import two_binary_sensors
from tests.gateway.brokers import needs_mosquitto
from tests.gateway.on_broker import Outside, Running, running, until
from tests.gateway.parts import Place, task, write_policy

pytestmark = [pytest.mark.slow, needs_mosquitto]


def test_many_subjects_end_to_end(tmp_path, mosquitto):
    names = [f"subject {i}" for i in range(30)]
    with running(tmp_path, mosquitto) as (service, outside):
        for _ in range(6):
            for name in names:
                outside.say(name)
        until(lambda: all(len(outside.releases(name)) == 5 for name in names))
        until(lambda: len(service.gateway._outbox) == 0)
    for name in names:
        told = outside.releases(name)
        assert [out["step"] for out in told] == [0, 1, 2, 3, 4]
        assert told[-1] == {"session": 0, "step": 4, "sensor": "stop"}
        assert all(set(out) == {"session", "step", "sensor", "symbol"} for out in told[:-1])
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        assert ledger.undelivered().entries == []
        on_disk = [(e.subject, e.step, e.sensor, e.symbol) for e in ledger.entries()]
    said = [
        (name, out["step"], out["sensor"], out.get("symbol"))
        for name in sorted(names)
        for out in outside.releases(name)
    ]
    assert said == on_disk


def test_garbage_and_odd_topics_are_counted_and_do_no_harm(tmp_path, mosquitto):
    with running(tmp_path, mosquitto) as (service, outside):
        counters = service.gateway.counters
        outside.say(payload=b"\xff\x00", sensor="a0")
        outside.say(payload=b"", sensor="a0")
        outside.say(payload=b'{"symbol": NaN}', sensor="a0")
        outside.say(payload=b'{"symbol": "1.87", "subject": "bob"}', sensor="a0")
        outside.say(payload=b"x" * (LONGEST_MESSAGE + 1), sensor="a0")
        outside.say(payload=b'{"symbol": "1.87"}', sensor="a0")
        outside.say("", sensor="a0")
        outside.say(" ada", sensor="a0")
        outside.say("ada", sensor="nose")
        outside.say("a/b", sensor="a0")
        outside._client.publish("in/ada", '{"symbol": "1.87"}', 1)
        until(lambda: counters["malformed"] == 7 and counters["oversized"] == 1 and counters["unknown"] == 1)
        outside.say()
        until(lambda: outside.releases())
        assert service.gateway.trouble is None
        until(lambda: counters["received"] == 9 + 3)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_packet_that_is_far_too_long_does_not_even_come(tmp_path, mosquitto, qos):
    broker = Broker("127.0.0.1", mosquitto.port, qos=qos)
    with closing(Running(tmp_path, broker)) as service, closing(Outside(mosquitto.port)) as outside:
        service.ready()
        for payload in (b"x" * LONGEST_PACKET, b"x" * (LONGEST_PACKET // 2)):
            outside._client.publish("in/ada/a0", payload, qos)
        outside.say()
        until(lambda: outside.releases())
        assert service.gateway.trouble is None
        until(lambda: service.gateway.counters["received"] == 1 + 3)
        assert service.gateway.counters["oversized"] == 1


def test_retained_readings_are_not_used(tmp_path, mosquitto):
    with closing(Outside(mosquitto.port)) as outside:
        outside.say(retain=True)
    with running(tmp_path, mosquitto) as (service, outside):
        until(lambda: service.gateway.counters["retained"] == 3)
        outside.say("bob")
        until(lambda: outside.releases("bob"))
        assert outside.releases("ada") == []
        assert not any(retain for topic, _, retain in outside.heard if topic.startswith("out"))


def test_a_broker_that_dies_loses_nothing_and_repeats_nothing_else(tmp_path, mosquitto):
    with running(tmp_path, mosquitto, what=task(Information(100.0)), rest=0.0) as (service, outside):
        outside.say()
        until(lambda: outside.releases())
        mosquitto.kill()
        until(lambda: service.gateway.trouble)
        assert "broker" in str(service.gateway.trouble)
        assert f"127.0.0.1:{mosquitto.port}" in str(service.gateway.trouble)
        mosquitto.start()
        until(lambda: service.gateway.trouble is None)

        def speak():
            outside.say()
            return len({(out["session"], out["step"]) for out in outside.releases()}) > 8

        until(speak)
    by_place = defaultdict(set)
    for out in outside.releases():
        by_place[out["session"], out["step"], out["sensor"] == "stop"].add(json.dumps(out))
    assert all(len(same) == 1 for same in by_place.values())


def test_what_was_decided_but_not_delivered_is_sent_after_reconnecting(tmp_path, mosquitto):
    """The broker dies between the ledger and the publishing: the release is on disk, and comes later, unchanged."""
    with running(tmp_path, mosquitto) as (service, outside):
        handle = service.gateway.handle

        def deadly(messages):
            sent = handle(messages)
            if sent and mosquitto._process is not None and not dead:
                dead.append(sent[0])
                mosquitto.kill()
            return sent

        dead = []
        service.gateway.handle = deadly
        outside.say()
        until(lambda: dead)
        until(lambda: service.gateway.trouble)
        assert outside.releases() == []
        # The provider is back first: nobody keeps for it what it would miss.
        service.gateway.pause()
        outside.ready.clear()
        mosquitto.start()
        assert outside.ready.wait(30)
        service.gateway.resume()
        until(lambda: outside.releases())
        expected = json.loads(dead[0].to_json(with_subject=False))
        assert outside.releases()[0] == expected


def test_after_a_restart_what_was_not_delivered_comes_first(tmp_path, mosquitto):
    place = Place(tmp_path)
    [lost] = place.gateway.handle([place.message()])
    place.ledger.close()
    with closing(Outside(mosquitto.port)) as outside:
        with closing(Running(tmp_path, Broker("127.0.0.1", mosquitto.port))):
            until(lambda: outside.releases())
        assert outside.releases() == [json.loads(lost.to_json(with_subject=False))]


def test_pausing_holds_back_and_stopping_ends(tmp_path, mosquitto):
    with running(tmp_path, mosquitto) as (service, outside):
        service.gateway.pause()
        outside.say()
        until(lambda: service.gateway.counters["paused"] == 3)
        assert outside.releases() == []
        service.gateway.resume()
        outside.say()
        until(lambda: outside.releases())
        service.gateway.stop()
        until(lambda: not service._thread.is_alive())
        assert service.gateway.stopped


def test_the_queue_is_bounded_and_what_does_not_fit_is_counted(tmp_path, mosquitto):
    inbox = Inbox(2)
    for _ in range(5):
        inbox.put(Published("in/ada/a0", b"", False))
    assert len(inbox) == 2
    assert len(inbox.empty_out(1)) == 1
    inbox.put(Published("in/ada/a0", b"x" * (LONGEST_MESSAGE + 1), False))
    assert len(inbox) == 1
    assert inbox.dropped == {"overflow": 3, "oversized": 1}
    with running(tmp_path, mosquitto) as (service, outside):
        service.service._inbox.dropped["overflow"] = 7
        outside.say()
        until(lambda: outside.releases())
        assert service.gateway.counters["overflow"] == 7


class SlowLink(Link):
    """A link that lets a few messages through, then none until it is connected anew; on one topic none."""

    def __init__(self, lets_through: int, deaf: str = "") -> None:
        self.left, self.deaf = lets_through, deaf
        self.through, self.under_way, self.most_under_way = [], 0, 0

    def publish(self, topic, payload, qos=0, retain=False):
        return asyncio.ensure_future(self._published(topic, payload))

    async def _published(self, topic, payload) -> None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.left == 0 or topic == self.deaf:
            raise BrokerTrouble("it does not answer")
        self.left -= 1
        self.through.append((topic, payload))


def test_a_link_that_breaks_again_and_again_still_gets_everything_through(tmp_path, monkeypatch):
    monkeypatch.setattr(mqtt, "UNDER_WAY", 8)
    place = Place(tmp_path)
    place.gateway.handle([place.message(f"subject {i}") for i in range(30)])
    service, through, waits = MqttService(place.gateway, Broker()), [], []
    service._in_worker = at_once
    for _ in range(5):
        link, service._wait = SlowLink(7), 4.0
        with suppress(BrokerTrouble):
            asyncio.run(service._work(link, lambda: True))
        through += link.through
        waits.append(service._wait)
        assert link.most_under_way <= 8
    assert len(through) == len(set(through)) == 30
    assert place.ledger.undelivered().entries == []
    assert waits == [mqtt.FIRST_WAIT] * 5
    place.ledger.close()


def test_what_follows_one_that_failed_is_not_delivered(tmp_path):
    place = Place(tmp_path)
    place.gateway.handle([place.message(name) for name in ("ada", "bob")])
    service, link = MqttService(place.gateway, Broker()), SlowLink(9, deaf="out/ada")
    service._in_worker = at_once
    service._wait = 4.0
    with pytest.raises(BrokerTrouble):
        asyncio.run(service._work(link, lambda: True))
    assert len(place.ledger.undelivered().entries) == 2
    assert service._wait == 4.0
    place.ledger.close()


async def at_once(call):
    return call()


def test_home_assistant_hears_only_what_was_released(tmp_path, mosquitto):
    with running(tmp_path, mosquitto, home_assistant=True) as (service, outside):
        outside.say("Ada L.")
        until(lambda: any(topic == "out-state/Ada L." for topic, _, _ in outside.heard))
        told = {topic: payload for topic, payload, _ in outside.heard}
        configs = {topic: payload for topic, payload in told.items() if topic.startswith("homeassistant/")}
        assert len(configs) == 3
        for topic, config in configs.items():
            assert topic.endswith("/config")
            assert topic.split("/")[2].replace("_", "").replace("-", "").isalnum()
            assert config["state_topic"] == "out-state/Ada L."
            assert config["device"]["identifiers"] == [topic.split("/")[2]]
        assert len({config["unique_id"] for config in configs.values()}) == 3
        state = told["out-state/Ada L."]
        assert set(state) == {"symbol", "sensor", "likeliest", "chances", "left"}
        assert set(state["chances"]) == set(service.gateway.runtime.task.model.useful)
        for secret in service.gateway.runtime.task.model.secrets:
            assert secret not in json.dumps([state, configs])


def test_simulated_sensors_on_the_broker(tmp_path, mosquitto):
    with running(tmp_path, mosquitto) as (service, outside):
        options = BrokerOptions(f"127.0.0.1:{mosquitto.port}")
        pace = PaceOptions(interval=0.01, readings=8, pause=0.0)
        Simulate("synthetic", subjects=3, episodes=1, pace=pace, on="mqtt", mqtt=options).run()
        until(lambda: all(len(outside.releases(f"person {i}")) == 5 for i in (1, 2, 3)))
        until(lambda: service.gateway.counters["received"] == 3 * 3 * 8)


def test_the_command(tmp_path, mosquitto):
    policy = write_policy(tmp_path / "policy.safetensors")
    words = [sys.executable, "-m", "reticent", "serve", str(policy), "--on", "mqtt", "--broker"]
    with (
        closing(Outside(mosquitto.port)) as outside,
        subprocess.Popen([*words, f"127.0.0.1:{mosquitto.port}"], stdout=-1, stderr=-1) as command,
    ):

        def speak():
            outside.say()
            time.sleep(0.1)
            return outside.releases()

        until(speak, 60)
        command.terminate()
        out, err = command.communicate(timeout=30)
        assert command.returncode == 0
        assert out == b""
        assert b"ended" in err


def test_a_sensor_that_no_topic_can_name_is_refused(tmp_path):
    model = two_binary_sensors()
    named = Model(model.prior, model.channel, model.secrets, model.useful, ("a/b", "c"), model.symbols)
    place = Place(tmp_path, task(Information(0.5), model=named))
    with pytest.raises(InputError, match="rename"):
        MqttService(place.gateway, Broker())
    place.ledger.close()


def test_who_is_connected_is_told(tmp_path, mosquitto):
    # Retained: the provider came later than the gateway.
    with running(tmp_path, mosquitto) as (service, outside):
        until(lambda: outside.presence == [(b"online", True)])
        service._end.set()
        until(lambda: outside.presence[1:] == [(b"offline", False)])
