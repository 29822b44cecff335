"""Holds: why nothing of a subject, or of everybody, is released, and how that is lifted.

They lie in the ledger, beside the chain, so that they outlive a gateway and are seen by all that share the ledger.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reticent.gateway.entry import STOP, Entry
from reticent.gateway.ledger import CLOCK, EVERYBODY, Damaged, Ledger

# What the ledger keeps in place of a sentence that another version may word otherwise.
DRIFTED, PAUSED = "drift", "paused"
# The clocks of gateways that share a ledger differ by this much at most.
SKEW_SECONDS = 5.0
# Clocks of sensors differ by this much at most. A reading from further ahead would make those after it look old.
AHEAD_SECONDS = 2.0
# Ends a sentence that advises a new ledger.
STARTS_ANEW = (
    "there everybody starts from the prior. The provider does not: what it was told before it still knows, and the "
    "bound holds anew, for what is said from then on."
)
SENTENCES = {
    DRIFTED: "What this subject's sensors say no longer fits the model, so nothing more of it is released, also after "
    "a restart. If you know why and it may go on, lift it with `reticent ledger holds lift`, or start with "
    "--no-drift-check. Else fit and train anew on recordings like these and start with a ledger of its own; "
    + STARTS_ANEW,
    PAUSED: "Paused by hand: nothing is released, also after a restart. Resume it to go on.",
}


@dataclass(frozen=True)
class Hold:
    """One of whom nothing is released, a subject or EVERYBODY, and why."""

    name: str
    why: str


def sentence_of(why: str | None) -> str | None:
    """What the ledger says of a hold, in words."""
    return SENTENCES.get(why, why) if why else None


def all_holds(ledger: Ledger, now: float) -> Iterator[Hold]:
    """Everybody who is held, and everybody whose newest entry is ahead of this clock or cannot be read."""
    held = ledger.holds()
    for name, why in held.items():
        yield Hold(name, sentence_of(why) or why)
    for name in ledger.subjects():
        if name not in held and (why := _silent(ledger, name, now)):
            yield Hold(name, why)


def _silent(ledger: Ledger, subject: str, now: float) -> str | None:
    """Why a subject that nobody holds is silent all the same."""
    try:
        last = ledger.last(subject)
    except Damaged as error:
        return str(error)
    return ahead(last, now) if last is not None else None


def ahead(last: Entry, now: float) -> str | None:
    """Whether a subject's newest entry is ahead of the clock, in words."""
    if last.time <= now + SKEW_SECONDS:
        return None
    moment = datetime.fromtimestamp(last.time, UTC).isoformat(timespec="seconds")
    return (
        f"The newest entry is of {moment}, {last.time - now:,.0f} s ahead of this clock. Set the clocks right: the "
        "subject goes on by itself at that time or, once it is lifted, at once."
    )


def lift(ledger: Ledger, name: str, now: float) -> bool:
    """Release again of a subject, or of EVERYBODY; returns whether there was anything to lift.

    Nothing that was spent is forgotten. Where the newest entry is damaged nothing is lifted: `Damaged` says so.
    """
    last = None if name == EVERYBODY else ledger.last(name)
    held = ledger.held([name, CLOCK + name])
    if name in held:
        ledger.hold(name, None)
    if last is None or ahead(last, now) is None:
        return name in held
    # First: until those times have passed, a reading that was released with one of them is known by it.
    ledger.hold(CLOCK + name, repr(max(clock_note(held, name), last.measured)))
    return all(ledger.append([clock_stop(last, now)]))


def clock_note(held: Mapping[str, str], subject: str) -> float:
    """Up to which time readings of a subject may have been released by a clock that was ahead."""
    if CLOCK + subject not in held:
        return -math.inf
    try:
        noted = float(held[CLOCK + subject])
    except ValueError:
        return math.inf
    return math.inf if math.isnan(noted) else noted


def clock_stop(last: Entry, now: float) -> Entry:
    """A stop by the right clock after an entry that is ahead of it: from here on times count anew.

    Only readings that are measured after it are released, and none that was released before.
    """
    return replace(
        last,
        number=last.number + 1,
        time=now,
        measured=min(last.measured, now + AHEAD_SECONDS),
        step=last.step + (last.symbol is not None),
        sensor=STOP,
        symbol=None,
        chances=None,
        before=last.hash,
    )
