"""A connection to an MQTT broker: what is published is acknowledged in its own time, what comes is handed on."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from itertools import chain, repeat
from typing import Any

from reticent.gateway.packets import (
    CONNACK,
    DISCONNECT,
    MOST_NUMBERS,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    Incoming,
    Malformed,
    Packet,
    Published,
    answer,
    number_of,
    packed,
    publish,
    published,
    subscribe,
)

ANSWER_SECONDS, KEEP_ALIVE_SECONDS = 5.0, 20
# Why a broker refuses a connection (3.2.2.3).
REFUSALS = {
    1: "it does not speak MQTT 3.1.1",
    2: "it does not let clients connect without a name of their own",
    3: "it says that it is not available",
    4: "it does not know this user name and password",
    5: "it does not let this client connect",
}
SILENT = "it does not answer"


class BrokerTrouble(Exception):  # noqa: N818  (it is no error of the gateway)
    """The broker cannot be reached, or does not do what it should. Says what, as the end of a sentence."""


class Link(asyncio.Protocol):
    """One connection. `heard` is called with every message, `woken` when there is something to look after."""

    def __init__(self, heard: Callable[[Published], None], woken: Callable[[], None]) -> None:
        self._heard, self._woken = heard, woken
        self._incoming, self._lost = Incoming(), None
        self._transport: Any = None
        self._numbers = chain.from_iterable(repeat(range(1, MOST_NUMBERS)))
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Numbers of messages that are to come once only, and may come again.
        self._once: set[int] = set()
        self._heard_of = True

    def check(self) -> None:
        """Raise unless the broker is there."""
        if self._lost is not None:
            raise BrokerTrouble(self._lost)

    def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False) -> asyncio.Future[None]:
        """Publish a message; the future is done once the broker has it, with QoS 0 once it is on its way."""
        future, number = self._future(qos > 0)
        if self._lost is None:
            self._transport.write(publish(topic, payload, qos, retain, number))
        return future

    async def subscribe(self, topic: str, qos: int) -> bytes:
        """Subscribe; returns the codes that the broker answers."""
        future, number = self._future(True)
        self._send(subscribe(number, topic, qos))
        return await self._in_time(future)

    def _future(self, answered: bool) -> tuple[asyncio.Future[Any], int]:
        """A future and the number of its packet; done at once where none is answered, or the broker is gone."""
        future, number = asyncio.get_running_loop().create_future(), 0
        if self._lost is not None:
            _fail(future, self._lost)
        elif not answered:
            future.set_result(None)
        else:
            number = next(each for each in self._numbers if each not in self._answers)
            self._answers[number] = future
        return future, number

    async def _in_time(self, future: asyncio.Future[Any]) -> Any:
        try:
            return await asyncio.wait_for(future, ANSWER_SECONDS)
        except TimeoutError as error:
            raise BrokerTrouble(SILENT) from error

    async def open(self, greeting: bytes) -> None:
        """Introduce the client to the broker, by a CONNECT packet."""
        self._send(greeting)
        await self._in_time(self._opened)

    async def keep_alive(self) -> None:
        """Ask for a sign of life now and then; without one the connection is lost."""
        while self._lost is None:
            self._heard_of = False
            self._send(packed(PINGREQ))
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            if not self._heard_of:
                self._lose(SILENT)

    def close(self) -> None:
        """Leave in good order, if the broker is there."""
        self._send(packed(DISCONNECT))
        self._lose("it was left")
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(str(exc or "it closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._heard_of = True
        try:
            replies = [reply for packet in self._incoming.take(data) if (reply := self._taken(packet))]
        except Malformed as error:
            self._lose(f"it does not speak MQTT: {error}")
            return
        self._send(b"".join(replies))
        self._woken()

    def _taken(self, packet: Packet) -> bytes:
        """What is answered to a packet."""
        if packet.kind == PUBLISH:
            return self._received(published(packet))
        if packet.kind == CONNACK:
            self._welcomed(packet)
        elif packet.kind in (PUBACK, PUBCOMP, SUBACK):
            self._answered(number_of(packet), packet.body[2:])
        elif packet.kind == PUBREC:
            return answer(PUBREL, number_of(packet))
        elif packet.kind == PUBREL:
            self._once.discard(number_of(packet))
            return answer(PUBCOMP, number_of(packet))
        elif packet.kind != PINGRESP:
            raise Malformed(f"a packet of kind {packet.kind} came")
        return b""

    def _received(self, message: Published) -> bytes:
        if message.qos == 2 and message.number in self._once:
            return answer(PUBREC, message.number)
        self._heard(message)
        if message.qos == 2:
            self._once.add(message.number)
            return answer(PUBREC, message.number)
        return answer(PUBACK, message.number) if message.qos else b""

    def _welcomed(self, packet: Packet) -> None:
        code = packet.body[1] if len(packet.body) == 2 else -1
        if code != 0:
            self._lose(REFUSALS.get(code, f"it refuses the connection with code {code}"))
        elif not self._opened.done():
            self._opened.set_result(None)

    def _answered(self, number: int, body: bytes) -> None:
        future = self._answers.pop(number, None)
        if future is not None and not future.done():
            future.set_result(body)

    def _send(self, data: bytes) -> None:
        if data and self._lost is None:
            self._transport.write(data)

    def _lose(self, why: str) -> None:
        """Whatever still waits for the broker waits in vain."""
        if self._lost is not None:
            return
        self._lost = why
        for future in (self._opened, *self._answers.values()):
            if not future.done():
                _fail(future, why)
        self._transport.abort() if why == SILENT else self._transport.close()
        self._woken()


def _fail(future: asyncio.Future[Any], why: str) -> None:
    """End it with trouble, for which nobody need ask."""
    future.set_exception(BrokerTrouble(why))
    future.exception()


@contextlib.asynccontextmanager
async def linked(
    link: Link, address: tuple[str, int], tls: ssl.SSLContext | None, greeting: bytes
) -> AsyncIterator[Link]:
    """The link, connected, until the end of the block."""
    try:
        connecting = asyncio.get_running_loop().create_connection(lambda: link, *address, ssl=tls)
        await asyncio.wait_for(connecting, ANSWER_SECONDS)
    except TimeoutError as error:
        raise BrokerTrouble(SILENT) from error
    except OSError as error:
        raise BrokerTrouble(str(error)) from error
    keeping = None
    try:
        await link.open(greeting)
        keeping = asyncio.create_task(link.keep_alive())
        yield link
    finally:
        if keeping is not None:
            keeping.cancel()
        link.close()
