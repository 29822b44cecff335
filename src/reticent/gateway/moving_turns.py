"""Transitions of a subject whose secret moves: time passes, a sensor is asked or none, something is sent.

The same verbs as `reticent.gateway.turns`, so that one decider serves both. There are no sessions and no stops: in each
step of the wall clock there is one decision and at most one release.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from reticent.errors import InputError
from reticent.gateway.decisions import Decision
from reticent.gateway.draws import Draws
from reticent.gateway.drift import Tally
from reticent.gateway.entry import Entry
from reticent.gateway.holds import DRIFTED
from reticent.gateway.ledger import Ledger
from reticent.gateway.moving_runtime import MovingRuntime, MovingStanding
from reticent.gateway.subjects import SubjectState
from reticent.gateway.turns import OTHER_POLICY, STRANGE, Reading, Turns

# Entries that are read at once, going back.
AT_ONCE = 64


@dataclass(frozen=True)
class MovingTurns:
    """The transitions under one policy; `rng` makes the source of each draw."""

    runtime: MovingRuntime
    ledger: Ledger
    drift_check: bool
    rng: Callable[[], Draws]

    def restored(self, last: Entry | None) -> SubjectState:
        """The state of a subject whose newest entry in the ledger is this one; None if it has none."""
        if last is None:
            return SubjectState(self.runtime.first())
        state = SubjectState(self.runtime.first(), last.number + 1, last.hash, last.time, last.measured)
        if last.policy != self.runtime.mark:
            return replace(state, unusable=OTHER_POLICY)
        try:
            standing = self.runtime.replayed(self._needed(last), self.runtime.step_at(last.time))
        except InputError:
            return replace(state, unusable=STRANGE)
        return replace(state, standing=standing)

    def _needed(self, last: Entry) -> list[Entry]:
        """The entries from before all moments that are still open, and all bits that still count, after the last."""
        since = min(last.session, last.step - self.runtime.rules.window)
        found, beyond = [last], last.number
        while beyond > 0 and found[0].step > since:
            entries, damaged = self.ledger.between(last.subject, max(beyond - AT_ONCE, 0), beyond)
            if damaged:
                raise damaged[0]
            found, beyond = [*entries, *found], max(beyond - AT_ONCE, 0)
        before = [place for place, entry in enumerate(found) if entry.step <= since and entry.symbol is not None]
        return found[before[-1] if before else 0 :]

    def due(self, state: SubjectState, now: float) -> MovingStanding | None:
        """The standing of the present step, if nothing was decided in it yet."""
        standing: MovingStanding = state.standing
        at = self.runtime.step_at(max(now, state.time))
        if state.blocked or (standing.settled and at <= standing.at):
            return None
        return self.runtime.passed(standing, at)

    def decide(self, standings: Sequence[MovingStanding]) -> list[Decision | InputError]:
        """The decisions that are due there; or why there is none."""
        return [self._decided(standing) for standing in standings]

    def _decided(self, standing: MovingStanding) -> Decision | InputError:
        try:
            return self.runtime.decide(standing, self.rng())
        except InputError as error:
            return error

    def asked(
        self, name: str, state: SubjectState, due: MovingStanding, decision: Decision, now: float
    ) -> tuple[SubjectState, list[Entry]]:
        """The state with the decision of this step; silence leaves nothing behind."""
        del name, now
        waits = None if decision.sensor is None else decision
        return replace(state, standing=replace(due, settled=True), decision=waits), []

    def release(self, name: str, state: SubjectState, reading: Reading, now: float) -> tuple[SubjectState, Entry]:
        """Release this reading, or what is sent in its place, of the sensor that was asked."""
        if state.decision is None or state.decision.sensor != reading.sensor:
            raise InputError("Only a reading of the asked sensor can be released.")
        sent, after = self.runtime.release(state.standing, state.decision, reading.code, self.rng())
        entry = Entry(
            subject=name,
            number=state.entries,
            # Another gateway's clock may be a little ahead: times of a subject must not decrease.
            time=max(now, state.time),
            measured=reading.measured,
            session=after.session,
            step=after.step,
            sensor=self.runtime.sensors[reading.sensor],
            symbol=self.runtime.symbols[sent.symbol],
            chances=None if sent.chances is None else tuple(sent.chances.tolist()),
            belief=tuple(map(tuple, after.belief.tolist())),
            spent_bits=after.spent_bits,
            policy=self.runtime.mark,
            before=state.hash,
        )
        tally = state.tallies.get(reading.sensor, Tally()).after(sent.surprise)
        tallies = {**state.tallies, reading.sensor: tally}
        known = (entry.number + 1, entry.hash, entry.time, entry.measured)
        held = DRIFTED if self.drift_check and tally.drifted else None
        return SubjectState(after, *known, tallies=tallies, held=held), entry


AnyTurns: TypeAlias = Turns | MovingTurns
