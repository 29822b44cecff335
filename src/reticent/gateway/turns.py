"""One subject's turn: when a session begins, which sensor is asked, what is sent, when it stops and rests.

From a place, a reading, the clock and draws to the next place and the entries that must be on disk before
anything of it holds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reticent.gateway.drift import Tally
from reticent.gateway.entry import STOP, Entry
from reticent.gateway.holds import DRIFTED, STARTS_ANEW
from reticent.gateway.ledger import standing_of
from reticent.gateway.runtime import Runtime, Sent, Standing
from reticent.gateway.subjects import Place

OTHER_POLICY = (
    "The ledger holds this subject's belief under another policy file, which does not carry over. Start with that "
    "policy file, or with a ledger of its own; "
) + STARTS_ANEW

STRANGE = (
    "This subject's newest entry in the ledger holds a belief that cannot be under this policy, so nothing of it is "
    "released: the ledger was edited. `reticent ledger verify --policy` says more; put the newest copy back."
)


class What(NamedTuple):
    """What an entry tells: a release with its rule, or a stop."""

    step: int
    sensor: str
    symbol: str | None = None
    chances: np.ndarray | None = None


@dataclass(frozen=True)
class Turns:
    """How subjects come to speak.

    `rest`: seconds between a stop and the next session of the same subject. `rng` makes the draws that decide what is
    merged: anew for every release, so that who has seen many still cannot tell the next.
    """

    runtime: Runtime
    rest: float
    drift_check: bool
    rng: Callable[[], np.random.Generator]

    def restored(self, last: Entry | None) -> Place:
        """The place of a subject whose newest entry in the ledger is this one."""
        if last is None:
            return Place(self.runtime.first())
        place = Place(standing_of(last), last.number, last.hash, last.time, last.measured)
        if last.policy != self.runtime.digest:
            return replace(place, unusable=OTHER_POLICY)
        if not self.runtime.could_be(place.standing):
            return replace(place, unusable=STRANGE)
        return replace(place, resting_since=last.time) if last.sensor == STOP else place

    def awake(self, name: str, place: Place, now: float) -> tuple[Place, list[Entry]]:
        """The place with a decision, if it is time for one. A session in which nothing would be said is not begun."""
        if place.decision is not None or place.blocked or place.exhausted:
            return place, []
        if place.resting_since is None:
            return self._asked(name, place, now, self.rng())
        if now - place.resting_since < self.rest:
            return place, []
        said = place.standing.step > 0
        fresh = self.runtime.next_session(place.standing) if said else place.standing
        decision = self.runtime.decide(fresh, self.rng())
        if decision.sensor is None:
            return replace(place, resting_since=now, exhausted=self.runtime.exhausted(fresh, decision)), []
        return replace(place, standing=fresh, resting_since=None, decision=decision), []

    def release(self, name: str, place: Place, reading: int, measured: float, now: float) -> tuple[Place, list[Entry]]:
        """Send what stands for this reading of the asked sensor, and decide what comes next."""
        assert place.decision is not None
        assert place.decision.sensor is not None
        sensor, rng = place.decision.sensor, self.rng()
        sent, standing = self.runtime.release(place.standing, place.decision, reading, rng)
        what = What(place.standing.step, self.runtime.sensors[sensor], self.runtime.symbols[sent.symbol], sent.chances)
        entry = self._entry(name, replace(place, measured=measured), standing, what, now)
        tallies = self._counted(place.tallies, sensor, sent)
        place = Place(standing, entry.number, entry.hash, entry.time, measured, tallies=tallies)
        if self.drift_check and tallies[sensor].drifted:
            return replace(place, held=DRIFTED), [entry]
        place, more = self._asked(name, place, now, rng)
        return place, [entry, *more]

    def _asked(self, name: str, place: Place, now: float, rng: np.random.Generator) -> tuple[Place, list[Entry]]:
        """The place with the next decision; or with a stop, which is told if anything was said."""
        decision = self.runtime.decide(place.standing, rng)
        if decision.sensor is not None:
            return replace(place, decision=decision), []
        if place.standing.step == 0:
            exhausted = self.runtime.exhausted(place.standing, decision)
            return replace(place, resting_since=now, exhausted=exhausted), []
        entry = self._entry(name, place, place.standing, What(place.standing.step, STOP), now)
        return replace(place, number=entry.number, hash=entry.hash, time=entry.time, resting_since=now), [entry]

    def _entry(self, name: str, place: Place, after: Standing, what: What, now: float) -> Entry:
        return Entry(
            subject=name,
            number=place.number + 1,
            # Another gateway's clock may be a little ahead: within a subject time does not go back.
            time=max(now, place.time),
            measured=place.measured,
            session=after.session,
            step=what.step,
            sensor=what.sensor,
            symbol=what.symbol,
            chances=None if what.chances is None else tuple(what.chances.tolist()),
            belief=tuple(map(tuple, after.belief.tolist())),
            spent_bits=float(after.spent_bits),
            policy=self.runtime.digest,
            before=place.hash,
        )

    def _counted(self, tallies: dict[int, Tally], sensor: int, sent: Sent) -> dict[int, Tally]:
        return {**tallies, sensor: tallies.get(sensor, Tally()).after(sent.surprise)}
