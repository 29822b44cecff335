"""Sensors and a provider on a broker, and a gateway between them."""

import asyncio
import json
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from reticent.gateway.mqtt import Broker, MqttService
from reticent.gateway.runtime import Runtime
from reticent.gateway.service import Gateway
from reticent.gateway.settings import Settings
from reticent.gateway.sqlite import SqliteLedger
from tests.gateway.parts import write_policy


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
        self.presence = []
        self.ready = threading.Event()
        self._client.on_subscribe = lambda *_: self.ready.set()
        self._client.connect("localhost" if "ca" in security else "127.0.0.1", port)
        self._client.loop_start()
        assert self.ready.wait(20)

    def _subscribe(self, client, *_) -> None:
        client.subscribe("#", 1)

    def _hear(self, client, userdata, message) -> None:
        if message.topic.startswith("out-gateway/"):
            self.presence.append((message.payload, message.retain))
        elif not message.topic.startswith("in/"):
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

        async def told(link):
            await subscribe(link)
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


@contextmanager
def running(tmp_path, mosquitto, **options):
    with closing(Running(tmp_path, Broker("127.0.0.1", mosquitto.port), **options)) as found:
        found.ready()
        with closing(Outside(mosquitto.port)) as outside:
            yield found, outside
