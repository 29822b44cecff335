"""The outbox: entries that are on disk and not yet known to be delivered. Each is sent until it is, in order."""

import logging
import time
from collections import Counter
from collections.abc import Sequence

from reticent.gateway.batch import Batch
from reticent.gateway.entry import Entry
from reticent.gateway.events import Events
from reticent.gateway.holds import quarantine
from reticent.gateway.ledger import Ledger
from reticent.gateway.messages import Outgoing
from reticent.gateway.share import Share

_log = logging.getLogger("reticent.gateway")

# How often a gateway looks for entries that others on its ledger have written but not delivered.
SECONDS_BETWEEN_LOOKS = 60.0


class Outbox:
    """What is sent, what is in flight, and what is due to be sent again."""

    def __init__(self, ledger: Ledger, events: Events, counters: Counter[str], share: Share) -> None:
        self._ledger, self._events, self._counters, self._share = ledger, events, counters, share
        self._in_flight: dict[Outgoing, Entry] = {}
        self._look_at = time.monotonic() + SECONDS_BETWEEN_LOOKS
        self.resend_due = True

    def __len__(self) -> int:
        """How many entries are in flight."""
        return len(self._in_flight)

    def look_after_others(self) -> None:
        """On a shared ledger, now and then: what a gateway that failed has not sent is sent by another."""
        if self._ledger.shared and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + SECONDS_BETWEEN_LOOKS
            self.resend_due = True

    def resend(self, batch: Batch) -> list[Outgoing]:
        """Everything on disk that may never have been delivered, and is not for another worker to send."""
        entries, damaged = self._ledger.undelivered()
        self.resend_due = False
        # Whatever another gateway has delivered meanwhile is no longer in flight here.
        self._in_flight.clear()
        for error in damaged:
            quarantine(self._ledger, error, batch.held)
        return self._once_more([entry for entry in entries if self._share.holds(entry.subject)])

    def send(self, written: Sequence[Entry]) -> list[Outgoing]:
        """The messages for entries just written, after those of other gateways that may never have been delivered."""
        return [*self._missed(written), *(self._send(entry) for entry in written)]

    def delivered(self, sent: Sequence[Outgoing]) -> None:
        """Mark messages as delivered: they are not sent again."""
        entries = [self._in_flight.pop(each) for each in sent if each in self._in_flight]
        if entries:
            self._ledger.mark_delivered(entries)

    def _missed(self, written: Sequence[Entry]) -> list[Outgoing]:
        """Earlier entries of the same subjects by another gateway that are not marked as delivered: they go first."""
        first: dict[str, int] = {}
        for entry in written:
            first.setdefault(entry.subject, entry.number)
        missed: list[Entry] = []
        for name, number in self._ledger.undelivered_from(first).items():
            if number < first[name]:
                missed += self._ledger.between(name, number, first[name]).entries
        return self._once_more([entry for entry in missed if _outgoing(entry) not in self._in_flight])

    def _once_more(self, entries: Sequence[Entry]) -> list[Outgoing]:
        if entries:
            _log.warning("%d entries on disk may never have been delivered: they are sent again.", len(entries))
            self._counters["sent again"] += len(entries)
        return [self._send(entry) for entry in entries]

    def _send(self, entry: Entry) -> Outgoing:
        sent = _outgoing(entry)
        self._in_flight[sent] = entry
        kind = "stop" if entry.symbol is None else "release"
        self._events.tell({"kind": kind, **{name: getattr(sent, name) for name in Outgoing.__slots__}})
        return sent


def _outgoing(entry: Entry) -> Outgoing:
    return Outgoing(entry.subject, entry.session, entry.step, entry.sensor, entry.symbol)
