"""Holds: why nothing of a subject, or of everybody, is released, and how that is lifted.

They are stored in the ledger, outside the hash chain, so that they outlive a gateway and all that share the ledger see
them.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reticent.gateway.entry import STOP, Entry
from reticent.gateway.ledger import CLOCK, EVERYBODY, Damaged, Ledger

_log = logging.getLogger("reticent.gateway")

# Codes that are stored in the ledger; SENTENCES words them.
DRIFTED, PAUSED, BY_HAND = "drift", "paused", "by hand"
# Largest tolerated difference between clocks of gateways that share a ledger.
SKEW_SECONDS = 5.0
# How far a sensor's clock may be ahead. A reading from further ahead would make those after it look stale.
AHEAD_SECONDS = 2.0
# Ends each sentence that advises a new ledger.
STARTS_ANEW = (
    "in a new ledger every subject starts from the prior. The provider does not forget what was released before, so "
    "the bound then covers only what is released from then on."
)
SENTENCES = {
    DRIFTED: "What this subject's sensors say no longer fits the model, so nothing more of it is released, also after "
    "a restart. If you know why and it may go on, lift it with `reticent ledger holds lift`, or start with "
    "--no-drift-check. Otherwise fit and train on recordings like these and start with a new ledger; " + STARTS_ANEW,
    PAUSED: "Paused by hand: nothing is released, also after a restart. Resume it to go on.",
    BY_HAND: "Held by hand: nothing of this subject is released, also after a restart. Lift it with `reticent ledger "
    "holds lift` to go on.",
}


@dataclass(frozen=True)
class Hold:
    """A subject, or EVERYBODY, of whom nothing is released, and why."""

    name: str
    why: str


def sentence_of(why: str | None) -> str | None:
    """The sentence for a stored reason of a hold."""
    return SENTENCES.get(why, why) if why else None


def all_holds(ledger: Ledger, now: float) -> Iterator[Hold]:
    """All stored holds, and the subjects whose newest entry is ahead of this clock or damaged."""
    held = ledger.holds()
    for name, why in held.items():
        yield Hold(name, sentence_of(why) or why)
    for name in ledger.subjects():
        if name not in held and (why := _silent(ledger, name, now)):
            yield Hold(name, why)


def _silent(ledger: Ledger, subject: str, now: float) -> str | None:
    """Why a subject without a stored hold is silent, if it is."""
    try:
        last = ledger.last(subject)
    except Damaged as error:
        return str(error)
    return ahead(last, now) if last is not None else None


def ahead(last: Entry, now: float) -> str | None:
    """A sentence if a subject's newest entry is ahead of the clock, else None."""
    if last.time <= now + SKEW_SECONDS:
        return None
    moment = datetime.fromtimestamp(last.time, UTC).isoformat(timespec="seconds")
    return (
        f"The newest entry is of {moment}, {last.time - now:,.0f} s ahead of this clock. Set the clocks right: the "
        "subject goes on by itself at that time or, once it is lifted, at once."
    )


def lift(ledger: Ledger, name: str, now: float) -> bool:
    """Lift the hold of a subject, or of EVERYBODY; returns whether there was one.

    Belief and bits spent stay. Raises `Damaged`, and lifts nothing, while the newest entry is damaged.
    """
    last = None if name == EVERYBODY else ledger.last(name)
    held = ledger.held([name, CLOCK + name])
    if name in held:
        ledger.hold(name, None)
    if last is None or ahead(last, now) is None:
        return name in held
    # Noted first: up to that time, a reading that comes again is recognised by a lookup of its time in the ledger.
    ledger.hold(CLOCK + name, repr(max(clock_note(held, name), last.measured)))
    return all(ledger.append([clock_stop(last, now)]))


def clock_note(held: Mapping[str, str], subject: str) -> float:
    """The time up to which readings of a subject may have been released under a clock that was ahead."""
    if CLOCK + subject not in held:
        return -math.inf
    try:
        noted = float(held[CLOCK + subject])
    except ValueError:
        return math.inf
    return math.inf if math.isnan(noted) else noted


def clock_stop(last: Entry, now: float) -> Entry:
    """A stop with the right time after an entry that is ahead of it: later entries are ordered from here on.

    Only readings measured after it are released, and none that was released before.
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


def quarantine(ledger: Ledger, error: Damaged, held: dict[str, str]) -> None:
    """Hold the subject of a damaged entry, unless it is held already, and add it to `held`.

    Nothing more is released of it until somebody has repaired the entry and lifted the hold.
    """
    name = error.subject
    _log.warning("%s Nothing of this subject is released.", error)
    if name is None:
        return
    held |= ledger.held([name])
    if name not in held:
        ledger.hold(name, str(error))
        held[name] = str(error)
