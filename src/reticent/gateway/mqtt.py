"""Readings from topics in/<subject>/<sensor>, releases to out/<subject>, through an MQTT broker.

What has queued up is handled together, in one transaction of the ledger, in a thread of its own. While the broker is
gone nothing is decided. What was decided, and perhaps not delivered, is sent again on reconnecting: the same bytes.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reticent.errors import InputError
from reticent.gateway.home_assistant import HomeAssistant
from reticent.gateway.link import ANSWER_SECONDS, SILENT, Address, BrokerTrouble, Link, Published, Will, linked
from reticent.gateway.messages import LONGEST_MESSAGE, RESERVED, Message, Outgoing, Reason, Refused, parse_payload
from reticent.gateway.service import Gateway
from reticent.gateway.simulate import line

_log = logging.getLogger("reticent.gateway")

IDLE_SECONDS = 0.25
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
LARGEST_BATCH, LARGEST_QUEUE = 1_000, 10_000
UNDER_WAY = 200
# What a broker answers to a subscription that it does not allow.
REFUSED = 0x80
T = TypeVar("T")


@dataclass(frozen=True)
class Broker:
    """Where the broker is, and how to talk to it. `ca`: a file with the authority that signed its certificate.

    `group`: gateways of one group share the readings, each of which the broker gives to one of them.
    """

    host: str = "localhost"
    port: int = 1883
    in_topic: str = "in"
    out_topic: str = "out"
    qos: int = 1
    ca: Path | None = None
    username: str | None = None
    password: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        for topic in (self.in_topic, self.out_topic):
            if not topic or not topic.isprintable() or set("+#") & set(topic) or "" in topic.split("/"):
                raise InputError(f"{topic!r} is no topic to put names under: no + or #, no / at the ends.")
        if self.group is not None and (not self.group.isprintable() or not self.group or set("+#/") & set(self.group)):
            raise InputError(f"--share {self.group!r} is no name of a group: no + # or / in it.")
        if self.qos not in (0, 1, 2):
            raise InputError(f"--qos is 0, 1 or 2, not {self.qos}.")
        ours, theirs = self.in_topic + "/", self.out_topic + "/"
        if ours.startswith(theirs) or theirs.startswith(ours):
            raise InputError("--in-topic and --out-topic lie within each other: what goes out would come in again.")
        if self.ca is not None:
            _tls(self.ca)

    def linked(self, link: Link, will: Will | None = None) -> AbstractAsyncContextManager[Link]:
        """The link, connected to the broker within the block."""
        try:
            tls = None if self.ca is None else _tls(self.ca)
        except InputError as error:
            # The certificate was fine at the start, so it is waited for like the broker.
            raise BrokerTrouble(str(error)) from error
        return linked(link, Address(self.host, self.port, tls, self.username, self.password), will)


# Whether a gateway is connected: retained, so that who comes later knows.
ONLINE, OFFLINE = b"online", b"offline"

DROPPED: dict[Reason, str] = {
    "oversized": f"a message is longer than {LONGEST_MESSAGE} bytes",
    "overflow": "readings come faster than they are handled",
}


class Inbox:
    """What has come and was not yet handled: bounded, and so is each message. What does not fit in is counted.

    `news` is set when something has come, or the connection was lost.
    """

    def __init__(self, most: int) -> None:
        self._most, self._messages = most, deque[Published]()
        self.news = asyncio.Event()
        self.dropped = dict.fromkeys(DROPPED, 0)

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: Published) -> None:
        """One more."""
        if len(message.payload) > LONGEST_MESSAGE:
            self.dropped["oversized"] += 1
        elif len(self) >= self._most:
            self.dropped["overflow"] += 1
        else:
            self._messages.append(message)

    async def wait(self, seconds: float) -> None:
        """Until something has come, but no longer than that."""
        if not self._messages:
            self.news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), seconds)

    def empty_out(self, most: int) -> list[Published]:
        """What is there now."""
        return [self._messages.popleft() for _ in range(min(len(self), most))]


class MqttService:
    """A gateway on a broker."""

    def __init__(self, gateway: Gateway, broker: Broker, home_assistant: bool = False) -> None:
        for sensor in gateway.runtime.sensors:
            if RESERVED & set(sensor):
                raise InputError(f"Sensor {sensor!r} has one of / + # in its name, so no topic can name it: rename it.")
        if broker.group is not None and not gateway.needs_time:
            raise InputError("--share needs one ledger for all gateways, in PostgreSQL: --ledger postgresql://...")
        self._gateway, self._broker = gateway, broker
        self._home = HomeAssistant(gateway, f"{broker.out_topic}-state") if home_assistant else None
        # The ledger belongs to one thread.
        self._worker = ThreadPoolExecutor(1, "gateway")
        self._inbox, self._share = Inbox(LARGEST_QUEUE), gateway.settings.share
        # Before connecting again: it grows until something gets through.
        self._wait = FIRST_WAIT
        self._presence = f"{broker.out_topic}-gateway/{socket.gethostname()}{self._share.ending}"

    async def serve(self, ended: Callable[[], bool]) -> None:
        """Until it is time to end, or the gateway is stopped; reconnects for as long as that takes."""
        try:
            while not self._over(ended):
                try:
                    link = Link(self._heard, self._inbox.news.set)
                    # The broker publishes the will once it has lost the gateway.
                    async with self._broker.linked(link, Will(self._presence, OFFLINE)):
                        await self._subscribe(link)
                        await link.publish(self._presence, ONLINE, 1, True)
                        self._gateway.report("broker", None)
                        await self._work(link, ended)
                        await link.publish(self._presence, OFFLINE, 1, True)
                except BrokerTrouble as error:
                    self._gateway.report("broker", self._sentence(error))
                    self._inbox.empty_out(LARGEST_QUEUE)
                    await self._pause(self._wait, ended)
                    self._wait = min(2 * self._wait, LONGEST_WAIT)
        finally:
            await self._in_worker(self._gateway.remember)
            self._worker.shutdown()

    def _heard(self, message: Published) -> None:
        """Every worker hears everything, and keeps its share."""
        if self._share.holds(self._place(message)[0]):
            self._inbox.put(message)

    def _place(self, message: Published) -> tuple[str, str]:
        """Subject and sensor, by the topic."""
        subject, _, sensor = message.topic.removeprefix(self._broker.in_topic + "/").partition("/")
        return subject, sensor

    def _over(self, ended: Callable[[], bool]) -> bool:
        return ended() or self._gateway.stopped

    async def _pause(self, seconds: float, ended: Callable[[], bool]) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while not self._over(ended) and asyncio.get_running_loop().time() < end:
            await self._in_worker(self._gateway.remember)
            await asyncio.sleep(min(seconds, IDLE_SECONDS))

    async def _subscribe(self, link: Link) -> None:
        group = "" if self._broker.group is None else f"$share/{self._broker.group}/"
        topic = f"{group}{self._broker.in_topic}/+/+"
        granted = await link.subscribe(topic, self._broker.qos)
        if any(code >= REFUSED for code in granted):
            raise BrokerTrouble(f"it does not let us subscribe to {topic}")

    async def _work(self, link: Link, ended: Callable[[], bool]) -> None:
        """Handle what comes, batch after batch."""
        if self._home:
            self._home.announce_again()
        await self._send(link, await self._in_worker(self._gateway.resend))
        self._wait = FIRST_WAIT
        while not self._over(ended):
            link.check()
            await self._inbox.wait(IDLE_SECONDS)
            raw = self._inbox.empty_out(LARGEST_BATCH)
            await self._send(link, await self._in_worker(lambda: self._handle(raw)))  # noqa: B023

    async def _in_worker(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    def _handle(self, raw: Sequence[Published]) -> list[Outgoing]:
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

    def _message(self, raw: Published) -> Message:
        if raw.retain:
            # The broker kept it for whoever comes: nobody knows how old it is.
            raise Refused("retained", "a reading was published as retained")
        return parse_payload(*self._place(raw), raw.payload)

    async def _send(self, link: Link, sent: list[Outgoing]) -> None:
        """Publish in order, no more at once than may be under way, so that the last one has as long as the first."""
        for start in range(0, len(sent), UNDER_WAY):
            await self._send_some(link, sent[start : start + UNDER_WAY])

    async def _send_some(self, link: Link, sent: list[Outgoing]) -> None:
        """Those before the first that failed count as delivered: on a link so slow that it fails again and again all
        get through in the end. Not those after it: a later one must not vouch for an earlier one of the same subject.
        """
        told = [self._publish(link, out) for out in sent]
        await asyncio.wait(told, timeout=ANSWER_SECONDS)
        failed = next(((index, why) for index, each in enumerate(told) if (why := _failure(each))), None)
        arrived = sent if failed is None else sent[: failed[0]]
        if arrived:
            await self._in_worker(lambda: self._gateway.delivered(arrived))
            self._wait = FIRST_WAIT
        if self._home and arrived:
            for each in self._home.news(arrived):
                await link.publish(*each, 0, True)
        if failed is not None:
            raise failed[1]

    def _publish(self, link: Link, out: Outgoing) -> asyncio.Future[None]:
        topic = f"{self._broker.out_topic}/{out.subject}"
        return link.publish(topic, out.to_json(with_subject=False), self._broker.qos)

    def _sentence(self, error: BrokerTrouble) -> str:
        return (
            f"No connection to the broker {self._broker.host}:{self._broker.port} ({error}). See that it runs, that "
            "host, port, certificate and credentials are right; it is tried again and again."
        )


def _failure(told: asyncio.Future[None]) -> BaseException | None:
    """Why a message may not have arrived; None if it has."""
    return told.exception() if told.done() else BrokerTrouble(SILENT)


def _tls(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"--tls {str(ca)!r} cannot be read as a certificate: {error}.") from error


async def publish_all(broker: Broker, play: Callable[[Callable[[list[Message]], None]], None]) -> None:
    """Publish readings for gateways on this broker: `play` sends them, from a thread of its own."""
    loop = asyncio.get_running_loop()
    try:
        async with broker.linked(Link(lambda message: None, lambda: None)) as link:

            async def publish(messages: list[Message]) -> None:
                now = time.time()
                for some in (messages[i : i + UNDER_WAY] for i in range(0, len(messages), UNDER_WAY)):
                    said = [(f"{broker.in_topic}/{m.subject}/{m.sensor}", line(m, now, False)) for m in some]
                    await asyncio.gather(*(link.publish(*each, broker.qos) for each in said))

            def send(messages: list[Message]) -> None:
                asyncio.run_coroutine_threadsafe(publish(messages), loop).result()

            await loop.run_in_executor(None, play, send)
    except BrokerTrouble as error:
        raise InputError(f"No connection to the broker {broker.host}:{broker.port}: {error}.") from error
