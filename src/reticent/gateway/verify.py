"""Verifies a ledger: chains and order, and with the policy every belief, recomputed.

Each entry is checked against the one before it, so that everything follows from the prior and from what was sent: the
first belief is recomputed from the prior, the next from the first, and so on. One pass, one entry in memory at a time.

The rule by which something was sent is taken from the entry, and not computed again: near the bound the program that
finds it turns the last digit, in which processors differ, into the second.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from reticent.errors import InputError
from reticent.gateway.entry import STEPS, Entry, carries
from reticent.gateway.ledger import NO_HEAD, Head, Ledger, LedgerTrouble
from reticent.gateway.standing import standing_of

if TYPE_CHECKING:
    import numpy as np

    from reticent.gateway.decisions import Standing
    from reticent.gateway.moving_runtime import MovingRuntime
    from reticent.gateway.moving_verify import Followed
    from reticent.gateway.runtime import Runtime

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
    clocks_set_back: int = 0
    """Stops by which an operator had times count anew, after a clock that was ahead."""


@dataclass
class _Seen:
    """What has been looked at so far."""

    subjects: int = 0
    entries: int = 0
    highest_confidence: float = 0.0
    most_bits: float = 0.0
    clocks_set_back: int = 0
    place: tuple[str, int] = ("", 0)

    def add(self, entry: Entry) -> None:
        self.entries += 1
        self.highest_confidence = max(self.highest_confidence, entry.confidence)
        self.most_bits = max(self.most_bits, entry.spent_bits)


class _NotSo(Exception):  # noqa: N818  (ends the look, is never seen outside)
    """A sentence on what is not as it must be."""


def verify(
    ledger: Ledger,
    runtime: "Runtime | MovingRuntime | None" = None,
    heads: Mapping[str, Head] | None = None,
    earlier: "Sequence[Runtime]" = (),
) -> Verdict:
    """Look at everything, up to the first fault.

    With a runtime beliefs, bits and the bound are checked too, under `earlier` policies by theirs; with the heads of an
    earlier export (number and hash of each subject's newest entry then) also that nothing of it is gone or rewritten.
    """
    seen, heads = _Seen(), heads or {}
    fault = None
    try:
        ledger.check()
        for subject in sorted({*ledger.subjects(), *heads}):
            seen.place = subject, 0
            _verify_subject(ledger, subject, _checks(runtime, earlier), heads.get(subject, NO_HEAD), seen)
            seen.subjects += 1
    except _NotSo as error:
        subject, number = seen.place
        fault = Fault(subject, number, f"Entry {number} of subject {subject!r} {error}")
    except LedgerTrouble as error:
        fault = Fault(*seen.place, str(error))
    found = (seen.subjects, seen.entries, seen.highest_confidence, seen.most_bits)
    return Verdict(*found, fault, seen.clocks_set_back)


def _verify_subject(
    ledger: Ledger, subject: str, check: Callable[[Entry | None, Entry], None], head: Head, seen: _Seen
) -> None:
    before: Entry | None = None
    for entry in ledger.entries(subject):
        seen.place = subject, entry.number
        _check_continues(before, entry)
        if entry.number == head[0] and entry.hash != head[1]:
            raise _NotSo("is not what the export holds: the ledger was rewritten.")
        check(before, entry)
        seen.add(entry)
        seen.clocks_set_back += before is not None and _sets_back(before, entry)
        before = entry
        seen.place = subject, entry.number + 1
    if before is None or before.number < head[0]:
        raise _NotSo(f"and all after it are gone: the export goes on to entry {head[0]}.")


def _checks(
    runtime: "Runtime | MovingRuntime | None", earlier: "Sequence[Runtime]"
) -> Callable[[Entry | None, Entry], None]:
    """What is checked of each entry of one subject, beside that it continues the chain."""
    if runtime is None:
        return _check_place
    from reticent.gateway.moving_runtime import MovingRuntime

    if isinstance(runtime, MovingRuntime):
        return partial(_check_moves, _followed(runtime))
    policies = {each.digest: each for each in (*earlier, runtime)}

    def check(before: Entry | None, entry: Entry) -> None:
        _check_session(before, entry)
        _check_follows(policies, before, entry)
        # A stop by which a subject is carried over releases nothing, whatever the next bound is.
        if before is None or not carries(before, entry):
            _check_bound(policies[entry.policy], entry)

    return check


def _followed(runtime: "MovingRuntime") -> "Followed":
    from reticent.gateway.moving_verify import Followed

    return Followed(runtime)


def _check_moves(followed: "Followed", before: Entry | None, entry: Entry) -> None:
    """Of a subject whose secret moves everything is followed from its first entry on."""
    if (wrong := followed.follow(before, entry)) is not None:
        raise _NotSo(wrong)


def _check_continues(before: Entry | None, entry: Entry) -> None:
    """Next number, hash of the one before, time not going back."""
    expected = 0 if before is None else before.number + 1
    if entry.number != expected:
        raise _NotSo(f"comes where entry {expected} should: entries are missing.")
    if entry.before != ("" if before is None else before.hash):
        raise _NotSo("does not hold the hash of the entry before it: the chain is broken.")
    if before is not None and _sets_back(before, entry):
        return
    if before is not None and entry.time < before.time:
        raise _NotSo("is older than the entry before it.")
    if before is not None and not _later(before, entry):
        raise _NotSo("sends a reading that is not newer than the one before it: perhaps the same one twice.")


def _check_place(before: Entry | None, entry: Entry) -> None:
    """Without a policy: the next step or session or, where time has steps, any later step."""
    if STEPS not in entry.policy:
        return _check_session(before, entry)
    later = entry.step == 0 if before is None else entry.step > before.step or before.symbol is None
    if not (later and (before.session if before else 0) <= entry.session <= entry.step):
        raise _NotSo(f"is of step {entry.step}, with steps open since {entry.session}, which cannot follow.")


def _check_session(before: Entry | None, entry: Entry) -> None:
    """Next step or next session."""
    if before is not None and (_sets_back(before, entry) or carries(before, entry)):
        return _check_ends_session(before, entry)
    started = 0 if before is None else before.session + 1
    goes_on = before is not None and before.symbol is not None and entry.session == before.session
    step = before.step + 1 if before is not None and goes_on else 0
    if not (goes_on or entry.session == started) or entry.step != step:
        raise _NotSo(f"is step {entry.step} of session {entry.session}, which cannot follow the entry before it.")


def _sets_back(before: Entry, entry: Entry) -> bool:
    """Whether this is a stop by which times count anew: see `reticent.gateway.holds`."""
    return entry.symbol is None and entry.time < before.time and entry.measured <= before.measured


def _check_ends_session(before: Entry, entry: Entry) -> None:
    if (entry.session, entry.step) != (before.session, before.step + (before.symbol is not None)):
        raise _NotSo("sets the clock back or changes the policy, but does not end the session that it is in.")


def _later(before: Entry, entry: Entry) -> bool:
    """Whether a newer reading was released; a stop releases none."""
    return entry.measured > before.measured if entry.symbol is not None else entry.measured == before.measured


def _check_follows(policies: "Mapping[str, Runtime]", before: Entry | None, entry: Entry) -> None:
    """What the entry says that the provider knows is what follows from what was sent, by the rule in the entry."""
    import numpy as np

    runtime = policies.get(entry.policy)
    if runtime is None:
        given = " and ".join(policies)
        raise _NotSo(
            f"was made under another policy, with digest {entry.policy}; that of the file given is {given}. "
            "Give that policy's file, or those of earlier ones by --earlier; if there was none, the entry was changed."
        )
    standing = runtime.first() if before is None else _known_before(policies, runtime, before, entry)
    if before is not None and entry.session > before.session:
        standing = runtime.next_session(standing)
    written, expected = standing_of(entry), _expected_belief(runtime, standing, entry)
    if written.belief.shape != expected.shape or np.max(np.abs(written.belief - expected)) > ROUNDING:
        raise _NotSo("holds a belief that does not follow from what was sent.")
    least, most = _bits_between(runtime, standing, entry)
    if not least - ROUNDING <= entry.spent_bits <= most + ROUNDING:
        between = f"{least}" if least == most else f"{least} to {most}"
        raise _NotSo(f"says {entry.spent_bits} bits were spent, but {between} follow from what was sent.")


def _known_before(policies: "Mapping[str, Runtime]", runtime: "Runtime", before: Entry, entry: Entry) -> "Standing":
    """What the provider knew before this entry, as the policy of this entry goes by it."""
    from reticent.gateway.migrate import carried_over

    if entry.policy == before.policy:
        return standing_of(before)
    if not carries(before, entry):
        raise _NotSo("goes on under another policy, to which nothing was carried over.")
    try:
        return carried_over(standing_of(before), policies[before.policy], runtime)
    except InputError as error:
        raise _NotSo(f"cannot be: {error}") from error


def _expected_belief(runtime: "Runtime", standing: "Standing", entry: Entry) -> "np.ndarray":
    if entry.symbol is None:
        if entry.chances is not None:
            raise _NotSo("is a stop, but holds a rule by which something was sent.")
        return standing.belief
    for kind, name, names in (("sensor", entry.sensor, runtime.sensors), ("symbol", entry.symbol, runtime.symbols)):
        if name not in names:
            raise _NotSo(f"has the {kind} {name!r}, which the policy's problem does not have.")
    symbol = runtime.symbols.index(entry.symbol)
    try:
        return runtime.heard(standing, runtime.sensors.index(entry.sensor), symbol, _rule(runtime, entry, symbol))
    except ValueError as error:
        raise _NotSo(f"cannot be: {error}") from error


def _rule(runtime: "Runtime", entry: Entry, symbol: int) -> "np.ndarray | None":
    """The chances of the entry, if they are some: a reading that is sent as it is stands for no other."""
    import numpy as np

    if not runtime.merges and entry.chances is None:
        return None
    readings = len(runtime.task.model.symbols)
    chances = np.array(entry.chances or ())
    if not runtime.merges or len(chances) != readings:
        raise _NotSo("does not hold the rule by which it was sent, or one that the policy does not have.")
    if not ((chances >= 0) & (chances <= 1 + ROUNDING)).all():
        raise _NotSo("holds chances that are not between 0 and 1.")
    if symbol < readings and not (chances[symbol] > 0 and np.count_nonzero(chances) == 1):
        raise _NotSo("was sent as it is, but by its rule it stands for other readings.")
    return chances


def _bits_between(runtime: "Runtime", standing: "Standing", entry: Entry) -> tuple[float, float]:
    """The least and the most that the ledger may say. What a rule says on average needs the whole rule, of which the
    entry holds its own symbol only; but nothing says more about the secret than was unknown of it."""
    if entry.symbol is None:
        return standing.spent_bits, standing.spent_bits
    if not runtime.merges:
        exact = standing.spent_bits + runtime.information_bits(standing, runtime.sensors.index(entry.sensor))
        return exact, exact
    from reticent.belief.information import entropy_bits

    return standing.spent_bits, standing.spent_bits + float(entropy_bits(runtime.own(standing).sum(1)))


def _check_bound(runtime: "Runtime", entry: Entry) -> None:
    bound, reached = runtime.task.bound, standing_of(entry)
    if runtime.over(reached):
        level, unit = bound.level(reached), "" if bound.unit == "probability" else f" {bound.unit}"
        raise _NotSo(f"brings the {bound.name} to {level}{unit}: the bound of {bound.number:g}{unit} is reached.")
