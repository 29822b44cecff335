"""A connection to a broker, without one: what is answered to its packets, and what happens when it is gone."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from reticent.gateway import link as module
from reticent.gateway import packets
from reticent.gateway.link import BrokerTrouble, Link
from reticent.gateway.packets import Incoming, answer, connect, packed, publish

WELCOME = packed(packets.CONNACK, 0, b"\x00\x00")


class Wire(asyncio.WriteTransport):
    """What a link writes, packet by packet."""

    def __init__(self) -> None:
        super().__init__()
        self._incoming, self.packets, self.closed = Incoming(), [], False

    def write(self, data) -> None:
        self.packets += self._incoming.take(bytes(data))

    def close(self) -> None:
        self.closed = True

    abort = close

    def kinds(self):
        found, self.packets = [packet.kind for packet in self.packets], []
        return found


def opened():
    """A link on a wire, and what it has heard."""
    heard, wire = [], Wire()
    link = Link(heard.append, lambda: None)
    link.connection_made(wire)
    return link, wire, heard


@asynccontextmanager
async def welcomed():
    link, wire, heard = opened()
    opening = asyncio.create_task(link.open(connect(20, None, None, None)))
    await asyncio.sleep(0)
    link.data_received(WELCOME)
    await opening
    wire.kinds()
    yield link, wire, heard


def run(play):
    async def played():
        async with welcomed() as parts:
            await play(*parts)

    asyncio.run(played())


def test_a_message_is_published_once_the_broker_has_it():
    async def play(link, wire, heard):
        at_most, at_least, exactly = (link.publish("t", b"x", qos) for qos in (0, 1, 2))
        assert wire.kinds() == [packets.PUBLISH] * 3
        assert [each.done() for each in (at_most, at_least, exactly)] == [True, False, False]
        link.data_received(answer(packets.PUBACK, 1) + answer(packets.PUBREC, 2))
        assert wire.kinds() == [packets.PUBREL]
        assert [at_least.done(), exactly.done()] == [True, False]
        link.data_received(answer(packets.PUBCOMP, 2) + answer(packets.PUBACK, 77))
        assert exactly.done()

    run(play)


def test_what_comes_is_acknowledged_and_with_qos_2_heard_once():
    async def play(link, wire, heard):
        link.data_received(publish("t", b"0", 0, False, 0) + publish("t", b"1", 1, False, 5))
        assert wire.kinds() == [packets.PUBACK]
        twice = publish("t", b"2", 2, False, 6)
        link.data_received(twice + twice)
        assert wire.kinds() == [packets.PUBREC] * 2
        link.data_received(answer(packets.PUBREL, 6))
        assert wire.kinds() == [packets.PUBCOMP]
        assert [message.payload for message in heard] == [b"0", b"1", b"2"]
        # The number is free again.
        link.data_received(twice)
        assert len(heard) == 4

    run(play)


@pytest.mark.parametrize(("code", "why"), [(4, "user name and password"), (2, "without a name"), (99, "code 99")])
def test_a_broker_that_refuses_says_why(code, why):
    async def play():
        link, wire, _ = opened()
        opening = asyncio.create_task(link.open(connect(20, None, None, None)))
        await asyncio.sleep(0)
        link.data_received(packed(packets.CONNACK, 0, bytes((0, code))))
        with pytest.raises(BrokerTrouble, match=why):
            await opening
        assert wire.closed

    asyncio.run(play())


@pytest.mark.parametrize(
    "lose",
    [
        lambda link: link.connection_lost(None),
        lambda link: link.connection_lost(OSError("broken pipe")),
        lambda link: link.data_received(b"\x30\xff\xff\xff\xff\x01"),
        lambda link: link.data_received(packed(packets.CONNECT)),
    ],
)
def test_what_waits_for_a_broker_that_is_gone_fails(lose):
    async def play(link, wire, heard):
        waiting = link.publish("t", b"x", 1)
        lose(link)
        for told in (waiting, link.publish("t", b"x", 0)):
            with pytest.raises(BrokerTrouble):
                await told
        with pytest.raises(BrokerTrouble):
            link.check()

    run(play)


def test_a_broker_that_falls_silent_is_gone(monkeypatch):
    monkeypatch.setattr(module, "KEEP_ALIVE_SECONDS", 0.02)

    async def play(link, wire, heard):
        keeping = asyncio.create_task(link.keep_alive())
        await asyncio.sleep(0.01)
        assert wire.kinds() == [packets.PINGREQ]
        link.data_received(packed(packets.PINGRESP))
        await asyncio.sleep(0.02)
        link.check()
        await asyncio.wait_for(keeping, 5)
        with pytest.raises(BrokerTrouble, match="does not answer"):
            link.check()

    run(play)


def test_no_answer_in_time_is_told(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)

    async def play(link, wire, heard):
        with pytest.raises(BrokerTrouble, match="does not answer"):
            await link.subscribe("t", 1)

    run(play)


def test_numbers_in_use_are_not_given_again(monkeypatch):
    monkeypatch.setattr(module, "MOST_NUMBERS", 4)

    async def play(link, wire, heard):
        first, second, _ = (link.publish("t", b"x", 1) for _ in range(3))
        link.data_received(answer(packets.PUBACK, 2))
        assert [first.done(), second.done()] == [False, True]
        again = link.publish("t", b"x", 1)
        link.data_received(answer(packets.PUBACK, 2))
        assert again.done()

    run(play)
