"""Packets of MQTT 3.1.1, as far as a gateway needs them: from bytes, and to bytes.

By the OASIS standard, whose sections are cited. Reading hundreds of packets from one piece of what the socket brings
takes a small part of the time that clients take which read them one by one.
"""

from collections.abc import Iterator
from typing import NamedTuple

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, PINGREQ, PINGRESP, DISCONNECT = 8, 9, 12, 13, 14
PROTOCOL, LEVEL = "MQTT", 4
CLEAN_SESSION, WILL, WILL_RETAIN, PASSWORD, USERNAME = 0x02, 0x04, 0x20, 0x40, 0x80
# Of a longer packet only so much is kept: enough for any topic, and for a payload that is known to be too long.
LONGEST = 100_000
MOST_NUMBERS = 2**16


class Malformed(Exception):  # noqa: N818  (it is what the other side sent)
    """What came is no MQTT."""


class Packet(NamedTuple):
    """One packet: its kind, the four flags beside it, and what follows its length."""

    kind: int
    flags: int
    body: bytes


class Published(NamedTuple):
    """A message that somebody published; `number` is to be acknowledged where `qos` is above 0."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    number: int


class Will(NamedTuple):
    """What the broker publishes, retained and with QoS 1, once it has lost whoever left it."""

    topic: str
    payload: bytes


class Incoming:
    """Cuts what a socket brings into packets; bounded in memory whatever comes."""

    def __init__(self) -> None:
        self._rest = b""
        self._skip = 0

    def take(self, data: bytes) -> Iterator[Packet]:
        """The packets that are complete with these bytes."""
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        data, at = self._rest + data[skipped:], 0
        while (found := _header(data, at)) is not None:
            start, length = found
            kept = min(length, LONGEST)
            if len(data) < start + kept:
                break
            yield Packet(data[at] >> 4, data[at] & 0x0F, data[start : start + kept])
            at = min(start + length, len(data))
            self._skip = start + length - at
        self._rest = data[at:]


def _header(data: bytes, at: int) -> tuple[int, int] | None:
    """Where the body of the packet begins that begins here, and its length; None if they are not there yet (2.2.3)."""
    length = 0
    for i in range(4):
        if at + 1 + i >= len(data):
            return None
        byte = data[at + 1 + i]
        length |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return at + 2 + i, length
    raise Malformed("a packet's length has more than four bytes")


def published(packet: Packet) -> Published:
    """The message of a PUBLISH packet (3.3)."""
    body, qos = packet.body, (packet.flags >> 1) & 3
    beyond = 2 + int.from_bytes(body[:2])
    start = beyond + 2 * (qos > 0)
    if len(body) < start or qos == 3:
        raise Malformed("a message ends before its payload begins")
    try:
        topic = body[2:beyond].decode()
    except UnicodeDecodeError as error:
        raise Malformed("a topic is not UTF-8") from error
    return Published(topic, body[start:], qos, bool(packet.flags & 1), int.from_bytes(body[beyond:start]))


def number_of(packet: Packet) -> int:
    """The number of the packet that this one answers."""
    if len(packet.body) < 2:
        raise Malformed("an answer has no number")
    return int.from_bytes(packet.body[:2])


def packed(kind: int, flags: int = 0, body: bytes = b"") -> bytes:
    """The bytes of a packet."""
    length, rest = bytearray(), len(body)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return bytes((kind << 4 | flags,)) + length + body


def connect(keep_alive: int, will: Will | None, username: str | None, password: str | None) -> bytes:
    """CONNECT with a clean session, under a name that the broker makes up (3.1)."""
    flags, payload = CLEAN_SESSION, _text("")
    if will is not None:
        flags |= WILL | WILL_RETAIN | 1 << 3
        payload += _text(will.topic) + _text(will.payload)
    if username is not None:
        flags |= USERNAME
        payload += _text(username)
        if password is not None:
            flags |= PASSWORD
            payload += _text(password)
    return packed(CONNECT, 0, _text(PROTOCOL) + bytes((LEVEL, flags)) + keep_alive.to_bytes(2) + payload)


def publish(topic: str, payload: bytes, qos: int, retain: bool, number: int) -> bytes:
    """PUBLISH (3.3); the number counts where `qos` is above 0."""
    numbered = number.to_bytes(2) if qos else b""
    return packed(PUBLISH, qos << 1 | retain, _text(topic) + numbered + payload)


def subscribe(number: int, topic: str, qos: int) -> bytes:
    """SUBSCRIBE to one topic filter (3.8)."""
    return packed(SUBSCRIBE, 2, number.to_bytes(2) + _text(topic) + bytes((qos,)))


def answer(kind: int, number: int) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP of a packet with this number (3.4 to 3.7)."""
    return packed(kind, 2 if kind == PUBREL else 0, number.to_bytes(2))


def _text(value: str | bytes) -> bytes:
    """With its length before it (1.5.3)."""
    raw = value.encode() if isinstance(value, str) else value
    return len(raw).to_bytes(2) + raw
