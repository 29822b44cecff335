"""The subjects in memory: the state of each, and which messages came last. Bounded in number and size."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reticent.gateway.decisions import Decision
from reticent.gateway.drift import Tally
from reticent.gateway.holds import AHEAD_SECONDS, sentence_of
from reticent.gateway.ledger import NO_HEAD, Head
from reticent.gateway.messages import Message
from reticent.gateway.outcomes import Outcome
from reticent.gateway.readings import Window

REMEMBERED_IDS = 16


@dataclass(frozen=True, eq=False)
class SubjectState:
    """The state of a subject. All of it but `measured` follows from what was sent, and from the clock.

    `standing` is a `Standing`, or a `MovingStanding` where the secret moves.
    `entries` is how many of its entries are in the ledger; `hash`, `time` and `measured` are of the newest one.
    `decision` waits for a reading of the sensor it asks; None while the subject rests, and before one was made.
    `exhausted`: nothing is left to say, so there will be no decision any more. `held`: why nothing more is released, as
    stored in the ledger. `unusable`: why nothing can be released from this newest entry with this policy.
    """

    standing: Any
    entries: int = 0
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
        """Why nothing more is released, and what to do about it."""
        return sentence_of(self.held) or self.unusable


@dataclass(eq=False, slots=True)
class Subject:
    """What is remembered of one subject. `unsure`: the ledger may hold entries or holds that `state` lacks."""

    state: SubjectState | None = None
    unsure: bool = True
    seen: dict[int, float] = field(default_factory=dict)
    """Time of the newest reading of each sensor."""
    ids: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED_IDS))
    window: Window | None = None
    """Statistics of the raw samples so far of the asked sensor, `window_of`."""
    window_of: int | None = None

    def untimely(self, message: Message, sensor: int, measured: float, now: float, stale: float) -> Outcome | None:
        """Why the message is dropped, if it is too old, too far ahead or a duplicate; else None, and it is remembered.

        `measured` is the time of the newest released reading. A message that is not newer may repeat that reading:
        merged the first time, it could be sent as it is the second time, and tell more than the belief accounts for.
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
                # Sensors that measure at the same time: another one was asked at that moment.
                return "not asked"
            if message.time < max(measured, seen, now - stale):
                return "stale"
            self.seen[sensor] = message.time
        if message.id is not None:
            self.ids.append(message.id)
        return None


class Subjects:
    """The subjects in memory, at most `most`: the least recently heard are forgotten, and restored from the ledger."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[str, Subject] = OrderedDict()

    def of(self, name: str) -> Subject:
        """The subject of this name, new if it is not in memory; it is now the most recently heard."""
        subject = self._known.get(name)
        if subject is None:
            subject = self._known[name] = Subject()
        self._known.move_to_end(name)
        return subject

    def doubt(self, names: Iterable[str], heads: Mapping[str, Head]) -> None:
        """Those of these subjects of whom the ledger holds another newest entry are restored from it next time."""
        for name in names:
            subject = self._known.get(name)
            if subject is not None and subject.state is not None:
                known = Head(subject.state.entries - 1, subject.state.hash)
                subject.unsure |= known != heads.get(name, NO_HEAD)

    def forget_oldest(self) -> None:
        """Forget the least recently heard until at most `most` are left."""
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def newest(self, most: int) -> list[tuple[str, Subject]]:
        """At most `most` subjects, the most recently heard first."""
        names = reversed(self._known)
        return [(name, self._known[name]) for name, _ in zip(names, range(most), strict=False)]

    def known(self) -> Iterable[Subject]:
        """All subjects in memory."""
        return self._known.values()

    def get(self, name: str) -> Subject | None:
        """The subject of this name, if it is in memory."""
        return self._known.get(name)

    def __len__(self) -> int:
        return len(self._known)
