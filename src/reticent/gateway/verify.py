"""Does a ledger hold together? The chain, the order, and with the policy every belief in it, recomputed.

Each entry is checked against the one before it, so that everything follows from the prior and from what was sent: the
first belief is recomputed from the prior, the next from the first, and so on. One pass, one entry in memory at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.gateway.entry import Entry
from reticent.gateway.ledger import NO_HEAD, Head, Ledger, LedgerTrouble, standing_of

if TYPE_CHECKING:
    from reticent.gateway.runtime import Runtime, Standing

# Of the same sums on two machines.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Fault:
    """The first thing that is not as it must be, and where."""

    subject: str
    number: int
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What was looked at, up to the fault if there is one."""

    subjects: int
    entries: int
    highest_confidence: float
    most_bits: float
    fault: Fault | None


@dataclass
class _Seen:
    """What has been looked at so far."""

    subjects: int = 0
    entries: int = 0
    highest_confidence: float = 0.0
    most_bits: float = 0.0
    place: tuple[str, int] = ("", 0)

    def add(self, entry: Entry) -> None:
        self.entries += 1
        self.highest_confidence = max(self.highest_confidence, entry.confidence)
        self.most_bits = max(self.most_bits, entry.spent_bits)


class _NotSo(Exception):  # noqa: N818  (ends the look, is never seen outside)
    """A sentence on what is not as it must be."""


def verify(ledger: Ledger, runtime: "Runtime | None" = None, heads: Mapping[str, Head] | None = None) -> Verdict:
    """Look at everything, up to the first fault.

    With a runtime beliefs, bits and the bound are checked too; with the heads of an earlier export (number and hash of
    each subject's newest entry then) also that nothing of it is gone or rewritten.
    """
    seen, heads = _Seen(), heads or {}
    fault = None
    try:
        ledger.check()
        for subject in sorted({*ledger.subjects(), *heads}):
            seen.place = subject, 0
            _verify_subject(ledger, subject, runtime, heads.get(subject, NO_HEAD), seen)
            seen.subjects += 1
    except _NotSo as error:
        subject, number = seen.place
        fault = Fault(subject, number, f"Entry {number} of subject {subject!r} {error}")
    except LedgerTrouble as error:
        fault = Fault(*seen.place, str(error))
    return Verdict(seen.subjects, seen.entries, seen.highest_confidence, seen.most_bits, fault)


def _verify_subject(ledger: Ledger, subject: str, runtime: "Runtime | None", head: Head, seen: _Seen) -> None:
    before: Entry | None = None
    for entry in ledger.entries(subject):
        seen.place = subject, entry.number
        _check_continues(before, entry)
        if entry.number == head[0] and entry.hash != head[1]:
            raise _NotSo("is not what the export holds: the ledger was rewritten.")
        if runtime is not None:
            _check_recomputed(runtime, before, entry)
            _check_bound(runtime, entry)
        seen.add(entry)
        before = entry
        seen.place = subject, entry.number + 1
    if before is None or before.number < head[0]:
        raise _NotSo(f"and all after it are gone: the export goes on to entry {head[0]}.")


def _check_continues(before: Entry | None, entry: Entry) -> None:
    """Next number, hash of the one before, time not going back, next step or next session."""
    expected = 0 if before is None else before.number + 1
    if entry.number != expected:
        raise _NotSo(f"comes where entry {expected} should: entries are missing.")
    if entry.before != ("" if before is None else before.hash):
        raise _NotSo("does not hold the hash of the entry before it: the chain is broken.")
    if before is not None and entry.time < before.time:
        raise _NotSo("is older than the entry before it.")
    started = 0 if before is None else before.session + 1
    goes_on = before is not None and before.symbol is not None and entry.session == before.session
    step = before.step + 1 if before is not None and goes_on else 0
    if not (goes_on or entry.session == started) or entry.step != step:
        raise _NotSo(f"is step {entry.step} of session {entry.session}, which cannot follow the entry before it.")


def _check_recomputed(runtime: "Runtime", before: Entry | None, entry: Entry) -> None:
    """What the entry says that the provider knows is what follows from what was sent."""
    import numpy as np

    if entry.policy != runtime.digest:
        raise _NotSo(f"was made under another policy, with digest {entry.policy}. Give that policy's file.")
    expected, written = _expected(runtime, before, entry), standing_of(entry)
    if written.belief.shape != expected.belief.shape or np.max(np.abs(written.belief - expected.belief)) > ROUNDING:
        raise _NotSo("holds a belief that does not follow from what was sent.")
    if abs(written.spent_bits - expected.spent_bits) > ROUNDING:
        raise _NotSo(f"says {written.spent_bits} bits were spent, but {expected.spent_bits} follow from what was sent.")


def _expected(runtime: "Runtime", before: Entry | None, entry: Entry) -> "Standing":
    standing = runtime.first() if before is None else standing_of(before)
    if before is not None and entry.session > before.session:
        standing = runtime.next_session(standing)
    if entry.symbol is None:
        return standing
    for kind, name, names in (("sensor", entry.sensor, runtime.sensors), ("symbol", entry.symbol, runtime.symbols)):
        if name not in names:
            raise _NotSo(f"has the {kind} {name!r}, which the policy's problem does not have.")
    try:
        return runtime.follow(standing, runtime.sensors.index(entry.sensor), runtime.symbols.index(entry.symbol))
    except ValueError as error:
        raise _NotSo(f"cannot be: {error}") from error


def _check_bound(runtime: "Runtime", entry: Entry) -> None:
    from reticent.problem.bound import ConfidenceBound, InformationBound

    bound = runtime.task.bound
    if isinstance(bound, ConfidenceBound) and not entry.confidence < bound.limit:
        raise _NotSo(f"lifts the confidence to {entry.confidence}: the bound of {bound.limit:g} is reached.")
    if isinstance(bound, InformationBound) and not entry.spent_bits < bound.limit_bits:
        raise _NotSo(f"brings the ledger to {entry.spent_bits} bits: the bound of {bound.limit_bits:g} is reached.")
