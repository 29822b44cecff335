"""A connection to a broker of a few lines: what is answered to its packets, and what happens when it is gone."""

import asyncio
import gc
import socket
import ssl
from contextlib import asynccontextmanager

import pytest

from reticent.gateway import link as module
from reticent.gateway.link import Address, BrokerTrouble, Link, Published, Will, linked

CONNECT, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE, PINGREQ, DISCONNECT = 1, 3, 4, 5, 6, 7, 8, 12, 14
WELCOME = bytes.fromhex("20 03 00 00 00")


def text(value):
    return len(value).to_bytes(2) + value


def publish(topic, payload, qos=0, number=0):
    """PUBLISH of MQTT 5, of less than 128 bytes, without properties (3.3)."""
    body = text(topic) + (number.to_bytes(2) if qos else b"") + b"\x00" + payload
    return bytes((PUBLISH << 4 | qos << 1, len(body))) + body


class Peer:
    """Stands in for a broker: takes packets of a client, and sends what it is told to."""

    def __init__(self, *greetings: bytes) -> None:
        self._greetings = list(greetings)
        self.connects, self.packets = [], asyncio.Queue()

    async def serve(self, reader, writer) -> None:
        self.writer = writer
        try:
            while True:
                kind, body = await self._packet(reader)
                if kind == CONNECT:
                    self.connects.append(body)
                    writer.write(self._greetings.pop(0))
                elif kind != DISCONNECT:
                    self.packets.put_nowait((kind, body))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    async def _packet(self, reader) -> tuple[int, bytes]:
        [first, length] = await reader.readexactly(2)
        shift = 7
        while length >> shift & 1:
            [more] = await reader.readexactly(1)
            length = length & (1 << shift) - 1 | more << shift
            shift += 7
        return first >> 4, await reader.readexactly(length)

    async def kinds(self, count):
        """Of the next packets."""
        return [(await asyncio.wait_for(self.packets.get(), 5))[0] for _ in range(count)]


@asynccontextmanager
async def peer(*greetings):
    """A stand-in, and its address."""
    found = Peer(*greetings)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    try:
        yield found, Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        if hasattr(found, "writer"):
            found.writer.close()


def run(play, greeting=WELCOME):
    """With a link on a stand-in, and what it has heard."""

    async def played():
        heard = []
        async with peer(greeting) as (other, address), linked(Link(heard.append, lambda: None), address) as link:
            await play(link, other, heard)

    asyncio.run(played())


async def until(condition):
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come in time")


def test_the_greeting():
    async def play():
        async with peer(WELCOME) as (other, address):
            named = Address(address.host, address.port, None, "u", "p")
            async with linked(Link(lambda message: None, lambda: None), named, Will("w", b"off")):
                # MQTT 5, a clean start, user name, password, a will that is retained with QoS 1, alive for 20 s, no
                # packet of more than 100,000 bytes; no name of its own (3.1).
                flags, properties = "ee", "05 27 000186a0"
                begins = bytes.fromhex(f"0004 4d515454 05 {flags} 0014 {properties} 0000 00")
                assert other.connects == [begins + text(b"w") + text(b"off") + text(b"u") + text(b"p")]

    asyncio.run(play())


def test_a_message_is_published_once_the_broker_has_it():
    async def play(link, other, heard):
        at_most, at_least, exactly = (link.publish("t", b"x", qos) for qos in (0, 1, 2))
        assert await other.kinds(3) == [PUBLISH] * 3
        assert [each.done() for each in (at_most, at_least, exactly)] == [True, False, False]
        # The number of the first one is not used.
        other.writer.write(bytes.fromhex("40 02 0002  50 02 0003"))
        await at_least
        assert await other.kinds(1) == [PUBREL]
        assert not exactly.done()
        # One that nobody asked for does no harm.
        other.writer.write(bytes.fromhex("70 02 0003  40 02 004d"))
        await exactly

    run(play)


def test_what_comes_is_acknowledged_and_with_qos_2_heard_once():
    async def play(link, other, heard):
        other.writer.write(publish(b"t", b"0") + publish(b"t", b"1", 1, 5))
        assert await other.packets.get() == (PUBACK, b"\x00\x05")
        twice = publish(b"t", b"2", 2, 6)
        other.writer.write(twice + twice)
        assert await other.kinds(2) == [PUBREC] * 2
        other.writer.write(bytes.fromhex("62 02 0006  62 02 0006"))
        assert await other.kinds(2) == [PUBCOMP] * 2
        assert heard == [Published("t", payload, False) for payload in (b"0", b"1", b"2")]

    run(play)


def test_what_comes_at_once_is_heard_in_order():
    async def play(link, other, heard):
        other.writer.write(b"".join(publish(b"t", b"%d" % i) for i in range(3 * module.MOST_READS)))
        await until(lambda: len(heard) == 3 * module.MOST_READS)
        assert [int(message.payload) for message in heard] == list(range(3 * module.MOST_READS))

    run(play)


@pytest.mark.parametrize(
    ("code", "why"),
    [(0x86, "user name and password"), (0x85, "without a name"), (0x87, "this client"), (0x97, "Quota exceeded")],
)
def test_a_broker_that_refuses_says_why(code, why):
    with pytest.raises(BrokerTrouble, match=why):
        run(None, bytes((0x20, 3, 0, code, 0)))


TOO_NEW = bytes.fromhex("20 02 00 01")


def test_a_broker_of_mqtt_3_1_1_is_spoken_to_in_its_language():
    async def play():
        async with peer(TOO_NEW, bytes.fromhex("20 02 00 00")) as (other, address):
            async with linked(Link(lambda message: None, lambda: None), address) as link:
                told = link.publish("t", b"x", 1)
                # No properties.
                assert await other.packets.get() == (PUBLISH, text(b"t") + b"\x00\x01x")
                other.writer.write(bytes.fromhex("40 02 0001"))
                await told
                link.check()
            assert [body[6] for body in other.connects] == [5, 4]

    asyncio.run(play())


