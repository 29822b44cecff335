"""The outcome of one message: dropped for a reason, gathered into a window, or released."""

import math
from dataclasses import dataclass, replace

from reticent.errors import InputError
from reticent.gateway.batch import Batch
from reticent.gateway.guards import Troubles
from reticent.gateway.holds import DRIFTED, SKEW_SECONDS, clock_note
from reticent.gateway.ledger import Ledger
from reticent.gateway.messages import Message
from reticent.gateway.outcomes import ASKED_BUT_UNUSABLE, Outcome, OutcomeCounters
from reticent.gateway.readings import Encoder
from reticent.gateway.restorer import Restorer
from reticent.gateway.runtime import ImpossibleReading
from reticent.gateway.settings import Settings
from reticent.gateway.subjects import Subject, Subjects, SubjectState
from reticent.gateway.turns import Reading, Turns


@dataclass(frozen=True)
class Decider:
    """Decides about messages one by one; the new states and entries go to the batch."""

    ledger: Ledger
    settings: Settings
    turns: Turns
    subjects: Subjects
    restorer: Restorer
    troubles: Troubles
    outcomes: OutcomeCounters
    encoder: Encoder
    sensors: dict[str, int]

    def decide(self, message: Message, batch: Batch) -> Outcome:
        """The outcome of one message; "released" holds only once the batch is on disk."""
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
        if untimely := subject.untimely(message, sensor, state.measured, batch.now, self.settings.stale):
            return untimely
        if state.blocked:
            return "blocked"
        try:
            return self._turn(message, sensor, subject, state, batch)
        except InputError as error:
            # The runtime refused the release: the subject is held until somebody has looked at it.
            state = batch.states.get(message.subject, state)
            batch.states[message.subject] = replace(state, decision=None, held=str(error))
            return "refused"

    def _turn(self, message: Message, sensor: int, subject: Subject, state: SubjectState, batch: Batch) -> Outcome:
        """The outcome of a timely message of a subject that is not blocked."""
        state, stop = self.turns.awake(message.subject, state, batch.now)
        batch.states[message.subject] = state
        batch.entries += stop
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
            state, entries = self.turns.release(message.subject, state, reading, batch.now)
        except ImpossibleReading:
            if self.settings.drift_check:
                batch.states[message.subject] = replace(state, decision=None, held=DRIFTED)
            return "impossible"
        batch.states[message.subject] = state
        batch.entries += entries
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
