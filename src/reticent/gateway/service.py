"""The heart of the gateway: readings in, releases out, whatever carries them.

A subject has a standing; the runtime decides from the standing alone; the ledger remembers before anything leaves.
Whatever is not right, nothing is released: `trouble` says why and how to mend it.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.gateway.entry import STOP, Entry
from reticent.gateway.guards import STOPPED, PolicyFileGuard, Troubles, clock_trouble, no_older
from reticent.gateway.holds import DRIFTED, PAUSED, SENTENCES, SKEW_SECONDS, clock_note
from reticent.gateway.ledger import CLOCK, EVERYBODY, Damaged, Ledger, LedgerTrouble
from reticent.gateway.messages import Message, Outgoing, Refused
from reticent.gateway.readings import Encoder
from reticent.gateway.runtime import ImpossibleReading, Runtime
from reticent.gateway.sessions import EXHAUSTED
from reticent.gateway.subjects import Place, Subject, Subjects
from reticent.gateway.turns import Turns
from reticent.gateway.view import SHOWN_SUBJECTS, View

_log = logging.getLogger("reticent.gateway")

SECONDS_BETWEEN_LOGS, SECONDS_BETWEEN_TRIES = 10.0, 5.0
# So often a gateway looks whether others that share its ledger have failed to send what they wrote.
SECONDS_BETWEEN_LOOKS = 60.0
UNUSABLE = "the asked sensor said what cannot be sent, and nothing left: the provider can notice that"
WHY = {
    "clock": "the subject's newest entry in the ledger is ahead of this gateway's clock; set the clocks right, and it "
    "goes on by itself at that time or, with `reticent ledger holds lift`, at once",
    "unfit": UNUSABLE,
    "impossible": UNUSABLE,
}
# What happens all the time is counted, and not logged.
USUAL = frozenset(("released", "gathered", "not asked", "resting", "nothing left", "paused"))

Event = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How a gateway behaves. `policy` is watched: once it is another file, nothing is released."""

    policy: Path
    rest: float = 60.0
    """Seconds between a stop and the next session of the same subject."""
    stale: float = 30.0
    """A reading that is older than this many seconds is dropped."""
    subjects: int = 10_000
    """Subjects kept in memory; others come back from the ledger."""
    drift_check: bool = True
    """Release nothing more of subjects whom the model does not fit."""

    def __post_init__(self) -> None:
        if not (self.rest >= 0 and self.stale > 0):
            raise InputError(f"--rest is zero or more seconds and --stale above zero: {self.rest:g}, {self.stale:g}.")
        if self.subjects < 1:
            raise InputError(f"At least one subject must fit into memory, not {self.subjects}.")


@dataclass(eq=False)
class _Batch:
    """What one call decides, before it is on disk. `held` is what the ledger holds of those it concerns."""

    now: float
    held: dict[str, str] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)


