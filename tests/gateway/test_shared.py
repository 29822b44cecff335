"""Several gateways on one ledger: what one holds, all hold; what one wrote and never sent, another sends.

On a database, and on a file that a second connection writes as `reticent ledger holds` does.
"""

import time
from contextlib import ExitStack

import numpy as np
import pytest

from reticent.gateway.holds import BY_HAND, DRIFTED, PAUSED, lift
from reticent.gateway.ledger import EVERYBODY
from reticent.gateway.messages import Message
from reticent.gateway.opening import open_ledger
from reticent.gateway.runtime import Runtime
from reticent.gateway.service import Gateway
from reticent.gateway.settings import Settings
from reticent.gateway.verify import verify
from tests.gateway.parts import Clock, write_policy


class Pair:
    """Two gateways with a connection each, on one clock."""

    def __init__(self, folder, where, stack) -> None:
        policy = write_policy(folder / "policy.safetensors")
        self.runtime, self.clock = Runtime.load(policy), Clock()
        self.ledgers = [stack.enter_context(open_ledger(where, beside=beside)) for beside in (False, True)]
        draws = np.random.default_rng(0)
        self.gateways = [
            Gateway(self.runtime, ledger, Settings(policy, rest=5.0), self.clock, lambda: draws)
            for ledger in self.ledgers
        ]

    def say(self, which, subject="ada"):
        """A second later every sensor of a subject says something to one of the gateways."""
        self.clock.now += 1
        readings = [Message(subject, name, self.clock.now, symbol="1.87") for name in self.runtime.sensors]
        return self.gateways[which].handle(readings)

    def tell(self, which, subject="ada"):
        sent = self.say(which, subject)
        self.gateways[which].delivered(sent)
        return [(out.session, out.step) for out in sent]


@pytest.fixture
def pair(tmp_path, ledger_place):
    with ExitStack() as stack:
        yield Pair(tmp_path, ledger_place.where, stack)


def test_a_pause_of_one_is_a_pause_of_all(pair):
    one, other = pair.gateways
    assert pair.tell(0) == [(0, 0)]
    assert pair.tell(1, "bob") == [(0, 0)]
    one.pause()
    one.handle([])
    assert pair.tell(1) == []
    assert other.snapshot()["paused"]
    assert "Paused by hand" in str(other.trouble)
    # Whoever resumes, resumes for all.
    other.resume()
    assert pair.tell(1) == [(0, 1)]
    assert pair.tell(0, "bob") == [(0, 1)]
    assert one.trouble is None


def test_idle_gateways_see_a_pause_too(pair):
    one, other = pair.gateways
    other.handle([])
    one.pause()
    one.remember()
    other.remember()
    assert other.snapshot()["paused"]


def test_who_tries_whether_the_ledger_can_be_written_erases_no_pause(pair, monkeypatch):
    monkeypatch.setattr("reticent.gateway.writer.SECONDS_BETWEEN_TRIES", 0.0)
    one, other = pair.gateways
    assert pair.tell(1) == [(0, 0)]
    one.pause()
    one.remember()
    other.report("ledger", "The disk is full. Make room.")
    other.handle([])
    assert pair.ledgers[0].holds() == {EVERYBODY: PAUSED}
    assert pair.tell(0) == pair.tell(1) == []
    assert "Make room" not in str(other.trouble)


def test_who_is_held_by_hand_is_silent_at_once_and_the_others_go_on(pair):
    assert pair.tell(0) == [(0, 0)]
    pair.ledgers[1].hold("ada", BY_HAND)
    assert pair.tell(0) == []
    assert "Held by hand" in pair.gateways[0].snapshot("ada")["chosen"]["blocked"]
    assert pair.tell(0, "bob") == [(0, 0)]
    assert lift(pair.ledgers[1], "ada", pair.clock.now)
    assert pair.tell(0) == [(0, 1)]


def test_whoever_hears_a_subject_next_goes_on_with_it(pair):
    """As the broker divides readings: no step is lost, or decided from what another has overtaken."""
    if not pair.ledgers[0].shared:
        pytest.skip("a file has one gateway")
    assert [pair.tell(which) for which in (0, 1, 0)] == [[(0, 0)], [(0, 1)], [(0, 2)]]
    assert pair.tell(1) == [(0, 3), (0, 4)]
    assert pair.gateways[0].counters["taken"] == pair.gateways[1].counters["taken"] == 0


def test_who_is_held_by_one_is_silent_at_all_until_it_is_lifted(pair):
    assert pair.tell(0) == [(0, 0)]
    pair.ledgers[1].hold("ada", DRIFTED)
    assert pair.tell(0) == pair.tell(1) == []
    assert "no longer fits" in pair.gateways[0].snapshot("ada")["chosen"]["blocked"]
    assert pair.tell(0, "bob") == [(0, 0)]
    assert lift(pair.ledgers[1], "ada", pair.clock.now)
    assert pair.tell(0) == [(0, 1)]
    assert pair.tell(1) == [(0, 2)]
    assert not lift(pair.ledgers[1], "ada", pair.clock.now)


def test_a_step_that_one_wrote_and_never_sent_is_sent_by_the_other(pair):
    """The first fails after the ledger took its release; the second goes on with the subject, and with that release."""
    assert pair.tell(1) == [(0, 0)]
    # The other one has caught up with the first, and has nothing to send again from its own start.
    assert pair.tell(0) == [(0, 1)]
    if not pair.ledgers[1].shared:
        # Only of a shared ledger it is asked first who was there meanwhile.
        assert pair.tell(1) == []
    lost = pair.say(0)
    assert [out.step for out in lost] == [2]
    sent = pair.say(1)
    assert sent[0] == lost[0]
    assert [out.step for out in sent] == [2, 3, 4]
    # None is marked before it has left.
    assert [entry.step for entry in pair.ledgers[0].undelivered().entries] == [2, 3, 4]
    pair.gateways[1].delivered(sent)
    assert pair.ledgers[0].undelivered().entries == []
    assert pair.gateways[0].resend() == []


def test_a_step_is_sent_although_its_subject_never_speaks_again(pair, monkeypatch):
    pair.ledgers[1].shared = True
    assert pair.tell(1) == [(0, 0)]
    lost = pair.say(0, "bob")
    assert pair.gateways[1].handle([]) == []
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert pair.gateways[1].handle([]) == lost
    pair.gateways[1].delivered(lost)
    assert pair.gateways[1].handle([]) == []


def test_delivering_a_later_step_does_not_vouch_for_an_earlier_one(pair):
    lost, later = pair.say(0), pair.say(1)
    pair.gateways[1].delivered(later[1:])
    assert [entry.step for entry in pair.ledgers[1].undelivered().entries] == [0, 1]
    assert pair.gateways[0].resend()[: len(lost)] == lost


def test_what_follows_is_whole_whoever_wrote_it(pair):
    for turn in range(12):
        pair.tell(turn % 2)
        pair.clock.now += 5 * (turn % 4 == 3)
    verdict = verify(pair.ledgers[0], pair.runtime)
    assert verdict.fault is None
    assert verdict.entries >= 7
