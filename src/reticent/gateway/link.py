"""A connection to an MQTT broker, by paho on the event loop.

What is published is acknowledged in its own time, what comes is handed on. MQTT 5, or 3.1.1 if the broker asks for it.
"""

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from reticent.errors import InputError

try:
    from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, MQTTMessageInfo
    from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode
except ImportError as error:
    raise InputError("MQTT needs the package paho-mqtt: pip install 'reticent[mqtt]'.") from error

ANSWER_SECONDS, KEEP_ALIVE_SECONDS, TURN_SECONDS = 5.0, 20, 1.0
# The broker is asked to keep longer packets back: enough for any topic, and for a payload that is known to be too long.
LONGEST_PACKET = 100_000
# Packets that are read before others get their turn.
MOST_READS = 500
# Without a word about it a broker takes so many messages that it has not acknowledged (MQTT 5, 3.2.2.3.3).
MOST_UNDER_WAY = 65_535
UNSUPPORTED_VERSION = 0x84
# Why a broker refuses a connection (MQTT 5, 3.2.2.2); paho says it in these words for MQTT 3.1.1, too.
REFUSALS = {
    0x85: "it does not let clients connect without a name of their own",
    0x88: "it says that it is not available",
    0x86: "it does not know this user name and password",
    0x87: "it does not let this client connect",
}
SILENT, CLOSED, STRANGE = "it does not answer", "it closed the connection", "it does not speak MQTT"
# What paho found out by itself: a protocol error, or no sign of life.
ENDINGS = {0x82: STRANGE, 0x8D: SILENT}


class BrokerTrouble(Exception):  # noqa: N818  (it is no error of the gateway)
    """The broker cannot be reached, or does not do what it should. Says what, as the end of a sentence."""


class Published(NamedTuple):
    """A message that somebody published."""

    topic: str
    payload: bytes
    retain: bool


class Will(NamedTuple):
    """What the broker publishes, retained and with QoS 1, once it has lost whoever left it."""

    topic: str
    payload: bytes