class Gateway:
    """Many subjects, each with its own belief. `handle`, `delivered` and `resend` are called from one thread, the
    ledger's; everything else from any. `rng` makes draws: by default seeded by the operating system each time."""

    def __init__(
        self,
        runtime: Runtime,
        ledger: Ledger,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        rng: Callable[[], np.random.Generator] = np.random.default_rng,
    ) -> None:
        if STOP in runtime.sensors:
            raise InputError(f"The policy has a sensor named {STOP!r}, which is what a stop is told by: rename it.")
        self.runtime, self.settings = runtime, settings
        self.counters: Counter[str] = Counter(received=0, released=0, stopped=0)
        self._ledger, self._clock = ledger, clock
        self._turns = Turns(runtime, settings.rest, settings.drift_check, rng)
        self._subjects = Subjects(settings.subjects)
        self._policy_file = PolicyFileGuard(settings.policy, runtime.digest)
        self._sensors = {name: index for index, name in enumerate(runtime.sensors)}
        self._encoder = Encoder.of(runtime.task.model)
        self._view = View(runtime)
        self._lock = threading.RLock()
        self._subscribers: list[Callable[[Event], None]] = []
        self._troubles = Troubles(lambda: self._tell({"kind": "trouble"}))
        self._under_way: dict[Outgoing, Entry] = {}
        # A pause, or its end, that was asked for here and is not in the ledger yet, whose thread is another.
        self._pressed: bool | None = None
        self._resend_due = True
        # On this gateway's own clock: its start, and what it has written.
        self._newest_time = clock()
        self._logged: dict[str, float] = {}
        self._try_ledger_at = 0.0
        self._look_at = time.monotonic() + SECONDS_BETWEEN_LOOKS

    @property
    def trouble(self) -> str | None:
        """Why nothing is released now, and how to mend it."""
        with self._lock:
            return self._troubles.sentence

    @property
    def needs_time(self) -> bool:
        """Whether every message must say when it was measured: of what came by another gateway nothing else tells a
        reading that comes again from a new one."""
        return self._ledger.shared

    @property
    def stopped(self) -> bool:
        """Whether it was stopped for good."""
        return self._troubles.has("stopped")

    def pause(self) -> None:
        """Release nothing until resumed: at once here, and once the ledger is next used all that share it."""
        self._press(True)

    def resume(self) -> None:
        """Go on after a pause, whoever made it."""
        self._press(False)

    def stop(self) -> None:
        """Release nothing any more."""
        self.report("stopped", STOPPED)

    def report(self, kind: str, sentence: str | None) -> None:
        """Trouble from outside, such as with the broker, or none any more."""
        with self._lock:
            self._troubles.put(kind, sentence)

    def refuse(self, refused: Refused, times: int = 1) -> None:
        """Count messages that could not be read."""
        with self._lock:
            self.counters["received"] += times
            self._count([refused.reason] * times, str(refused))

    def handle(self, messages: Sequence[Message]) -> list[Outgoing]:
        """Decide, write all entries in one transaction, and return what is on disk and may leave now."""
        with self._lock:
            self.counters["received"] += len(messages)
            batch, outcomes, sent = _Batch(self._clock()), [], []
            self._troubles.put("policy", self._policy_file.trouble())
            self._troubles.put("clock", clock_trouble(batch.now, self._newest_time))
            try:
                batch.held = self._held({message.subject for message in messages})
                self._look_after_others()
                if self._resend_due and self._in_order:
                    sent = self._again(batch)
                for message in messages:
                    outcomes.append(self._take(message, batch))
                sent += self._written(batch, outcomes)
            except LedgerTrouble as error:
                self._distrust(batch, error)
                outcomes, sent = [each for each in outcomes if each != "released"], []
            self._count([*outcomes, *["trouble"] * (len(messages) - len(outcomes))])
            self._subjects.forget_oldest()
            return sent

    def resend(self) -> list[Outgoing]:
        """What is on disk and perhaps never left. If something is not right now, `handle` gives it once it is."""
        self._resend_due = True
        return self.handle([])

    def remember(self) -> None:
        """See to it that a pause, or its end, outlives the gateway and is seen by others."""
        with self._lock:
            try:
                self._held(set())
            except LedgerTrouble as error:
                self._troubles.put("ledger", str(error))

    def delivered(self, sent: Sequence[Outgoing]) -> None:
        """These have left, so they need not be sent again."""
        with self._lock:
            entries = [self._under_way.pop(each) for each in sent if each in self._under_way]
            try:
                if entries:
                    self._ledger.mark_delivered(entries)
            except LedgerTrouble as error:
                # At worst they are sent once more, the same bytes.
                self._troubles.put("ledger", str(error))

    def snapshot(self, subject: str | None = None) -> dict[str, Any]:
        """What the page shows: the subjects heard last, and one of them closely. Nothing that was not released."""
        with self._lock:
            heard = [(name, each.place) for name, each in self._subjects.newest(SHOWN_SUBJECTS) if each.place]
            chosen = self._subjects.get(subject) if subject else None
            return {
                **self._view.about,
                "asked": subject,
                "most_in_memory": self.settings.subjects,
                "trouble": self._troubles.sentence,
                "paused": self._troubles.has("paused"),
                "stopped": self.stopped,
                "counters": dict(self.counters),
                "in_memory": len(self._subjects),
                "subjects": [self._view.line(name, place) for name, place in heard],
                "chosen": self._view.subject(subject, chosen.place) if subject and chosen and chosen.place else None,
            }

    def look(self, subject: str) -> dict[str, Any] | None:
        """One line of what the provider knows of a subject, if it is in memory."""
        with self._lock:
            known = self._subjects.get(subject)
            return self._view.line(subject, known.place) if known and known.place else None

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call back on every release, stop and trouble and whenever counters move; returns what ends it.

        It is called in the thread where it happens, and the gateway waits for it: it must be quick.
        """
        with self._lock:
            self._subscribers.append(callback)

        def unsubscribe() -> None:
            with self._lock:
                if callback in self._subscribers:
                    self._subscribers.remove(callback)

        return unsubscribe

    @property
    def _in_order(self) -> bool:
        """Whether everything but the ledger is right; that is tried by using it."""
        return not self._troubles.beside("ledger")

    def _press(self, paused: bool) -> None:
        with self._lock:
            self._pressed = paused
            self._troubles.put("paused", SENTENCES[PAUSED] if paused else None)

    def _held(self, names: set[str]) -> dict[str, str]:
        """Who of these is held in the ledger, and is everybody? What was asked for here is written first; else what
        others have written counts."""
        if self._pressed is not None:
            self._ledger.hold(EVERYBODY, PAUSED if self._pressed else None)
            self._pressed = None
        held = self._ledger.held([EVERYBODY, *names, *(CLOCK + name for name in names)])
        self._troubles.put("paused", SENTENCES[PAUSED] if EVERYBODY in held else None)
        return held

    def _again(self, batch: _Batch) -> list[Outgoing]:
        """Everything on disk that perhaps never left."""
        entries, damaged = self._ledger.undelivered()
        self._resend_due = False
        # What another gateway has delivered meanwhile is no longer under way here.
        self._under_way.clear()
        for error in damaged:
            self._quarantine(error, batch)
        return self._once_more(entries)

    def _look_after_others(self) -> None:
        """What a gateway wrote that failed for good is sent by another, though its subject never speaks again."""
        if self._ledger.shared and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + SECONDS_BETWEEN_LOOKS
            self._resend_due = True

    def _missed(self, written: Sequence[Entry]) -> list[Outgoing]:
        """What another gateway wrote before these entries and perhaps never sent: it leaves before them."""
        first: dict[str, int] = {}
        for entry in written:
            first.setdefault(entry.subject, entry.number)
        missed: list[Entry] = []
        for name, number in self._ledger.delivered_up_to(first).items():
            if number + 1 < first[name]:
                missed += self._ledger.between(name, number + 1, first[name]).entries
        return self._once_more([entry for entry in missed if _outgoing(entry) not in self._under_way])

    def _once_more(self, entries: Sequence[Entry]) -> list[Outgoing]:
        if entries:
            _log.warning("%d releases on disk perhaps never left: they are sent again.", len(entries))
            self.counters["sent again"] += len(entries)
        return [self._leaving(entry) for entry in entries]

    def _take(self, message: Message, batch: _Batch) -> str:
        """What becomes of one message: "released", if the ledger takes it, or why not."""
        sensor = self._sensors.get(message.sensor)
        if sensor is None:
            return "unknown"
        if not self._in_order:
            return "paused" if self._troubles.has("paused") else "trouble"
        subject = self._subjects.of(message.subject)
        place = batch.places.get(message.subject) or self._place(message.subject, subject, batch)
        if place.time > batch.now + SKEW_SECONDS:
            # Until somebody lifts it, which only the ledger tells.
            subject.unsure = True
            return "clock"
        if untimely := subject.untimely(message, sensor, place.measured, batch.now, self.settings.stale):
            return untimely
        if place.blocked:
            return "blocked"
        try:
            return self._turn(message, sensor, subject, place, batch)
        except InputError as error:
            # The runtime would not let it pass: that is for somebody to look at.
            place = batch.places.get(message.subject, place)
            batch.places[message.subject] = replace(place, decision=None, held=str(error))
            return "refused"

    def _turn(self, message: Message, sensor: int, subject: Subject, place: Place, batch: _Batch) -> str:
        """What becomes of a message that came in time, of a subject that may speak."""
        place, stop = self._turns.awake(message.subject, place, batch.now)
        batch.places[message.subject] = place
        batch.entries += stop
        if place.decision is None:
            return "nothing left" if place.exhausted else "resting"
        if place.decision.sensor != sensor:
            return "not asked"
        outcome = self._release(message, subject, place, batch)
        if outcome in ("unknown", "unfit", "impossible"):
            self.counters["asked but unusable"] += 1
        return outcome

    def _release(self, message: Message, subject: Subject, place: Place, batch: _Batch) -> str:
        """What becomes of a message of the sensor that was asked."""
        assert place.decision is not None
        assert place.decision.sensor is not None
        if message.symbol is not None and message.symbol not in self._encoder.symbols:
            return "unknown"
        try:
            reading, time = self._reading(message, subject, place, batch.now)
        except InputError:
            return "unfit"
        if reading is None:
            return "gathered"
        if time < batch.now - self.settings.stale or time <= place.measured:
            # A window that was begun before a long silence, or before another sensor was asked, ends only now.
            return "stale"
        if time <= clock_note(batch.held, message.subject) and self._ledger.released_at(message.subject, time):
            return "duplicate"
        try:
            place, entries = self._turns.release(message.subject, place, reading, time, batch.now)
        except ImpossibleReading:
            if self.settings.drift_check:
                batch.places[message.subject] = replace(place, decision=None, held=DRIFTED)
            return "impossible"
        batch.places[message.subject] = place
        batch.entries += entries
        return "released"

    def _reading(self, message: Message, subject: Subject, place: Place, now: float) -> tuple[int | None, float]:
        """Which reading the message brings, if it brings one, and of when it is; samples are gathered into windows."""
        assert place.decision is not None
        assert place.decision.sensor is not None
        sensor, time = place.decision.sensor, message.time
        if time is None:
            # It is of now, and newer than what was released before it, even where that came in the same moment.
            time = max(now, math.nextafter(place.measured, math.inf))
        if message.symbol is not None:
            return self._encoder.named(message.symbol), time
        if message.reading is not None:
            return self._encoder.coded(sensor, message.reading), time
        assert message.sample is not None
        begun = subject.window if subject.window_of == sensor else None
        gathered = self._encoder.gather(begun, sensor, time, message.sample)
        subject.window, subject.window_of = gathered.window, sensor
        if gathered.dropped:
            self.counters["windows with too few samples"] += 1
        return gathered.reading, gathered.time or time

    def _place(self, name: str, subject: Subject, batch: _Batch) -> Place:
        """Where the subject stands: as remembered, or as the ledger says if it may know better."""
        known = subject.place
        if known is not None and not subject.unsure and known.held == batch.held.get(name):
            return known
        try:
            found = self._restored(name, known, batch)
        except Damaged as error:
            self._quarantine(error, batch)
            found = replace(known or Place(self.runtime.first()), decision=None, held=batch.held[name])
        if found.blocked:
            _log.warning("Subject %r: %s", name, found.blocked)
        subject.place, subject.unsure = found, False
        return found

    def _restored(self, name: str, known: Place | None, batch: _Batch) -> Place:
        """Where the ledger says that the subject stands. Who checks no drift lifts what drift has held."""
        found = self._turns.restored(self._ledger.last(name))
        if batch.held.get(name) == DRIFTED and not self.settings.drift_check:
            self._ledger.hold(name, None)
            del batch.held[name]
        held, unusable = batch.held.get(name), found.unusable
        if known is not None:
            found = no_older(name, known, found)
            if known.held and not held:
                # Somebody has looked at it: drift is counted anew.
                found = replace(found, tallies={})
        return replace(found, held=held, unusable=unusable)

    def _quarantine(self, error: Damaged, batch: _Batch) -> None:
        """Nothing more is released of the subject of a damaged entry, until somebody has mended and lifted it."""
        name = error.subject
        _log.warning("%s Nothing of this subject is released.", error)
        if name is None:
            return
        batch.held |= self._ledger.held([name])
        if name not in batch.held:
            self._ledger.hold(name, str(error))
            batch.held[name] = str(error)

    def _written(self, batch: _Batch, outcomes: list[str]) -> list[Outgoing]:
        """Write the batch; what is on disk may leave and holds from now on."""
        # First: should the gateway end before the entries are written, the subject is silent all the same.
        self._hold_blocked(batch)
        if not batch.entries:
            self._try_ledger()
            self._settle(batch, set())
            return []
        kept = self._appended(batch, outcomes)
        self._troubles.put("ledger", None)
        self._newest_time = max(self._newest_time, batch.now)
        refused = [entry for entry, written in zip(batch.entries, kept, strict=True) if not written]
        for entry in refused:
            # Another gateway has released something of this subject: what was decided here never happened.
            if entry.symbol is not None:
                outcomes[outcomes.index("released")] = "taken"
        self._settle(batch, {entry.subject for entry in refused})
        written = [entry for entry, ours in zip(batch.entries, kept, strict=True) if ours]
        for entry in written:
            self._view.remember(entry)
        self.counters["stopped"] += sum(entry.symbol is None for entry in written)
        return [*self._missed(written), *(self._leaving(entry) for entry in written)]

    def _appended(self, batch: _Batch, outcomes: list[str]) -> list[bool]:
        """Which entries of the batch are on disk. Who turns out to be damaged is left out, and the others are tried."""
        while True:
            try:
                return self._ledger.append(batch.entries)
            except Damaged as error:
                self._quarantine(error, batch)
                own = [entry for entry in batch.entries if entry.subject == error.subject]
                for _ in [entry for entry in own if entry.symbol is not None]:
                    outcomes[outcomes.index("released")] = "blocked"
                if not own:
                    raise
                batch.entries = [entry for entry in batch.entries if entry.subject != error.subject]
                del batch.places[own[0].subject]
                self._subjects.of(own[0].subject).unsure = True

    def _try_ledger(self) -> None:
        """Trouble with the ledger is over once it can be written. With nothing to write that is tried now and then."""
        if self._troubles.has("ledger") and time.monotonic() >= self._try_ledger_at:
            self._try_ledger_at = time.monotonic() + SECONDS_BETWEEN_TRIES
            self._ledger.probe()
            self._troubles.put("ledger", None)

    def _settle(self, batch: _Batch, refused: set[str]) -> None:
        """The places of the batch hold from now on, but for the refused."""
        for name, place in batch.places.items():
            subject = self._subjects.of(name)
            if name in refused:
                subject.unsure = True
                continue
            if place.exhausted and not (subject.place and subject.place.exhausted):
                _log.warning("Subject %r: %s", name, EXHAUSTED)
            subject.place = place

    def _distrust(self, batch: _Batch, error: LedgerTrouble) -> None:
        """Nothing of the batch holds, and the ledger may hold more than is known here: it is asked again."""
        for name in batch.places:
            self._subjects.of(name).unsure = True
        self._resend_due = True
        self._troubles.put("ledger", str(error))

    def _hold_blocked(self, batch: _Batch) -> None:
        """Nothing more is released of who was blocked in this batch, even when the gateway forgets it or ends."""
        for name, place in batch.places.items():
            if place.held and place.held != batch.held.get(name):
                _log.warning("Subject %r: %s", name, place.blocked)
                self._ledger.hold(name, place.held)

    def _leaving(self, entry: Entry) -> Outgoing:
        sent = _outgoing(entry)
        self._under_way[sent] = entry
        self._tell({"kind": "stop" if entry.symbol is None else "release", **_fields(sent)})
        return sent

    def _count(self, outcomes: Sequence[str], said: str = "") -> None:
        """Count what became of messages, and log what is not usual, now and then."""
        found = Counter(outcomes)
        self.counters.update(found)
        for reason in found.keys() - USUAL:
            if time.monotonic() - self._logged.get(reason, float("-inf")) > SECONDS_BETWEEN_LOGS:
                self._logged[reason] = time.monotonic()
                why = said or WHY.get(reason)
                _log.warning("Dropped: %s, %d so far%s.", reason, self.counters[reason], f" ({why})" if why else "")
        if found:
            self._tell({"kind": "counters"})

    def _tell(self, event: Event) -> None:
        for callback in tuple(self._subscribers):
            callback(event)


def _outgoing(entry: Entry) -> Outgoing:
    return Outgoing(entry.subject, entry.session, entry.step, entry.sensor, entry.symbol)


def _fields(sent: Outgoing) -> Event:
    return {name: getattr(sent, name) for name in Outgoing.__slots__}
