"""Transitions of one subject: when a session begins, which sensor is asked, what is sent, when it stops and rests.

Each takes a state, perhaps a reading or a decision, and the time, and returns the next state with the entries that must
be on disk before it takes effect. Only the decisions that are due are made of many subjects together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reticent.errors import InputError
from reticent.gateway.decisions import Decision, Standing
from reticent.gateway.draws import Draws
from reticent.gateway.drift import Tally
from reticent.gateway.emitter import Sent
from reticent.gateway.entry import STOP, Entry
from reticent.gateway.holds import DRIFTED, STARTS_ANEW
from reticent.gateway.runtime import Runtime
from reticent.gateway.standing import standing_of
from reticent.gateway.subjects import SubjectState

OTHER_POLICY = (
    "The ledger holds this subject's belief under another policy file. Carry it over by `reticent ledger migrate`, "
    "start with that policy file, or with a new ledger; "
) + STARTS_ANEW

STRANGE = (
    "This subject's newest entry in the ledger holds a belief that is not one over this policy's model, so nothing of "
    "it is released: the ledger was edited. `reticent ledger verify --policy` says more; restore the newest copy."
)


class Reading(NamedTuple):
    """A reading that may be released: sensor, code (index among the model's symbols), and when it was measured."""

    sensor: int
    code: int
    measured: float


class What(NamedTuple):
    """What an entry records: a release with its rule, or a stop."""

    step: int
    sensor: str
    symbol: str | None = None
    chances: np.ndarray | None = None


@dataclass(frozen=True)
class Turns:
    """The transitions under one policy.

    `rest`: seconds between a stop and the next session of the same subject. `rng` makes the source of each draw: a new
    one for every release, so that earlier draws do not predict later ones.
    """

    runtime: Runtime
    rest: float
    drift_check: bool
    rng: Callable[[], Draws]

    def restored(self, last: Entry | None) -> SubjectState:
        """The state of a subject whose newest entry in the ledger is this one; None if it has none."""
        if last is None:
            return SubjectState(self.runtime.first())
        state = SubjectState(standing_of(last), last.number + 1, last.hash, last.time, last.measured)
        if last.policy != self.runtime.digest:
            return replace(state, unusable=OTHER_POLICY)
        if not self.runtime.could_be(state.standing):
            return replace(state, unusable=STRANGE)
        return replace(state, resting_since=last.time) if last.sensor == STOP else state

    def due(self, state: SubjectState, now: float) -> Standing | None:
        """Where a decision is to be made, if it is time for one."""
        if state.decision is not None or state.blocked or state.exhausted:
            return None
        if state.resting_since is None:
            return state.standing
        if now - state.resting_since < self.rest:
            return None
        said = state.standing.step > 0
        return self.runtime.next_session(state.standing) if said else state.standing

    def decide(self, standings: Sequence[Standing]) -> list[Decision | InputError]:
        """The decisions that are due there, made together; or why there is none."""
        try:
            return list(self.runtime.decide_all(standings, self.rng()))
        except InputError:
            return [self._decided_alone(standing) for standing in standings]

    def _decided_alone(self, standing: Standing) -> Decision | InputError:
        try:
            return self.runtime.decide(standing, self.rng())
        except InputError as error:
            return error

    def asked(
        self, name: str, state: SubjectState, due: Standing, decision: Decision, now: float
    ) -> tuple[SubjectState, list[Entry]]:
        """The state with the decision that was due; or resting, after a stop that is sent if anything was released.

        A session that would begin with a stop is not begun.
        """
        if decision.sensor is not None:
            return replace(state, standing=due, resting_since=None, decision=decision), []
        if due.step == 0:
            return replace(state, resting_since=now, exhausted=self.runtime.exhausted(due, decision)), []
        entry = self._entry(name, state, due, What(due.step, STOP), now, state.measured)
        return replace(state, entries=entry.number + 1, hash=entry.hash, time=entry.time, resting_since=now), [entry]

    def release(self, name: str, state: SubjectState, reading: Reading, now: float) -> tuple[SubjectState, Entry]:
        """Release this reading, or what is sent in its place, of the sensor that was asked."""
        if state.decision is None or state.decision.sensor != reading.sensor:
            raise InputError("Only a reading of the asked sensor can be released.")
        sensor = reading.sensor
        sent, standing = self.runtime.release(state.standing, state.decision, reading.code, self.rng())
        what = What(state.standing.step, self.runtime.sensors[sensor], self.runtime.symbols[sent.symbol], sent.chances)
        entry = self._entry(name, state, standing, what, now, reading.measured)
        tallies = self._counted(state.tallies, sensor, sent)
        after = (entry.number + 1, entry.hash, entry.time, entry.measured)
        state = SubjectState(standing, *after, tallies=tallies)
        drifted = self.drift_check and tallies[sensor].drifted
        return replace(state, held=DRIFTED) if drifted else state, entry

    def _entry(self, name: str, state: SubjectState, after: Standing, what: What, now: float, measured: float) -> Entry:
        return Entry(
            subject=name,
            number=state.entries,
            # Another gateway's clock may be a little ahead: times of a subject must not decrease.
            time=max(now, state.time),
            measured=measured,
            session=after.session,
            step=what.step,
            sensor=what.sensor,
            symbol=what.symbol,
            chances=None if what.chances is None else tuple(what.chances.tolist()),
            belief=tuple(map(tuple, after.belief.tolist())),
            spent_bits=float(after.spent_bits),
            policy=self.runtime.digest,
            before=state.hash,
        )

    def _counted(self, tallies: dict[int, Tally], sensor: int, sent: Sent) -> dict[int, Tally]:
        return {**tallies, sensor: tallies.get(sensor, Tally()).after(sent.surprise)}
