"""Over a real broker: many subjects, garbage, a broker that dies, certificates and passwords."""

import asyncio
import base64
import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import aiomqtt
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from reticent.cli.broker import BrokerOptions
from reticent.cli.simulate import PaceOptions, Simulate
from reticent.errors import InputError
from reticent.gateway import mqtt
from reticent.gateway.messages import LONGEST_MESSAGE
from reticent.gateway.mqtt import Broker, Inbox, MqttService
from reticent.gateway.runtime import Runtime
from reticent.gateway.service import Gateway, Settings
from reticent.gateway.sqlite import SqliteLedger
from reticent.problem.bound import InformationBound
from reticent.problem.model import ReleaseModel
from reticent.problem.synthetic import two_binary_sensors
from tests.gateway.brokers import Mosquitto, needs_mosquitto
from tests.gateway.parts import Place, task, write_policy

pytestmark = needs_mosquitto


def until(condition, seconds=20.0):
    """Wait for something that must come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.01)


class Outside:
    """Sensors and a provider on the broker: publishes readings, hears releases."""

    def __init__(self, port: int, **security) -> None:
        self.heard: list[tuple[str, dict, bool]] = []
        self._now = 0.0
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        if "username" in security:
            self._client.username_pw_set(security["username"], security["password"])
        if "ca" in security:
            self._client.tls_set(security["ca"])
        self._client.on_message = self._hear
        self._client.on_connect = self._subscribe
        self._client.reconnect_delay_set(1, 1)
        self.ready = threading.Event()
        self._client.on_subscribe = lambda *_: self.ready.set()
        self._client.connect("localhost" if "ca" in security else "127.0.0.1", port)
        self._client.loop_start()
        assert self.ready.wait(20)

    def _subscribe(self, client, *_) -> None:
        client.subscribe("#", 1)

    def _hear(self, client, userdata, message) -> None:
        if not message.topic.startswith("in/"):
            self.heard.append((message.topic, json.loads(message.payload), message.retain))

    def say(self, subject="ada", sensor=None, payload=None, retain=False, symbol="1.87") -> None:
        for each in [sensor] if sensor else ("a0", "a1", "a2"):
            # Every reading is newer than the one before it.
            self._now = max(time.time(), self._now + 1e-6)
            said = json.dumps({"symbol": symbol, "time": self._now}) if payload is None else payload
            told = self._client.publish(f"in/{subject}/{each}", said, 1, retain)
            if retain:
                told.wait_for_publish(20)

    def releases(self, subject="ada") -> list[dict]:
        return [payload for topic, payload, _ in self.heard if topic == f"out/{subject}"]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class Running:
    """A gateway on a broker, in a thread."""

    def __init__(self, folder: Path, broker: Broker, what=None, home_assistant=False, **settings) -> None:
        path = folder / "policy.safetensors"
        if not path.exists():
            write_policy(path, what)
        self.ledger = SqliteLedger(folder / "ledger.db")
        self.gateway = Gateway(Runtime.load(path), self.ledger, Settings(path, **settings))
        self.service = MqttService(self.gateway, broker, home_assistant)
        self._end = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.service.serve(self._end.is_set)))
        self._connected = threading.Event()
        subscribe = self.service._subscribe

        async def told(client):
            await subscribe(client)
            self._connected.set()

        self.service._subscribe = told
        self._thread.start()

    def ready(self) -> None:
        assert self._connected.wait(20)

    def close(self) -> None:
        self._end.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.ledger.close()


@pytest.fixture
def mosquitto(tmp_path):
    with closing(Mosquitto(tmp_path)) as broker:
        yield broker


@contextmanager
def running(tmp_path, mosquitto, **options):
    with closing(Running(tmp_path, Broker("127.0.0.1", mosquitto.port), **options)) as found:
        found.ready()
        with closing(Outside(mosquitto.port)) as outside:
            yield found, outside


def test_many_subjects_end_to_end(tmp_path, mosquitto):
    names = [f"subject {i}" for i in range(30)]
    with running(tmp_path, mosquitto) as (service, outside):
        for _ in range(6):
            for name in names:
                outside.say(name)
        until(lambda: all(len(outside.releases(name)) == 5 for name in names))
        until(lambda: not service.gateway._under_way)
    for name in names:
        told = outside.releases(name)
        assert [out["step"] for out in told] == [0, 1, 2, 3, 4]
        assert told[-1] == {"session": 0, "step": 4, "sensor": "stop"}
        assert all(set(out) == {"session", "step", "sensor", "symbol"} for out in told[:-1])
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        assert ledger.undelivered() == []
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
    with running(tmp_path, mosquitto, what=task(InformationBound(100.0)), rest=0.0) as (service, outside):
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
        service.gateway.resume()
        outside.say()
        until(lambda: outside.releases())
        service.gateway.stop()
        until(lambda: not service._thread.is_alive())


def test_the_queue_is_bounded_and_what_does_not_fit_is_counted(tmp_path, mosquitto):
    inbox = Inbox(2)
    for _ in range(5):
        inbox.put_nowait(aiomqtt.Message("in/ada/a0", b"", 0, False, 0, None))
    assert inbox.qsize() == 2
    inbox.get_nowait()
    inbox.put_nowait(aiomqtt.Message("in/ada/a0", b"x" * (LONGEST_MESSAGE + 1), 0, False, 0, None))
    assert inbox.qsize() == 1
    assert inbox.dropped == {"overflow": 3, "oversized": 1}
    with running(tmp_path, mosquitto) as (service, outside):
        service.service._inbox.dropped["overflow"] = 7
        outside.say()
        until(lambda: outside.releases())
        assert service.gateway.counters["overflow"] == 7


class SlowLink:
    """A client whose link lets a few messages through, then none until it is connected anew; on one topic none."""

    def __init__(self, lets_through: int, deaf: str = "") -> None:
        self.left, self.deaf = lets_through, deaf
        self.through, self.under_way, self.most_under_way = [], 0, 0

    async def publish(self, topic, payload, qos) -> None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.left == 0 or topic == self.deaf:
            raise aiomqtt.MqttError("Operation timed out")
        self.left -= 1
        self.through.append((topic, payload))


def test_a_link_that_breaks_again_and_again_still_gets_everything_through(tmp_path, monkeypatch):
    monkeypatch.setattr(mqtt, "UNDER_WAY", 8)
    place = Place(tmp_path)
    place.gateway.handle([place.message(f"subject {i}") for i in range(30)])
    service, through, waits = MqttService(place.gateway, Broker()), [], []
    service._in_worker = at_once
    for _ in range(5):
        link, service._wait = cast(Any, SlowLink(7)), 4.0
        with suppress(aiomqtt.MqttError):
            asyncio.run(service._work(link, lambda: True))
        through += link.through
        waits.append(service._wait)
        assert link.most_under_way <= 8
    assert len(through) == len(set(through)) == 30
    assert place.ledger.undelivered() == []
    assert waits == [mqtt.FIRST_WAIT] * 5
    place.ledger.close()


def test_what_follows_one_that_failed_is_not_delivered(tmp_path):
    place = Place(tmp_path)
    place.gateway.handle([place.message(name) for name in ("ada", "bob")])
    service, link = MqttService(place.gateway, Broker()), cast(Any, SlowLink(9, deaf="out/ada"))
    service._in_worker = at_once
    service._wait = 4.0
    with pytest.raises(aiomqtt.MqttError):
        asyncio.run(service._work(link, lambda: True))
    assert len(place.ledger.undelivered()) == 2
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


def test_username_and_password(tmp_path, monkeypatch):
    hashed, secret = tmp_path / "passwords", "swordfish"
    hashed.write_text(_hashed("gate", secret))
    hashed.chmod(0o600)
    with closing(Mosquitto(tmp_path, "allow_anonymous false", f"password_file {hashed}")) as mosquitto:
        monkeypatch.setenv("RETICENT_MQTT_USERNAME", "gate")
        monkeypatch.setenv("RETICENT_MQTT_PASSWORD", "wrong")
        wrong = BrokerOptions(f"127.0.0.1:{mosquitto.port}").settings()
        with closing(Running(tmp_path, wrong)) as service:
            until(lambda: service.gateway.trouble)
            assert "credentials" in str(service.gateway.trouble)
            assert "wrong" not in str(service.gateway.trouble)
        monkeypatch.setenv("RETICENT_MQTT_PASSWORD", secret)
        right = BrokerOptions(f"127.0.0.1:{mosquitto.port}").settings()
        with closing(Running(tmp_path, right)) as service:
            service.ready()
            with closing(Outside(mosquitto.port, username="gate", password=secret)) as outside:
                outside.say()
                until(lambda: outside.releases())


def _hashed(user: str, password: str) -> str:
    """A line of mosquitto's password file: PBKDF2 with SHA-512."""
    salt, rounds = b"salt of test", 101
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, rounds, 64)
    return f"{user}:$7${rounds}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}\n"


