"""What comes in and what goes out, as JSON. Whatever does not fit is refused with a reason, never guessed at.

Most messages are read by a compiled decoder, which cannot tell whether a name comes twice: what it reads counts only if
there are as many colons as that takes. Everything else is read slowly, and what that says counts.

No sentence made here holds a reading: they go to logs.
"""

import json
import math
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NoReturn

import msgspec

# A message is a few names and one vector of numbers: what is longer than this is something else.
LONGEST_MESSAGE = 16_384
LONGEST_NAME = 128
# Names that were found right are not looked at again.
REMEMBERED_NAMES = 65_536
# What topics of MQTT give a meaning to.
RESERVED = frozenset("/+#")
# Printable by their category, and yet nothing is seen of them: fillers, joiners, selectors of variants, an empty cell.
UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
VALUES = ("symbol", "reading", "sample")
FIELDS = frozenset(("subject", "sensor", "time", "id", *VALUES))

# What json writes, compiled.
_quoted = json.encoder.encode_basestring

Reason = Literal["malformed", "oversized", "retained", "overflow"]


class Refused(Exception):  # noqa: N818  (it is no error of the gateway)
    """A message that cannot be read. `reason` is the counter that it goes to."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason: Reason = reason


@dataclass(frozen=True, slots=True)
class Message:
    """What one sensor of one subject says: the name of a symbol, a reading summed up, or one raw sample."""

    subject: str
    sensor: str
    time: float | None = None
    symbol: str | None = None
    reading: tuple[float, ...] | None = None
    sample: tuple[float, ...] | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """All that leaves the device: what was sent, and its place. A stop has the sensor "stop" and no symbol."""

    subject: str
    session: int
    step: int
    sensor: str
    symbol: str | None

    def to_json(self, with_subject: bool = True) -> bytes:
        """One line without its end: the same bytes whenever it is sent again."""
        whose = f'"subject": {_quoted(self.subject)}, ' if with_subject else ""
        what = "" if self.symbol is None else f', "symbol": {_quoted(self.symbol)}'
        place = f'"session": {self.session}, "step": {self.step}, "sensor": {_quoted(self.sensor)}'
        return f"{{{whose}{place}{what}}}".encode()


class _Plain(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The fields of a message, before anything but their types is checked."""

    subject: str | msgspec.UnsetType = msgspec.UNSET
    sensor: str | msgspec.UnsetType = msgspec.UNSET
    time: float | msgspec.UnsetType = msgspec.UNSET
    id: str | msgspec.UnsetType = msgspec.UNSET
    symbol: str | msgspec.UnsetType = msgspec.UNSET
    reading: tuple[float, ...] | msgspec.UnsetType = msgspec.UNSET
    sample: tuple[float, ...] | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_Plain).decode


def _read(raw: bytes) -> dict[str, Any]:
    """The fields of a message, each of them once, of the right type or not."""
    if len(raw) > LONGEST_MESSAGE:
        raise Refused("oversized", f"a message is longer than {LONGEST_MESSAGE} bytes")
    # A backslash could write a colon without one.
    if b"\\" not in raw:
        try:
            plain = _decode(raw)
        except (msgspec.MsgspecError, ValueError):
            return _object(raw)
        fields = {name: value for name in FIELDS if (value := getattr(plain, name)) is not msgspec.UNSET}
        colons = sum(value.count(":") for value in fields.values() if type(value) is str)
        if raw.count(b":") == len(fields) + colons:
            return fields
    return _object(raw)


def parse_line(line: bytes, needs_time: bool = False) -> Message:
    """A message from one line of JSON."""
    return _message(_read(line), needs_time)


def parse_payload(subject: str, sensor: str, payload: bytes) -> Message:
    """A message whose subject and sensor were said by its topic. A broker may bring it twice: it must say its time."""
    fields = _read(payload)
    if twice := sorted({"subject", "sensor"} & set(fields)):
        raise Refused("malformed", f"a payload says {twice}, but the topic does already")
    return _message({**fields, "subject": subject, "sensor": sensor}, needs_time=True)


def check_subject(name: Any) -> str:
    """The name, if it is one that every transport, ledger and page can carry, and that is written in one way only."""
    # Only a text can be one that was found right before.
    return _checked(name) if isinstance(name, str) else _checked.__wrapped__(name)


@lru_cache(REMEMBERED_NAMES)
def _checked(name: Any) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise Refused("malformed", f"a subject is a name of 1 to {LONGEST_NAME} characters")
    if (
        not name.isprintable()
        or UNSEEN.search(name)
        or name != name.strip()
        or not unicodedata.is_normalized("NFC", name)
    ):
        raise Refused("malformed", "a subject has characters that cannot be seen, or that are not in normal form")
    if RESERVED & set(name):
        raise Refused("malformed", "a subject has one of the characters / + #, which topics give a meaning to")
    return name


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_once, parse_constant=_not_a_number)
    except (ValueError, RecursionError):
        # The decoder's own words may quote the message.
        raise Refused("malformed", "a message is not JSON that can be read, or says a name twice") from None
    if not isinstance(found, dict):
        raise Refused("malformed", "a message is not a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name comes twice")
    return dict(pairs)


def _not_a_number(_: str) -> NoReturn:
    raise ValueError("not a finite number")


def _message(fields: dict[str, Any], needs_time: bool) -> Message:
    if not fields.keys() <= FIELDS:
        raise Refused("malformed", f"a message has fields other than {sorted(FIELDS)}")
    given = [name for name in VALUES if name in fields]
    if len(given) != 1:
        raise Refused("malformed", f"a message has one of {', '.join(VALUES)}, not {len(given)}")
    if "sample" in given and "time" not in fields:
        raise Refused("malformed", "a sample does not say its time")
    if needs_time and "time" not in fields:
        raise Refused("malformed", "a message does not say its time, so if it came twice nobody would know: add 'time'")
    sensor = fields.get("sensor")
    if not isinstance(sensor, str):
        raise Refused("malformed", "a message does not name its sensor")
    return Message(
        subject=check_subject(fields.get("subject")),
        sensor=sensor,
        time=_number(fields["time"], "time") if "time" in fields else None,
        id=_name(fields["id"], "id") if "id" in fields else None,
        symbol=_name(fields["symbol"], "symbol") if "symbol" in fields else None,
        reading=_vector(fields["reading"], "reading") if "reading" in fields else None,
        sample=_vector(fields["sample"], "sample") if "sample" in fields else None,
    )


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_NAME:
        raise Refused("malformed", f"{what!r} is not a text of 1 to {LONGEST_NAME} characters")
    return value


def _vector(value: Any, what: str) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise Refused("malformed", f"{what!r} is not a list of numbers")
    return tuple(_number(each, what) for each in value)


def _number(value: Any, what: str) -> float:
    if type(value) not in (int, float):
        raise Refused("malformed", f"{what!r} holds something that is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Refused("malformed", f"{what!r} holds a number that is not finite")
    return number
