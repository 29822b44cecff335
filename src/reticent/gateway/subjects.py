"""Who is known: where each subject stands, and what its sensors said last. Few bytes each, and a limit on how many."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from reticent.gateway.drift import Tally
from reticent.gateway.holds import AHEAD_SECONDS, sentence_of
from reticent.gateway.messages import Message
from reticent.gateway.readings import Window
from reticent.gateway.runtime import Decision, Standing

REMEMBERED_IDS = 16


@dataclass(frozen=True, eq=False)
class Place:
    """Where a subject stands. All of it but `measured` follows from what was sent, and from the clock.

    `number`, `hash`, `time` and `measured` are of its newest entry in the ledger. `decision` waits for a reading; there
    is none while the subject rests, and before it was made. `exhausted`: there will be none any more, because nothing
    is left to say. `held`: why nothing more is released, as the ledger keeps it. `unusable`: why nothing can be, as
    long as the newest entry is this one and the policy this one.
    """

    standing: Standing
    number: int = -1
    hash: str = ""
    time: float = 0.0
    measured: float = float("-inf")
    resting_since: float | None = None
    decision: Decision | None = None
    exhausted: bool = False
    tallies: dict[int, Tally] = field(default_factory=dict)
    held: str | None = None
    unusable: str | None = None

    @property
    def blocked(self) -> str | None:
        """Why nothing more is released, and how to mend it."""
        return sentence_of(self.held) or self.unusable


@dataclass(eq=False, slots=True)
class Subject:
    """What is remembered of one subject. `unsure`: the ledger may hold more than `place` knows."""

    place: Place | None = None
    unsure: bool = True
    seen: dict[int, float] = field(default_factory=dict)
    """Time of the newest reading of each sensor."""
    ids: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED_IDS))
    window: Window | None = None
    """Raw samples of the sensor that was asked, `window_of`, summed up so far."""
    window_of: int | None = None

    def untimely(self, message: Message, sensor: int, measured: float, now: float, stale: float) -> str | None:
        """Why the message must not be used, if it came too late, too early or twice; else remembers that it came.

        `measured` is the time of the newest reading that was released. What is not newer may be the same reading once
        more: merged the first time it could pass as it is the second time, and then say more than the belief knows.
        """
        if message.id is not None and message.id in self.ids:
            return "duplicate"
        if message.time is not None:
            seen = self.seen.get(sensor, float("-inf"))
            if message.time == seen:
                return "duplicate"
            if message.time > now + AHEAD_SECONDS:
                return "ahead"
            if message.time == measured:
                # Sensors that speak together: when this was measured, another one was asked.
                return "not asked"
            if message.time < max(measured, seen, now - stale):
                return "stale"
            self.seen[sensor] = message.time
        if message.id is not None:
            self.ids.append(message.id)
        return None


class Subjects:
    """The subjects in memory. Those that were silent longest are forgotten first: the ledger knows them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[str, Subject] = OrderedDict()

    def of(self, name: str) -> Subject:
        """What is known of a subject, who is now the last to be forgotten."""
        subject = self._known.get(name)
        if subject is None:
            subject = self._known[name] = Subject()
        self._known.move_to_end(name)
        return subject

    def forget_oldest(self) -> None:
        """Keep as many as may be kept."""
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def newest(self, most: int) -> list[tuple[str, Subject]]:
        """The subjects that were heard last, newest first."""
        names = reversed(self._known)
        return [(name, self._known[name]) for name, _ in zip(names, range(most), strict=False)]

    def get(self, name: str) -> Subject | None:
        """What is known of a subject, if it is in memory."""
        return self._known.get(name)

    def __len__(self) -> int:
        return len(self._known)
