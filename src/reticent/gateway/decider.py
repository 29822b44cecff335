"""The outcome of each message of a batch: dropped for a reason, gathered into a window, or released.

Messages of a subject have their turns in order. One that needs a decision waits until all decisions that are due are
made together; so do those behind it. Then the rest has its turn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reticent.errors import InputError
from reticent.gateway.batch import Batch
from reticent.gateway.emitter import ImpossibleReading
from reticent.gateway.guards import Troubles
from reticent.gateway.holds import DRIFTED, SKEW_SECONDS, clock_note
from reticent.gateway.ledger import Ledger
from reticent.gateway.messages import Message
from reticent.gateway.moving_turns import AnyTurns
from reticent.gateway.outcomes import ASKED_BUT_UNUSABLE, Outcome, OutcomeCounters
from reticent.gateway.readings import Encoder
from reticent.gateway.restorer import Restorer
from reticent.gateway.settings import Settings
from reticent.gateway.subjects import Subject, Subjects, SubjectState
from reticent.gateway.turns import Reading


@dataclass(slots=True)
class Waiting:
    """A message that has no outcome yet. `timely`: it was found so; `asked`: a decision was made on its account."""

    message: Message
    timely: bool = False
    asked: bool = False


@dataclass(frozen=True)
class Decider:
    """Decides about messages; the new states and entries go to the batch."""

    ledger: Ledger
    settings: Settings
    turns: AnyTurns
    subjects: Subjects
    restorer: Restorer
    troubles: Troubles
    outcomes: OutcomeCounters
    encoder: Encoder
    sensors: dict[str, int]

    def decide(self, messages: Sequence[Message], batch: Batch) -> None:
        """The outcomes of all messages; "released" holds only once the batch is on disk."""
        waiting = list(map(Waiting, messages))
        while waiting or batch.due:
            waiting = self._round(waiting, batch)
            self._ask(batch)

    def _round(self, waiting: Sequence[Waiting], batch: Batch) -> list[Waiting]:
        """Those that still wait after each has had its turn."""
        left, behind = [], set()
        for each in waiting:
            outcome = None if each.message.subject in behind else self._outcome(each, batch)
            if outcome is not None:
                batch.outcomes.append(outcome)
                continue
            left.append(each)
            behind.add(each.message.subject)
        return left

    def _ask(self, batch: Batch) -> None:
        """Make the decisions that are due, all together."""
        due, batch.due = batch.due, {}
        for (name, standing), found in zip(due.items(), self.turns.decide(list(due.values())), strict=True):
            state = batch.states[name]
            if isinstance(found, InputError):
                batch.states[name] = _refused(state, found)
                continue
            batch.states[name], stop = self.turns.asked(name, state, standing, found, batch.now)
            batch.entries += stop

    def _outcome(self, waiting: Waiting, batch: Batch) -> Outcome | None:
        """The outcome of a message; None while it waits."""
        message = waiting.message
        sensor = self.sensors.get(message.sensor)
        if sensor is None:
            return "unknown"
        if not self.troubles.all_but_ledger_right:
            return "paused" if self.troubles.has("paused") else "trouble"
        subject = self.subjects.of(message.subject)
        state = batch.states.get(message.subject) or self.restorer.state(message.subject, subject, batch)
        if state.time > batch.now + SKEW_SECONDS:
            # The ledger is asked again for every message, because only there it shows that somebody lifted this.
            subject.unsure = True
            return "clock"
        if not waiting.timely:
            if untimely := subject.untimely(message, sensor, state.measured, batch.now, self.settings.stale):
                return untimely
            waiting.timely = True
        if state.blocked:
            return "refused" if waiting.asked else "blocked"
        if self._waits(waiting, state, batch):
            return None
        try:
            return self._turn(message, sensor, subject, state, batch)
        except InputError as error:
            batch.states[message.subject] = _refused(batch.states.get(message.subject, state), error)
            return "refused"

    def _waits(self, waiting: Waiting, state: SubjectState, batch: Batch) -> bool:
        """Whether a decision is to be made first: one that is due already, or one on account of this message."""
        name = waiting.message.subject
        if name in batch.due:
            return True
        if waiting.asked:
            return False
        waiting.asked = self._is_due(name, state, batch)
        return waiting.asked

    def _is_due(self, name: str, state: SubjectState, batch: Batch) -> bool:
        """Whether it is time for a decision of this subject, which is noted then."""
        standing = self.turns.due(state, batch.now)
        if standing is None:
            return False
        batch.states[name], batch.due[name] = state, standing
        return True

    def _turn(self, message: Message, sensor: int, subject: Subject, state: SubjectState, batch: Batch) -> Outcome:
        """The outcome of a timely message of a subject that is not blocked."""
        if state.decision is None:
            return "nothing left" if state.exhausted else "resting"
        if state.decision.sensor != sensor:
            return "not asked"
        outcome = self._release(message, sensor, subject, state, batch)
        if outcome in ASKED_BUT_UNUSABLE:
            self.outcomes.counters["asked but unusable"] += 1
        return outcome

    def _release(self, message: Message, sensor: int, subject: Subject, state: SubjectState, batch: Batch) -> Outcome:
        """The outcome of a message of the asked sensor."""
        if message.symbol is not None and message.symbol not in self.encoder.symbols:
            return "unknown"
        try:
            reading = self._reading(message, sensor, subject, state, batch.now)
        except InputError:
            return "unfit"
        if reading is None:
            return "gathered"
        if reading.measured < batch.now - self.settings.stale or reading.measured <= state.measured:
            # The window was begun before a long silence, or before another sensor was asked.
            return "stale"
        may_be_old = reading.measured <= clock_note(batch.held, message.subject)
        if may_be_old and self.ledger.released_at(message.subject, reading.measured):
            return "duplicate"
        try:
            state, entry = self.turns.release(message.subject, state, reading, batch.now)
        except ImpossibleReading:
            if self.settings.drift_check:
                batch.states[message.subject] = replace(state, decision=None, held=DRIFTED)
            return "impossible"
        batch.states[message.subject] = state
        batch.entries.append(entry)
        self._is_due(message.subject, state, batch)
        return "released"

    def _reading(
        self, message: Message, sensor: int, subject: Subject, state: SubjectState, now: float
    ) -> Reading | None:
        """The reading that the message brings; None while its samples are gathered into a window."""
        time = message.time
        if time is None:
            # It was measured now, and later than what was released before it, even if that came at the same time.
            time = max(now, math.nextafter(state.measured, math.inf))
        if message.symbol is not None:
            return Reading(sensor, self.encoder.named(message.symbol), time)
        if message.reading is not None:
            return Reading(sensor, self.encoder.coded(sensor, message.reading), time)
        begun = subject.window if subject.window_of == sensor else None
        gathered = self.encoder.gather(begun, sensor, time, message.sample or ())
        subject.window, subject.window_of = gathered.window, sensor
        if gathered.dropped:
            self.outcomes.counters["windows with too few samples"] += 1
        return None if gathered.reading is None else Reading(sensor, gathered.reading, gathered.time or time)


def _refused(state: SubjectState, error: InputError) -> SubjectState:
    """The runtime refused a release or a decision: the subject is held until somebody has looked at it."""
    return replace(state, decision=None, held=str(error))
