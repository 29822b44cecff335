"""Sessions: a subject stops, rests and begins again, also after a restart, until nothing is left to say."""

from dataclasses import replace

import numpy as np

from reticent.gateway.messages import Outgoing
from reticent.gateway.runtime import STOP, Runtime
from reticent.gateway.sessions import EXHAUSTED
from reticent.gateway.standing import standing_of
from reticent.problem.bound import Information
from tests.gateway.parts import Place, follow, task, write_policy


def test_it_stops_rests_and_begins_a_session_that_remembers(place):
    first = [out for _ in range(4) for out in place.tick()]
    assert [out.sensor == "stop" for out in first] == [False] * 4 + [True]
    assert first[-1] == Outgoing("ada", 0, 4, "stop", None)
    assert place.tick() == []
    assert place.gateway.counters["resting"] == 1
    known = np.sum(list(place.ledger.entries("ada"))[-1].belief, axis=1)
    [second] = place.tick(seconds=60)
    assert (second.session, second.step) == (1, 0)
    standing = place.runtime.next_session(place.runtime.first())
    assert not np.allclose(known, standing.belief.sum(1))
    entry = list(place.ledger.entries("ada"))[-1]
    before = place.runtime.next_session(_standing(place, 4))
    after = follow(place.runtime, before, entry)
    assert np.allclose(entry.belief, after.belief, rtol=0, atol=1e-12)
    assert np.allclose(before.belief.sum(1), known)


def _standing(place, number):
    return standing_of(list(place.ledger.entries("ada"))[number])


def test_a_session_in_which_nothing_would_be_said_is_not_begun(tmp_path):
    place = Place(tmp_path, task(Information(1e-6), "mask"), rest=5.0)
    assert [place.tick(seconds=10) for _ in range(5)] == [[]] * 5
    assert list(place.ledger.entries()) == []
    assert place.gateway.counters["nothing left"] == 5
    place.ledger.close()


def test_a_subject_of_whom_nothing_is_left_to_say_is_told(place, caplog):
    """Once in the log, on the page as long as it lasts, which is for good: also after a restart, but for one rest."""
    for _ in range(40):
        place.tick(seconds=100)
    assert place.gateway.counters["nothing left"] > 3
    assert [record.message for record in caplog.records if EXHAUSTED in record.message] == [
        f"Subject 'ada': {EXHAUSTED}"
    ]
    assert place.gateway.snapshot("ada")["chosen"]["state"] == "nothing left to say"
    entries = list(place.ledger.entries("ada"))
    place.again()
    assert place.tick(seconds=1000) == []
    assert place.gateway.snapshot("ada")["chosen"]["state"] == "nothing left to say"
    assert list(place.ledger.entries("ada")) == entries


def test_a_policy_that_draws_may_speak_again_after_a_session_without_a_word(tmp_path):
    """It is exhausted only once no sensor is allowed."""
    runtime = Runtime.load(write_policy(tmp_path / "p.safetensors", greedy=False))
    fresh, spent = runtime.first(), replace(runtime.first(), spent_bits=1.399999)
    assert not runtime.exhausted(fresh, STOP)
    assert runtime.exhausted(spent, STOP)
    assert not runtime.exhausted(fresh, runtime.decided(runtime.public(fresh), 0))


def test_the_same_after_a_restart(place):
    first = [out for _ in range(2) for out in place.tick()]
    place.again()
    rest = [out for _ in range(2) for out in place.tick()]
    assert [out.step for out in first + rest] == [0, 1, 2, 3, 4]
    place.again()
    assert place.tick() == []
    assert place.gateway.counters["resting"] == 1
    assert place.tick(seconds=60)[0].session == 1
