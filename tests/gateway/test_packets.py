"""Packets of MQTT: the bytes of the standard, whatever pieces they come in."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.gateway import packets
from reticent.gateway.packets import Incoming, Malformed, Packet, Published, Will, connect, packed, publish, published


def taken(*pieces):
    incoming = Incoming()
    return [packet for piece in pieces for packet in incoming.take(piece)]


def test_the_bytes_of_the_standard():
    # CONNECT of a clean session that nobody named, kept alive for 20 s (3.1).
    assert connect(20, None, None, None) == bytes.fromhex("100c 0004 4d515454 04 02 0014 0000")
    # Flags: user name, password, a will that is retained with QoS 1.
    greeting = connect(20, Will("w", b"off"), "u", "p")
    assert greeting == bytes.fromhex("101a 0004 4d515454 04 ee 0014 0000 0001 77 0003 6f6666 0001 75 0001 70")
    # PUBLISH of "x" on "a/b" with QoS 1 and number 10 (3.3.1), and with QoS 0, retained.
    assert publish("a/b", b"x", 1, False, 10) == bytes.fromhex("3208 0003 612f62 000a 78")
    assert publish("a/b", b"x", 0, True, 0) == bytes.fromhex("3106 0003 612f62 78")
    assert packets.subscribe(10, "a/b", 1) == bytes.fromhex("8208 000a 0003 612f62 01")
    assert packets.answer(packets.PUBREL, 10) == bytes.fromhex("6202 000a")


@pytest.mark.parametrize(
    ("length", "digits"), [(0, "00"), (127, "7f"), (128, "8001"), (16_383, "ff7f"), (16_384, "808001")]
)
def test_lengths_are_those_of_the_standard(length, digits):
    """Table 2.4."""
    raw = packed(packets.PUBLISH, 0, b"x" * length)
    assert raw[1 : -length or None] == bytes.fromhex(digits)
    assert taken(raw) == [Packet(packets.PUBLISH, 0, b"x" * length)]


MESSAGES = st.lists(
    st.builds(Published, st.text(max_size=20), st.binary(max_size=300), st.integers(0, 2), st.booleans(), st.just(7)),
    max_size=8,
)


@given(MESSAGES, st.lists(st.integers(0, 3_000), max_size=20))
def test_what_comes_in_pieces_is_what_was_sent(messages, cuts):
    raw = b"".join(publish(m.topic, m.payload, m.qos, m.retain, m.number) for m in messages)
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    pieces = [raw[start:end] for start, end in pairwise(places)]
    found = [published(packet) for packet in taken(*pieces)]
    assert found == [m if m.qos else m._replace(number=0) for m in messages]


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_whatever_comes_in_pieces_is_what_comes_at_once(pieces):
    assert outcome(pieces) == outcome([b"".join(pieces)])


def outcome(pieces):
    """The messages that could be read, and whether something else came."""
    found = []
    try:
        incoming = Incoming()
        for piece in pieces:
            found += map(published, incoming.take(piece))
    except Malformed as error:
        return found, str(error)
    return found, None


def test_of_a_long_packet_only_the_beginning_is_kept(monkeypatch):
    monkeypatch.setattr(packets, "LONGEST", 40)
    incoming, most = Incoming(), 0
    raw = publish("in/ada/a0", b"x" * 5_000, 1, False, 3) + publish("in/ada/a1", b"y", 1, False, 4)
    found = []
    for start in range(0, len(raw), 16):
        found += incoming.take(raw[start : start + 16])
        most = max(most, len(incoming._rest))
    assert [published(packet).number for packet in found] == [3, 4]
    assert published(found[0]).payload == b"x" * (40 - 2 - 9 - 2)
    assert most < 60


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x30\xff\xff\xff\xff\x01", "more than four bytes"),
        (packed(packets.PUBLISH, 0, b"\x00\x09a"), "before its payload"),
        (packed(packets.PUBLISH, 6, b"\x00\x01a\x00\x01"), "before its payload"),
        (packed(packets.PUBLISH, 0, b"\x00\x01\xff"), "not UTF-8"),
    ],
)
def test_what_is_no_mqtt_is_refused(raw, why):
    with pytest.raises(Malformed, match=why):
        [published(packet) for packet in taken(raw)]
    with pytest.raises(Malformed, match="no number"):
        packets.number_of(Packet(packets.PUBACK, 0, b"\x00"))
