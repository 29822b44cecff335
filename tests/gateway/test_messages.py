"""Only what is exactly as it should be is read; everything else is refused with its reason and without its content."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reticent.gateway import messages
from reticent.gateway.messages import (
    FIELDS,
    LONGEST_MESSAGE,
    Message,
    Outgoing,
    Refused,
    _message,
    _object,
    _read,
    parse_line,
    parse_payload,
)


def line(**changes):
    fields = {"subject": "ada", "sensor": "gyroscope", "symbol": "code 3", "time": 1700000000.0, **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def test_the_three_kinds_of_value():
    assert parse_line(line()) == Message("ada", "gyroscope", 1700000000.0, symbol="code 3")
    assert parse_line(line(symbol=None, reading=[1, 2.5])).reading == (1.0, 2.5)
    assert parse_line(line(symbol=None, sample=[0, 0, 9.81], time=3)) == Message(
        "ada", "gyroscope", 3.0, sample=(0.0, 0.0, 9.81)
    )
    assert parse_line(line(time=None)).time is None
    assert parse_line(line(id="17")).id == "17"


def test_a_topic_says_subject_and_sensor():
    payload = b'{"symbol": "code 3", "time": 3}'
    for unread in (
        lambda: parse_payload("ada", "gyroscope", b'{"symbol": "code 3", "id": "17"}'),
        lambda: parse_line(line(time=None), needs_time=True),
    ):
        with pytest.raises(Refused, match="does not say its time, so if it came twice") as refused:
            unread()
        assert refused.value.reason == "malformed"
    assert parse_payload("ada", "gyroscope", payload) == Message("ada", "gyroscope", 3.0, symbol="code 3")
    for twice in (b'{"symbol": "x", "subject": "bob"}', b'{"symbol": "x", "sensor": "other"}'):
        with pytest.raises(Refused, match="topic") as refused:
            parse_payload("ada", "gyroscope", twice)
        assert refused.value.reason == "malformed"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"17",
        b'{"subject": "ada"',
        b'{"subject": "ada", "subject": "bob", "sensor": "a", "symbol": "x"}',
        b'{"subject": "ada", "sensor": "a", "reading": [NaN]}',
        b'{"subject": "ada", "sensor": "a", "reading": [Infinity]}',
        b'{"subject": "ada", "sensor": "a", "reading": [1e999]}',
        b'{"subject": "ada", "sensor": "a", "reading": [' + b"9" * 400 + b"]}",
        b'{"subject": "ada", "sensor": "a", "reading": [' + b"9" * 5000 + b"]}",
        b"[" * 10_000,
        b'{"a":' * 3000,
        line(time="now"),
        line(time=True),
        line(symbol=3),
        line(symbol=""),
        line(symbol="x" * 129),
        line(symbol=None),
        line(reading=[1.0]),
        line(symbol=None, reading=[]),
        line(symbol=None, reading=[[1.0]]),
        line(symbol=None, reading=["1"]),
        line(symbol=None, reading=[True]),
        line(symbol=None, reading=1.0),
        line(symbol=None, sample={"x": 1}),
        line(symbol=None, sample=[1.0], time=None),
        line(sensor=None),
        line(sensor=3),
        line(id=3),
        line(more=1),
        line(secret="smoking"),
    ],
)
def test_what_is_malformed_is_refused(raw):
    with pytest.raises(Refused) as refused:
        parse_line(raw)
    assert refused.value.reason == "malformed"


def test_what_is_too_long_is_refused_before_it_is_read():
    with pytest.raises(Refused) as refused:
        parse_line(b" " * (LONGEST_MESSAGE + 1))
    assert refused.value.reason == "oversized"
    assert parse_line(line() + b" " * (LONGEST_MESSAGE - len(line())))


@pytest.mark.parametrize(
    "name",
    [
        *("", "a/b", "+", "a+", "#", "a#b", "\0", "a\0b", "a\nb", " ada", "ada ", "\u200b", "x" * 129, "\ud800"),
        *("e\u0301", None, 3, ["ada"]),
        *("\u3164", "ada\ufe0f", "a\u034fda", "ada\uffa0", "\u2800", "ada\U000e0100", "ad\u115fa", "ada\u180b"),
    ],
)
def test_odd_subjects_are_refused(name):
    raw = json.dumps({"subject": name, "sensor": "a", "symbol": "x"}).encode()
    with pytest.raises(Refused, match="subject"):
        parse_line(raw)


@pytest.mark.parametrize("name", ["ada", "Ada Lovelace", "\u00e9", "日本", "a.b-c_d@e", "$SYS", "x" * 128])
def test_ordinary_subjects_are_taken(name):
    assert parse_line(line(subject=name)).subject == name


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_whatever_comes_is_read_or_refused(raw):
    try:
        message = parse_line(raw)
    except Refused:
        return
    assert sum(value is not None for value in (message.symbol, message.reading, message.sample)) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["subject", "sensor", "time", "id", "symbol", "reading", "sample"]), JSON))
def test_whatever_fields_hold_is_read_or_refused(fields):
    try:
        message = parse_line(json.dumps(fields).encode())
    except Refused:
        return
    assert sum(value is not None for value in (message.symbol, message.reading, message.sample)) == 1


def test_refusals_do_not_repeat_what_was_said():
    for raw in (line(symbol="hush" * 40), line(symbol=None, reading=["hush"]), b'{"hush": 1}', b"hush", line(hush=1)):
        with pytest.raises(Refused) as refused:
            parse_line(raw)
        assert "hush" not in str(refused.value)


def test_the_documentation_shows_messages_as_they_are():
    page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
    [[arriving], leaving] = ([*block.splitlines()] for block in re.findall(r"```json\n(.*?)\n```", page, re.DOTALL))
    assert parse_line(arriving.encode()) == Message("ada", "gyroscope", 1700000000.0, symbol="code 3")
    for shown in leaving:
        fields = json.loads(shown)
        assert Outgoing(**{"symbol": None, **fields}).to_json().decode() == shown


def test_what_goes_out_holds_its_place_and_no_more():
    sent = Outgoing("ada", 0, 2, "gyroscope", "merged: walking")
    fields = {"subject": "ada", "session": 0, "step": 2, "sensor": "gyroscope", "symbol": "merged: walking"}
    assert json.loads(sent.to_json()) == fields
    del fields["subject"]
    assert json.loads(sent.to_json(with_subject=False)) == fields
    assert json.loads(Outgoing("ada", 1, 3, "stop", None).to_json()) == {
        "subject": "ada",
        "session": 1,
        "step": 3,
        "sensor": "stop",
    }
    assert b"\n" not in sent.to_json()


VALUES = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text('a:é\\"\x01\ud800', max_size=4),
    st.lists(st.integers() | st.floats(), max_size=3),
)
PAIRS = st.lists(st.tuples(st.sampled_from([*sorted(FIELDS), "time:", "x"]), VALUES), max_size=8)


@given(PAIRS, st.booleans())
@example([("subject", "a:"), ("subject", "a"), ("sensor", "b"), ("symbol", "c")], True)
@example([("subject", ":"), ("sensor", "b"), ("symbol", "c"), ("time", 1), ("time", 1.5)], False)
def test_what_the_compiled_decoder_reads_is_what_the_slow_one_reads(pairs, escaped):
    """Whatever comes twice, is escaped, or is no number: the message, or that there is none, is the same."""
    words = ",".join(f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=escaped)}" for name, value in pairs)
    raw = f"{{{words}}}".encode(errors="surrogatepass")
    assert read_by(_read, raw) == read_by(_object, raw)


def read_by(reader, raw):
    try:
        return _message(reader(raw), needs_time=False)
    except Refused as refused:
        return refused.reason


def test_ordinary_messages_are_not_read_slowly(monkeypatch):
    monkeypatch.setattr(messages, "_object", pytest.fail)
    assert parse_line(line(subject="a:b")).subject == "a:b"
    assert parse_line(line(symbol=None, reading=[1, 2.5])).reading == (1.0, 2.5)