# Of a handshake that failed, paho leaves the socket to be found later.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the certificates, is not installed")
def test_tls_with_an_authority_of_our_own(tmp_path):
    ca, key, request, certificate = (tmp_path / name for name in ("ca.pem", "key.pem", "request.pem", "cert.pem"))
    openssl = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ca_key, names = tmp_path / "ca-key.pem", tmp_path / "names"
    names.write_text("subjectAltName=DNS:localhost")
    authority = ["-x509", "-days", "2", "-subj", "/CN=test authority", "-keyout", ca_key, "-out", ca]
    sign = ["openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2"]
    for words in (
        [*openssl, *authority],
        [*openssl, "-subj", "/CN=localhost", "-keyout", key, "-out", request],
        [*sign, "-extfile", names, "-out", certificate],
    ):
        subprocess.run(words, check=True, capture_output=True)
    settings = ("allow_anonymous true", f"certfile {certificate}", f"keyfile {key}")
    with closing(Mosquitto(tmp_path, *settings)) as mosquitto:
        trusted = BrokerOptions(f"localhost:{mosquitto.port}", tls=ca).settings()
        with closing(Running(tmp_path, trusted)) as service:
            service.ready()
            with closing(Outside(mosquitto.port, ca=str(ca))) as outside:
                outside.say()
                until(lambda: outside.releases())
        # The certificate is not for this name.
        stranger = BrokerOptions(f"127.0.0.1:{mosquitto.port}", tls=ca).settings()
        with closing(Running(tmp_path, stranger)) as service:
            until(lambda: service.gateway.trouble)
            assert "certificate" in str(service.gateway.trouble)