@dataclass(frozen=True)
class Address:
    """Where a broker is, and as whom to connect."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    username: str | None = None
    password: str | None = None


class Link:
    """One connection. `heard` is called with every message, `woken` when there is something to look after."""

    _client: Client
    _opened: asyncio.Future[ReasonCode]

    def __init__(self, heard: Callable[[Published], None], woken: Callable[[], None]) -> None:
        self._heard, self._woken = heard, woken
        self._loop = asyncio.get_running_loop()
        self._lost: str | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        # Messages that the broker does not yet take, since it is to acknowledge others first.
        self._waiting: deque[tuple[asyncio.Future[None], Callable[[], MQTTMessageInfo]]] = deque()
        self._most_under_way = MOST_UNDER_WAY
        # How many packets have come, as far as paho tells.
        self._came = 0

    def check(self) -> None:
        """Raise unless the broker is there."""
        if self._lost is not None:
            raise BrokerTrouble(self._lost)

    def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False) -> asyncio.Future[None]:
        """Publish a message; the future is done once the broker has it, with QoS 0 once it is on its way."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self._lost is not None:
            _fail(future, self._lost)
        elif qos == 0:
            self._client.publish(topic, payload, 0, retain)
            future.set_result(None)
        else:
            self._waiting.append((future, partial(self._client.publish, topic, payload, qos, retain)))
            self._send_waiting()
        return future

    def _send_waiting(self) -> None:
        """As much as the broker takes: paho would not ask how much that is."""
        while self._waiting and len(self._answers) < self._most_under_way:
            future, publish = self._waiting.popleft()
            told = publish()
            if told.rc == MQTTErrorCode.MQTT_ERR_SUCCESS:
                self._answers[told.mid] = future
            elif not future.done():
                # Its number is in use: that message has waited for an answer while all other numbers were used.
                _fail(future, SILENT)

    async def subscribe(self, topic: str, qos: int) -> list[int]:
        """Subscribe; returns the codes that the broker answers."""
        self.check()
        _, number = self._client.subscribe(topic, qos)
        assert number is not None, "the connection was there"
        self._answers[number] = future = self._loop.create_future()
        return await _in_time(future)

    async def open(self, address: Address, will: Will | None) -> None:
        """Connect, and introduce the client to the broker."""
        reason = await self._greet(address, will, MQTTProtocolVersion.MQTTv5)
        if reason.value == UNSUPPORTED_VERSION:
            reason = await self._greet(address, will, MQTTProtocolVersion.MQTTv311)
        if reason.is_failure:
            raise BrokerTrouble(REFUSALS.get(reason.value, f"it refuses the connection: {reason}"))

    async def _greet(self, address: Address, will: Will | None, protocol: MQTTProtocolVersion) -> ReasonCode:
        """What the broker answers to a client of this version."""
        self._lost, self._opened = None, self._loop.create_future()
        self._client = _client(address, will, protocol)
        connecting = self._loop.run_in_executor(None, _connect, self._client, address)
        try:
            await asyncio.wait([connecting], timeout=ANSWER_SECONDS)
        finally:
            if not connecting.done():
                connecting.add_done_callback(self._abandon)
        if not connecting.done():
            raise BrokerTrouble(SILENT)
        try:
            self._watch(await connecting)
        except OSError as error:
            raise BrokerTrouble(str(error)) from error
        return await _in_time(self._opened)

    def _abandon(self, connecting: asyncio.Future[Any]) -> None:
        """Nobody waited for this connection any more."""
        if connecting.exception() is None:
            self._drop()

    def _watch(self, wire: Any) -> None:
        """Let the event loop turn paho's."""
        client = self._client
        client.on_connect, client.on_disconnect = self._welcomed, self._parted
        client.on_message, client.on_publish, client.on_subscribe = self._received, self._taken, self._subscribed
        client.on_socket_close = self._unwatch
        client.on_socket_register_write, client.on_socket_unregister_write = self._has_to_write, self._has_written
        self._loop.add_reader(wire, self._read)
        if client.want_write():
            self._loop.add_writer(wire, self._write)

    def _unwatch(self, client: Client, userdata: Any, wire: Any) -> None:
        self._loop.remove_reader(wire)
        self._loop.remove_writer(wire)

    def _has_to_write(self, client: Client, userdata: Any, wire: Any) -> None:
        self._loop.add_writer(wire, self._write)

    def _has_written(self, client: Client, userdata: Any, wire: Any) -> None:
        self._loop.remove_writer(wire)

    async def keep_alive(self) -> None:
        """Let paho ask for a sign of life now and then; without one the connection is lost."""
        while self._lost is None:
            self._turn(self._client.loop_misc)
            await asyncio.sleep(TURN_SECONDS)

    def _read(self) -> None:
        """Take what has come. What paho reads at once may be one packet, and TLS may hold more than the socket."""
        end = self._came + MOST_READS
        while self._came < end:
            before = self._came
            self._turn(self._client.loop_read)
            wire = self._client.socket()
            if self._came == before and not (isinstance(wire, ssl.SSLSocket) and wire.pending()):
                break
        else:
            self._loop.call_soon(self._read)
        self._woken()

    def _write(self) -> None:
        self._turn(self._client.loop_write)

    def _turn(self, step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:
            # Paho does not say what it raises where a packet is none.
            self._lose(f"{STRANGE}: {error}")
            self._drop()

    def close(self) -> None:
        """Leave in good order, if the broker is there."""
        if self._lost is None:
            self._lose("it was left")
            self._client.disconnect()
            self._write()
        self._drop()

    def _drop(self) -> None:
        """Close the socket, unless that is done."""
        wire: Any = self._client.socket()
        if wire is not None and wire.fileno() >= 0:
            self._client.on_socket_close = self._client.on_socket_unregister_write = None
            self._unwatch(self._client, None, wire)
            wire.close()

    def _welcomed(self, client: Client, userdata: Any, flags: ConnectFlags, reason: Any, properties: Any) -> None:
        self._came += 1
        self._most_under_way = getattr(properties, "ReceiveMaximum", MOST_UNDER_WAY)
        _finish(self._opened, reason)

    def _parted(self, client: Client, userdata: Any, flags: DisconnectFlags, reason: Any, properties: Any) -> None:
        told = flags.is_disconnect_packet_from_server
        self._lose(f"it ended the connection: {reason}" if told else ENDINGS.get(reason.value, CLOSED))

    def _received(self, client: Client, userdata: Any, message: MQTTMessage) -> None:
        self._came += 1
        self._heard(Published(message.topic, bytes(message.payload), message.retain))

    def _taken(self, client: Client, userdata: Any, number: int, reason: ReasonCode, properties: Any) -> None:
        self._came += 1
        future = self._answers.pop(number, None)
        if future is None:
            return
        if reason.is_failure:
            _fail(future, f"it does not take what is published: {reason}")
        else:
            _finish(future, None)
        self._send_waiting()

    def _subscribed(
        self, client: Client, userdata: Any, number: int, reasons: list[ReasonCode], properties: Any
    ) -> None:
        self._came += 1
        if (future := self._answers.pop(number, None)) is not None:
            _finish(future, [reason.value for reason in reasons])

    def _lose(self, why: str) -> None:
        """Whatever still waits for the broker waits in vain."""
        if self._lost is not None:
            return
        self._lost = why
        for future in (self._opened, *self._answers.values(), *(future for future, _ in self._waiting)):
            _fail(future, why)
        self._waiting.clear()
        self._woken()


def _client(address: Address, will: Will | None, protocol: MQTTProtocolVersion) -> Client:
    """A client that is not yet connected, under a name that the broker makes up."""
    client = Client(CallbackAPIVersion.VERSION2, protocol=protocol, reconnect_on_failure=False)
    client.connect_timeout = ANSWER_SECONDS
    # Without a limit: how many may be under way is the broker's word.
    client.max_inflight_messages = 0
    if address.tls is not None:
        client.tls_set_context(address.tls)
    if address.username is not None:
        client.username_pw_set(address.username, address.password)
    if will is not None:
        client.will_set(will.topic, will.payload, 1, True)
    return client


def _connect(client: Client, address: Address) -> socket.socket:
    """The socket of a client that has sent its greeting. Takes its time, so it runs in a thread."""
    greeting = None
    if client.protocol == MQTTProtocolVersion.MQTTv5:
        greeting = Properties(PacketTypes.CONNECT)
        greeting.MaximumPacketSize = LONGEST_PACKET
    client.connect(address.host, address.port, KEEP_ALIVE_SECONDS, properties=greeting)
    wire: Any = client.socket()
    if wire is None:
        raise ConnectionError(CLOSED)
    # Messages are small: held back until the one before is acknowledged, each would wait for the peer's delay.
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return wire


async def _in_time(future: asyncio.Future[Any]) -> Any:
    try:
        return await asyncio.wait_for(future, ANSWER_SECONDS)
    except TimeoutError as error:
        raise BrokerTrouble(SILENT) from error


def _finish(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], why: str) -> None:
    """End it with trouble, for which nobody need ask."""
    if not future.done():
        future.set_exception(BrokerTrouble(why))
        future.exception()


@contextlib.asynccontextmanager
async def linked(link: Link, address: Address, will: Will | None = None) -> AsyncIterator[Link]:
    """The link, connected, until the end of the block."""
    keeping = None
    try:
        await link.open(address, will)
        keeping = asyncio.create_task(link.keep_alive())
        yield link
    finally:
        if keeping is not None:
            keeping.cancel()
        link.close()