# To a version that is too new paho finds its own answer.
@pytest.mark.parametrize(("code", "why"), [(1, "does not speak MQTT"), (4, "user name and password")])
def test_a_broker_of_mqtt_3_1_1_that_refuses_says_why(code, why):
    async def play():
        async with peer(TOO_NEW, bytes((0x20, 2, 0, code))) as (_, address):
            with pytest.raises(BrokerTrouble, match=why):
                async with linked(Link(lambda message: None, lambda: None), address):
                    pass

    asyncio.run(play())


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (b"", "closed the connection"),
        (bytes.fromhex("e0 02 8b 00"), "ended the connection: Server shutting down"),
        (bytes.fromhex("30 ff ff ff ff 01"), "does not speak MQTT"),
        (bytes.fromhex("10 00"), "does not speak MQTT"),
        (publish(b"\xff", b"x"), "does not speak MQTT"),
        (bytes.fromhex("40 01 00"), "does not speak MQTT"),
    ],
)
def test_what_waits_for_a_broker_that_is_gone_fails(last, why):
    async def play(link, other, heard):
        waiting = link.publish("t", b"x", 1)
        await other.kinds(1)
        other.writer.write(last)
        if not last:
            other.writer.close()
        with pytest.raises(BrokerTrouble, match=why):
            await asyncio.wait_for(waiting, 5)
        with pytest.raises(BrokerTrouble, match=why):
            await link.publish("t", b"x", 0)
        with pytest.raises(BrokerTrouble, match=why):
            await link.subscribe("t", 0)
        with pytest.raises(BrokerTrouble, match=why):
            link.check()

    run(play)


def test_a_broker_that_falls_silent_is_gone(monkeypatch):
    monkeypatch.setattr(module, "KEEP_ALIVE_SECONDS", 1)
    monkeypatch.setattr(module, "TURN_SECONDS", 0.05)

    async def play(link, other, heard):
        assert await other.kinds(1) == [PINGREQ]
        other.writer.write(bytes.fromhex("d0 00"))
        assert await other.kinds(1) == [PINGREQ]
        link.check()
        with pytest.raises(BrokerTrouble, match="does not answer"):
            await asyncio.wait_for(link.publish("t", b"x", 1), 5)

    run(play)


def test_no_answer_in_time_is_told(monkeypatch):
    async def play(link, other, heard):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
        with pytest.raises(BrokerTrouble, match="does not answer"):
            await link.subscribe("t", 1)

    run(play)


def test_who_does_not_answer_the_greeting_is_told(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.1)
    with pytest.raises(BrokerTrouble, match="does not answer"):
        run(None, b"")


# Of a handshake that failed, paho leaves the socket to be found later.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_who_does_not_answer_the_handshake_is_told(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.1)

    async def play():
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            secret = Address("127.0.0.1", deaf.getsockname()[1], ssl.create_default_context())
            async with linked(Link(lambda message: None, lambda: None), secret):
                pass

    # Whichever limit ends first: that of the gateway, or that of paho.
    with pytest.raises(BrokerTrouble, match=r"does not answer|timed out") as told:
        asyncio.run(play())
    del told
    gc.collect()


def test_nobody_there_is_told():
    async def play():
        async with peer() as (_, address):
            pass
        async with linked(Link(lambda message: None, lambda: None), address):
            pass

    with pytest.raises(BrokerTrouble, match="refused"):
        asyncio.run(play())


def test_a_subscription_has_its_codes():
    async def play(link, other, heard):
        asking = asyncio.create_task(link.subscribe("t", 1))
        _, body = await other.packets.get()
        # Number, no properties, then the filter and its options (3.8).
        assert body == b"\x00\x01\x00" + text(b"t") + b"\x01"
        other.writer.write(bytes.fromhex("90 04 0001 00 87"))
        assert await asking == [0x87]

    run(play)


def test_no_more_is_under_way_than_the_broker_takes():
    async def play(link, other, heard):
        told = [link.publish("t", b"x", 1) for _ in range(5)]
        assert await other.kinds(2) == [PUBLISH] * 2
        await asyncio.sleep(0.05)
        assert other.packets.empty()
        other.writer.write(bytes.fromhex("40 02 0002"))
        await told[1]
        assert await other.kinds(1) == [PUBLISH]
        assert [each.done() for each in told] == [False, True, False, False, False]
        other.writer.close()
        # Those that were never sent fail with the others.
        for each in (told[0], told[4]):
            with pytest.raises(BrokerTrouble):
                await asyncio.wait_for(each, 5)

    run(play, bytes.fromhex("20 06 00 00 03 21 0002"))


def test_a_message_that_the_broker_does_not_take_is_not_published():
    async def play(link, other, heard):
        told = link.publish("t", b"x", 1)
        other.writer.write(bytes.fromhex("40 03 0001 87"))
        with pytest.raises(BrokerTrouble, match="Not authorized"):
            await told
        # That nobody listens is no refusal.
        again = link.publish("t", b"x", 1)
        other.writer.write(bytes.fromhex("40 03 0002 10"))
        await again

    run(play)


def test_numbers_in_use_are_not_given_again(monkeypatch):
    async def play(link, other, heard):
        first = link.publish("t", b"x", 1)
        monkeypatch.setattr(link._client, "_mid_generate", lambda: 1)
        with pytest.raises(BrokerTrouble, match="does not answer"):
            await link.publish("t", b"x", 1)
        other.writer.write(bytes.fromhex("40 02 0001"))
        await first

    run(play)
