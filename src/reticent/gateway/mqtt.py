"""Readings from topics in/<subject>/<sensor>, releases to out/<subject>, through an MQTT broker.

What has queued up is handled together, in one transaction of the ledger, in a thread of its own. While the broker is
gone nothing is decided. What was decided, and perhaps not delivered, is sent again on reconnecting: the same bytes.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from reticent.errors import InputError
from reticent.gateway.home_assistant import HomeAssistant
from reticent.gateway.messages import LONGEST_MESSAGE, RESERVED, Message, Outgoing, Reason, Refused, parse_payload
from reticent.gateway.service import Gateway
from reticent.gateway.simulate import line

try:
    import aiomqtt
except ImportError as error:
    raise InputError("MQTT needs the package aiomqtt: pip install 'reticent[mqtt]'.") from error

_log = logging.getLogger("reticent.gateway")

IDLE_SECONDS = 0.25
ANSWER_SECONDS, KEEP_ALIVE_SECONDS = 5.0, 20
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
LARGEST_BATCH, LARGEST_QUEUE = 1_000, 10_000
UNDER_WAY = 200
# Messages are small: held back until the one before is acknowledged, each would wait for the peer's delay.
AT_ONCE = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
# What a broker answers to a subscription that it does not allow.
REFUSED = 0x80
T = TypeVar("T")


@dataclass(frozen=True)
class Broker:
    """Where the broker is, and how to talk to it. `ca`: a file with the authority that signed its certificate."""

    host: str = "localhost"
    port: int = 1883
    in_topic: str = "in"
    out_topic: str = "out"
    qos: int = 1
    ca: Path | None = None
    username: str | None = None
    password: str | None = None

    def __post_init__(self) -> None:
        for topic in (self.in_topic, self.out_topic):
            if not topic or not topic.isprintable() or set("+#") & set(topic) or "" in topic.split("/"):
                raise InputError(f"{topic!r} is no topic to put names under: no + or #, no / at the ends.")
        if self.qos not in (0, 1, 2):
            raise InputError(f"--qos is 0, 1 or 2, not {self.qos}.")
        ours, theirs = self.in_topic + "/", self.out_topic + "/"
        if ours.startswith(theirs) or theirs.startswith(ours):
            raise InputError("--in-topic and --out-topic lie within each other: what goes out would come in again.")
        if self.ca is not None:
            _tls(self.ca)

    def client(self, **options: Any) -> aiomqtt.Client:
        """A client that is not yet connected."""
        client = aiomqtt.Client(
            self.host,
            self.port,
            username=self.username,
            password=self.password,
            tls_context=None if self.ca is None else _tls(self.ca),
            timeout=ANSWER_SECONDS,
            keepalive=KEEP_ALIVE_SECONDS,
            max_inflight_messages=UNDER_WAY,
            socket_options=[AT_ONCE],
            **options,
        )
        client.pending_calls_threshold = 10 * LARGEST_BATCH
        return client


# Whether a gateway is connected: retained, so that who comes later knows.
ONLINE, OFFLINE = b"online", b"offline"

DROPPED: dict[Reason, str] = {
    "oversized": f"a message is longer than {LONGEST_MESSAGE} bytes",
    "overflow": "readings come faster than they are handled",
}


class Inbox(asyncio.Queue[aiomqtt.Message]):
    """What has come and was not yet handled: bounded, and so is each message. What does not fit in is counted."""

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        self.dropped = dict.fromkeys(DROPPED, 0)

    def put_nowait(self, item: aiomqtt.Message) -> None:
        if isinstance(item.payload, bytes) and len(item.payload) > LONGEST_MESSAGE:
            self.dropped["oversized"] += 1
        elif self.full():
            self.dropped["overflow"] += 1
        else:
            super().put_nowait(item)

    def empty_out(self, most: int) -> list[aiomqtt.Message]:
        """What is there now."""
        return [self.get_nowait() for _ in range(min(self.qsize(), most))]


class MqttService:
    """A gateway on a broker."""

    def __init__(self, gateway: Gateway, broker: Broker, home_assistant: bool = False) -> None:
        for sensor in gateway.runtime.sensors:
            if RESERVED & set(sensor):
                raise InputError(f"Sensor {sensor!r} has one of / + # in its name, so no topic can name it: rename it.")
        self._gateway, self._broker = gateway, broker
        self._home = HomeAssistant(gateway, f"{broker.out_topic}-state") if home_assistant else None
        # The ledger belongs to one thread.
        self._worker = ThreadPoolExecutor(1, "gateway")
        self._inbox = Inbox(LARGEST_QUEUE)
        # Before connecting again: it grows until something gets through.
        self._wait = FIRST_WAIT
        self._presence = f"{broker.out_topic}-gateway/{socket.gethostname()}"

    async def serve(self, ended: Callable[[], bool]) -> None:
        """Until it is time to end, or the gateway is stopped; reconnects for as long as that takes."""
        try:
            while not self._over(ended):
                try:
                    async with self._client() as client:
                        await self._subscribe(client)
                        await client.publish(self._presence, ONLINE, 1, True)
                        self._gateway.report("broker", None)
                        await self._work(client, ended)
                        await client.publish(self._presence, OFFLINE, 1, True)
                except aiomqtt.MqttError as error:
                    self._gateway.report("broker", self._sentence(error))
                    self._inbox.empty_out(LARGEST_QUEUE)
                    await self._pause(self._wait, ended)
                    self._wait = min(2 * self._wait, LONGEST_WAIT)
        finally:
            await self._in_worker(self._gateway.remember)
            self._worker.shutdown()

    def _client(self) -> aiomqtt.Client:
        try:
            # The client calls this to make its queue: it gets the one that outlives connections.
            # The broker publishes the will once it has lost the gateway.
            will = aiomqtt.Will(self._presence, OFFLINE, 1, True)
            return self._broker.client(queue_type=lambda maxsize: self._inbox, will=will)
        except InputError as error:
            # The certificate was fine at the start, so it is waited for like the broker.
            raise aiomqtt.MqttError(str(error)) from error

    def _over(self, ended: Callable[[], bool]) -> bool:
        return ended() or self._gateway.stopped

    async def _pause(self, seconds: float, ended: Callable[[], bool]) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while not self._over(ended) and asyncio.get_running_loop().time() < end:
            await self._in_worker(self._gateway.remember)
            await asyncio.sleep(min(seconds, IDLE_SECONDS))

    async def _subscribe(self, client: aiomqtt.Client) -> None:
        topic = f"{self._broker.in_topic}/+/+"
        granted = await client.subscribe(topic, self._broker.qos)
        if any((code if isinstance(code, int) else code.value) >= REFUSED for code in granted):
            raise aiomqtt.MqttError(f"it does not let us subscribe to {topic}")

    async def _work(self, client: aiomqtt.Client, ended: Callable[[], bool]) -> None:
        """Handle what comes, batch after batch."""
        if self._home:
            self._home.announce_again()
        await self._send(client, await self._in_worker(self._gateway.resend))
        self._wait = FIRST_WAIT
        while not self._over(ended):
            raw = await self._next(client)
            await self._send(client, await self._in_worker(lambda: self._handle(raw)))  # noqa: B023

    async def _in_worker(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    async def _next(self, client: aiomqtt.Client) -> list[aiomqtt.Message]:
        """At least one message, unless nothing comes for a while; and whatever else has queued up."""
        try:
            first = await asyncio.wait_for(anext(client.messages), IDLE_SECONDS)
        except TimeoutError:
            return []
        return [first, *self._inbox.empty_out(LARGEST_BATCH - 1)]

    def _handle(self, raw: Sequence[aiomqtt.Message]) -> list[Outgoing]:
        for reason, why in DROPPED.items():
            if times := self._inbox.dropped[reason]:
                self._inbox.dropped[reason] -= times
                self._gateway.refuse(Refused(reason, why), times)
        messages = []
        for each in raw:
            try:
                messages.append(self._message(each))
            except Refused as refused:
                self._gateway.refuse(refused)
        return self._gateway.handle(messages)

    def _message(self, raw: aiomqtt.Message) -> Message:
        if raw.retain:
            # The broker kept it for whoever comes: nobody knows how old it is.
            raise Refused("retained", "a reading was published as retained")
        subject, _, sensor = raw.topic.value.removeprefix(self._broker.in_topic + "/").partition("/")
        payload = raw.payload if isinstance(raw.payload, bytes) else b""
        return parse_payload(subject, sensor, payload)

    async def _send(self, client: aiomqtt.Client, sent: list[Outgoing]) -> None:
        """Publish in order, no more at once than may be under way, so that the last one has as long as the first."""
        for start in range(0, len(sent), UNDER_WAY):
            await self._send_some(client, sent[start : start + UNDER_WAY])

    async def _send_some(self, client: aiomqtt.Client, sent: list[Outgoing]) -> None:
        """Those before the first that failed count as delivered: on a link so slow that it fails again and again all
        get through in the end. Not those after it: a later one must not vouch for an earlier one of the same subject.
        """
        told = await asyncio.gather(*(self._publish(client, out) for out in sent), return_exceptions=True)
        failed = next((index for index, error in enumerate(told) if error is not None), None)
        arrived = sent[:failed]
        if arrived:
            await self._in_worker(lambda: self._gateway.delivered(arrived))
            self._wait = FIRST_WAIT
        if self._home and arrived:
            await _all(client.publish(*each, 0, True) for each in self._home.news(arrived))
        if failed is not None and (error := told[failed]) is not None:
            raise error

    async def _publish(self, client: aiomqtt.Client, out: Outgoing) -> None:
        topic = f"{self._broker.out_topic}/{out.subject}"
        await client.publish(topic, out.to_json(with_subject=False), self._broker.qos)

    def _sentence(self, error: aiomqtt.MqttError) -> str:
        return (
            f"No connection to the broker {self._broker.host}:{self._broker.port} ({error}). See that it runs, that "
            "host, port, certificate and credentials are right; it is tried again and again."
        )


async def _all(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All of them, begun in order; then the first error, if there is one."""
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _tls(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"--tls {str(ca)!r} cannot be read as a certificate: {error}.") from error


async def publish_all(broker: Broker, play: Callable[[Callable[[list[Message]], None]], None]) -> None:
    """Publish readings for gateways on this broker: `play` sends them, from a thread of its own."""
    loop = asyncio.get_running_loop()
    try:
        async with broker.client() as client:

            def send(messages: list[Message]) -> None:
                now = time.time()
                calls = [(f"{broker.in_topic}/{m.subject}/{m.sensor}", line(m, now, False)) for m in messages]
                sent = _all(client.publish(topic, payload, broker.qos) for topic, payload in calls)
                asyncio.run_coroutine_threadsafe(sent, loop).result()

            await loop.run_in_executor(None, play, send)
    except aiomqtt.MqttError as error:
        raise InputError(f"No connection to the broker {broker.host}:{broker.port}: {error}.") from error
