"""One entry of the ledger: what left, what the provider knows since, and the hash that ties it to the entry before.

The hash is SHA-256 over canonical JSON: the fields by name, in alphabetical order, without spaces, ASCII only, floats
in their shortest form that reads back as the same number (Python's repr). Nothing else enters it, so that anybody can
compute it: docs/ledger.md.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reticent.errors import InputError

STOP = "stop"
# Between the digest of a policy and the seconds of its steps, where time has steps.
STEPS = "/"
COLUMNS = (
    "subject",
    "number",
    "time",
    "measured",
    "session",
    "step",
    "sensor",
    "symbol",
    "chances",
    "belief",
    "spent_bits",
    "policy",
    "before",
    "hash",
)
# A time that no clock will say for three thousand years, and that every calendar still knows.
LATEST = 1e11
REALS = ("time", "measured", "spent_bits")
WHOLES, TEXTS = ("number", "session", "step"), ("subject", "sensor", "policy", "before", "hash")
# Whole numbers that every database and every reader of JSON holds exactly.
MOST = 2**53
# What a row that was damaged raises when it is read as an entry; InputError is a ValueError.
NONSENSE = (ValueError, TypeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Entry:
    """A release or a stop of one subject. `belief` and `spent_bits` are what holds after it."""

    subject: str
    number: int
    """0, 1, 2, ... per subject: the place in the chain."""
    time: float
    """Seconds since the epoch, by the gateway's clock."""
    measured: float
    """When the newest reading of this subject that was released so far was measured, by its sensor's clock. It stays
    here: by it a reading that comes again is known."""
    session: int
    step: int
    """Of the release within the session, from 0; for a stop: releases made."""
    sensor: str
    """A sensor's name, or "stop"."""
    symbol: str | None
    """What was sent; nothing for a stop."""
    chances: tuple[float, ...] | None
    """The public rule in force, as far as this symbol goes: of each reading the chance of being sent as this symbol.
    None where readings are sent as they are, and for a stop."""
    belief: tuple[tuple[float, ...], ...]
    """[secret][useful]; of a panel of providers those of all, one below another, the model's first."""
    spent_bits: float
    policy: str
    """Digest of the policy file; where the secret moves, also the seconds of a step."""
    before: str
    """Hash of the entry before; empty for number 0."""

    def __post_init__(self) -> None:
        if not self.subject or "\0" in self.subject or not encodable(self.subject):
            raise InputError(f"A subject needs a name that can be written down, and {self.subject!r} is none.")
        if (self.symbol is None) != (self.sensor == STOP):
            raise InputError(f"A release has a symbol and a stop has none, but {self.sensor!r} has {self.symbol!r}.")
        if max(self.number, self.session, self.step) >= MOST:
            raise InputError(f"Entry {self.number} of {self.subject!r} has a number that nobody can have counted to.")
        if min(self.number, self.session, self.step) < 0 or (self.number == 0) != (self.before == ""):
            raise InputError(f"Entry {self.number} of {self.subject!r} does not say which entry was before it.")
        if not all(map(math.isfinite, (self.time, self.measured, self.spent_bits))):
            raise InputError(f"Entry {self.number} of {self.subject!r} holds numbers that are not finite.")
        if not (0 <= self.time < LATEST and self.measured < LATEST and self.spent_bits >= 0):
            raise InputError(f"Entry {self.number} of {self.subject!r} has a time or bits that cannot be.")
        if not all(map(_finite, (*self.belief, self.chances or ()))):
            raise InputError(f"Entry {self.number} of {self.subject!r} has a belief or chances that are not finite.")
        if len({len(row) for row in self.belief} - {0}) != 1 or () in self.belief:
            raise InputError(f"Entry {self.number} of {self.subject!r} has a belief that is no table.")

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the canonical JSON of all fields."""
        return hashlib.sha256(self.canonical().encode("ascii")).hexdigest()

    def canonical(self) -> str:
        """The text that is hashed."""
        # Minus zero is zero: databases do not tell them apart.
        measured, spent_bits, time = self.measured + 0.0, self.spent_bits + 0.0, self.time + 0.0
        symbol = "null" if self.symbol is None else _quoted(self.symbol)
        return (
            f'{{"before":{_quoted(self.before)},"belief":{self.belief_text},"chances":{self.chances_text or "null"},'
            f'"measured":{measured!r},"number":{self.number},"policy":{_quoted(self.policy)},'
            f'"sensor":{_quoted(self.sensor)},"session":{self.session},"spent_bits":{spent_bits!r},'
            f'"step":{self.step},"subject":{_quoted(self.subject)},"symbol":{symbol},"time":{time!r}}}'
        )

    @cached_property
    def belief_text(self) -> str:
        """The belief as canonical JSON."""
        return _canonical([[cell + 0.0 for cell in row] for row in self.belief])

    @cached_property
    def chances_text(self) -> str | None:
        """The chances as canonical JSON."""
        return None if self.chances is None else _canonical([chance + 0.0 for chance in self.chances])

    @property
    def confidence(self) -> float:
        """The surest provider's confidence in the secret after it: max over s of the belief in s."""
        return max(math.fsum(row) for row in self.belief)


def carries(before: Entry, entry: Entry) -> bool:
    """Whether this is a stop by which a subject was carried over."""
    return entry.symbol is None and entry.policy != before.policy


def row_of(entry: Entry) -> tuple[Any, ...]:
    """The entry as a row of a table, in the order of COLUMNS; belief and chances as JSON text."""
    fields = {**vars(entry), "belief": entry.belief_text, "chances": entry.chances_text, "hash": entry.hash}
    return tuple(fields[name] for name in COLUMNS)


def entry_of(row: Sequence[Any]) -> tuple[Entry, str]:
    """The entry of a row and the hash that was written with it; raises one of NONSENSE where it is none."""
    fields: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    _check_types(fields)
    stored = fields.pop("hash")
    belief = tuple(tuple(map(float, cells)) for cells in json.loads(fields["belief"]))
    chances = None if fields["chances"] is None else tuple(map(float, json.loads(fields["chances"])))
    numbers = {name: float(fields[name]) for name in REALS}
    return Entry(**{**fields, **numbers, "belief": belief, "chances": chances}), stored


def _check_types(fields: dict[str, Any]) -> None:
    """A database may hand back anything in place of what was written."""
    texts = [*(fields[name] for name in TEXTS), fields["symbol"] or ""]
    if not all(type(text) is str for text in texts) or not all(type(fields[name]) is int for name in WHOLES):
        raise InputError("The row holds something else in place of a text or a whole number.")


_canonical = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_quoted = json.encoder.encode_basestring_ascii


def _finite(cells: tuple[float, ...]) -> bool:
    """Whether all are finite: a sum is not where one of them is not, but also where it is too large."""
    return math.isfinite(sum(cells)) or all(map(math.isfinite, cells))


def encodable(text: str) -> bool:
    """Whether the text can be written down: half a pair of surrogates cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