def test_a_certificate_that_cannot_be_read_any_more_is_waited_for(tmp_path, monkeypatch):
    ca = tmp_path / "ca.pem"
    monkeypatch.setattr(mqtt, "_tls", lambda ca: None)
    broker = Broker("127.0.0.1", 1, ca=ca)
    monkeypatch.undo()
    with closing(Running(tmp_path, broker)) as service:
        until(lambda: service.gateway.trouble)
        assert "cannot be read as a certificate" in str(service.gateway.trouble)
        assert service._thread.is_alive()


def test_simulated_sensors_on_the_broker(tmp_path, mosquitto):
    with running(tmp_path, mosquitto) as (service, outside):
        options = BrokerOptions(f"127.0.0.1:{mosquitto.port}")
        pace = PaceOptions(interval=0.01, readings=8, pause=0.0)
        Simulate("synthetic", subjects=3, episodes=1, pace=pace, on="mqtt", mqtt=options).run()
        until(lambda: all(len(outside.releases(f"person {i}")) == 5 for i in (1, 2, 3)))
        assert service.gateway.counters["received"] == 3 * 3 * 8


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
    named = ReleaseModel(model.prior, model.channel, model.secrets, model.useful, ("a/b", "c"), model.symbols)
    place = Place(tmp_path, task(InformationBound(0.5), model=named))
    with pytest.raises(InputError, match="rename"):
        MqttService(place.gateway, Broker())
    place.ledger.close()
