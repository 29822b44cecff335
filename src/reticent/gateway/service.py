"""The gateway: messages in, releases out, independent of the transport.

The walk of a batch through `Gateway.handle`: holds and troubles are looked up, the `Decider` decides message by
message, the `BatchWriter` writes all entries in one transaction, and the `Outbox` hands out what is on disk. If
anything is wrong nothing is released: `trouble` says why, and what to do.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reticent.errors import InputError
from reticent.gateway.batch import Batch
from reticent.gateway.census import Census, census
from reticent.gateway.decider import Decider
from reticent.gateway.draws import Draws, SystemDraws
from reticent.gateway.entry import STOP
from reticent.gateway.events import Event, Events
from reticent.gateway.guards import STOPPED, Kind, PolicyFileGuard, Troubles, clock_trouble
from reticent.gateway.ledger import Ledger, LedgerTrouble
from reticent.gateway.messages import Message, Outgoing, Reason, Refused
from reticent.gateway.moving_runtime import MovingRuntime
from reticent.gateway.moving_turns import AnyTurns
from reticent.gateway.moving_view import MovingView
from reticent.gateway.outbox import Outbox
from reticent.gateway.outcomes import Outcome, OutcomeCounters
from reticent.gateway.pause import Pause
from reticent.gateway.readings import Encoder
from reticent.gateway.restorer import Restorer
from reticent.gateway.runtime import Runtime
from reticent.gateway.settings import Settings
from reticent.gateway.subjects import Subjects, SubjectState
from reticent.gateway.turns import Turns
from reticent.gateway.view import SHOWN_SUBJECTS, View
from reticent.gateway.writer import BatchWriter


@dataclass(frozen=True)
class Status:
    """What is counted of a gateway at one moment; `undelivered` releases are on disk, and nobody has confirmed them."""

    counters: dict[str, int]
    troubles: frozenset[Kind]
    census: Census
    undelivered: int


class Gateway:
    """Decides for many subjects, each with its own belief.

    `handle`, `delivered`, `resend` and `remember` are called from one thread, the ledger's; everything else from any.
    `rng` makes the source of each draw: by default the operating system.
    """

    def __init__(
        self,
        runtime: Runtime | MovingRuntime,
        ledger: Ledger,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        rng: Callable[[], Draws] = SystemDraws,
    ) -> None:
        if STOP in runtime.sensors:
            raise InputError(
                f"{STOP!r} is a reserved sensor name, and the policy has a sensor of that name: rename it."
            )
        self.runtime, self.settings = runtime, settings
        self._ledger, self._clock = ledger, clock
        self._lock = threading.RLock()
        self._events = Events(self._lock)
        self._outcomes = OutcomeCounters(self._events)
        self._troubles = Troubles(lambda: self._events.tell({"kind": "trouble"}))
        self._policy_file = PolicyFileGuard(settings.policy, runtime.digest)
        self._pause = Pause(ledger, self._troubles)
        self._subjects = Subjects(settings.subjects)
        self._decider = self._new_decider(ledger, self._new_turns(rng))
        self._writer = BatchWriter(ledger, self._subjects, self._troubles, clock())
        self._outbox = Outbox(ledger, self._events, self.counters, settings.share)
        self._view = self._new_view()
        self._turned = time.monotonic()

    def _new_turns(self, rng: Callable[[], Draws]) -> AnyTurns:
        """The transitions of a subject; of one whose secret moves there are others (`moving_service`)."""
        assert isinstance(self.runtime, Runtime)
        return Turns(self.runtime, self.settings.rest, self.settings.drift_check, rng)

    def _new_view(self) -> View | MovingView:
        assert isinstance(self.runtime, Runtime)
        return View(self.runtime)

    def _census(self, states: Sequence[SubjectState]) -> Census:
        assert isinstance(self.runtime, Runtime)
        return census(self.runtime, states)

    def _new_decider(self, ledger: Ledger, turns: AnyTurns) -> Decider:
        return Decider(
            ledger,
            self.settings,
            turns,
            self._subjects,
            Restorer(ledger, turns, self.settings),
            self._troubles,
            self._outcomes,
            Encoder.of(self.runtime.task.model),
            {name: index for index, name in enumerate(self.runtime.sensors)},
        )

    @property
    def counters(self) -> Counter[str]:
        """Messages received, and by outcome; stops, and entries sent again."""
        return self._outcomes.counters

    @property
    def trouble(self) -> str | None:
        """Why nothing is released now, and what to do about it."""
        with self._lock:
            return self._troubles.sentence

    @property
    def needs_time(self) -> bool:
        """Whether every message must have a time: on a shared ledger only that tells a repeated reading, which may
        have come to another gateway, from a new one."""
        return self._ledger.shared

    @property
    def seconds_since_turn(self) -> float:
        """How long ago its thread was last seen at work, or at rest."""
        return time.monotonic() - self._turned

    @property
    def stopped(self) -> bool:
        """Whether it was stopped; a pause does not count."""
        return self._troubles.has("stopped")

    def pause(self) -> None:
        """Release nothing until resumed: here at once, and on all that share the ledger once it is next used."""
        with self._lock:
            self._pause.ask(True)

    def resume(self) -> None:
        """End a pause, whoever made it."""
        with self._lock:
            self._pause.ask(False)

    def stop(self) -> None:
        """Release nothing any more."""
        self.report("stopped", STOPPED)

    def report(self, kind: Kind, sentence: str | None) -> None:
        """Set or clear a trouble from outside, such as with the broker."""
        with self._lock:
            self._troubles.put(kind, sentence)

    def refuse(self, refused: Refused, times: int = 1) -> None:
        """Count messages that could not be parsed."""
        with self._lock:
            self.counters["received"] += times
            reasons: list[Reason] = [refused.reason] * times
            self._outcomes.count(reasons, str(refused))

    def handle(self, messages: Sequence[Message]) -> list[Outgoing]:
        """Decide, write all entries in one transaction, and return what is on disk and may leave now."""
        self._turned = started = time.monotonic()
        with self._lock:
            self.counters["received"] += len(messages)
            batch = Batch(self._clock())
            self._troubles.put("policy", self._policy_file.trouble())
            self._troubles.put("clock", clock_trouble(batch.now, self._writer.newest_time))
            try:
                sent = self._handled(messages, batch)
            except LedgerTrouble as error:
                self._writer.abandon(batch, error)
                self._outbox.resend_due = True
                sent = []
            undecided: list[Outcome] = ["trouble"] * (len(messages) - len(batch.outcomes))
            self._outcomes.count([*batch.outcomes, *undecided])
            self._subjects.forget_oldest()
            if messages:
                self._events.tell({"kind": "batch", "seconds": time.monotonic() - started})
            return sent

    def _handled(self, messages: Sequence[Message], batch: Batch) -> list[Outgoing]:
        names = {message.subject for message in messages}
        batch.held = self._pause.synchronise(names)
        if self._ledger.shared:
            # Another gateway may have had a subject's turn since.
            self._subjects.doubt(names, self._ledger.heads(names))
        self._outbox.look_after_others()
        again = self._outbox.resend_due and self._troubles.all_but_ledger_right
        sent = self._outbox.resend(batch) if again else []
        self._decider.decide(messages, batch)
        written = self._writer.write(batch)
        for entry in written:
            self._view.remember(entry)
        self.counters["stopped"] += sum(entry.symbol is None for entry in written)
        return [*sent, *self._outbox.send(written)]

    def resend(self) -> list[Outgoing]:
        """What is on disk and may never have been delivered. During trouble nothing; `handle` returns it afterwards."""
        self._outbox.resend_due = True
        return self.handle([])

    def remember(self) -> None:
        """Write a pause or its end to the ledger, and take over what others wrote."""
        self._turned = time.monotonic()
        with self._lock:
            try:
                self._pause.synchronise(())
            except LedgerTrouble as error:
                self._troubles.put("ledger", str(error))

    def delivered(self, sent: Sequence[Outgoing]) -> None:
        """These have been delivered, so they are not sent again."""
        with self._lock:
            try:
                self._outbox.delivered(sent)
            except LedgerTrouble as error:
                # At worst they are sent once more, as the same bytes.
                self._troubles.put("ledger", str(error))

    def snapshot(self, subject: str | None = None) -> dict[str, Any]:
        """What the page shows: the subjects heard last, and details of one. Only what follows from releases."""
        with self._lock:
            heard = [(name, each.state) for name, each in self._subjects.newest(SHOWN_SUBJECTS) if each.state]
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
                "subjects": [self._view.line(name, state) for name, state in heard],
                "chosen": self._view.subject(subject, chosen.state) if subject and chosen and chosen.state else None,
            }

    def status(self) -> Status:
        """Counts, troubles and a census of the subjects in memory."""
        with self._lock:
            states = [known.state for known in self._subjects.known() if known.state]
            return Status(dict(self.counters), self._troubles.kinds, self._census(states), len(self._outbox))

    def look(self, subject: str) -> dict[str, Any] | None:
        """What the provider knows of a subject, as in the list of `snapshot`, if it is in memory."""
        with self._lock:
            known = self._subjects.get(subject)
            return self._view.line(subject, known.state) if known and known.state else None

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call back on every release, stop, change of trouble and of counters; returns what ends the subscription.

        It is called in the thread where it happens, and the gateway waits for it: it must be quick.
        """
        return self._events.subscribe(callback)
