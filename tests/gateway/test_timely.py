"""Which messages are dropped: unusable, duplicate, stale, or ahead of the clock."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.gateway.messages import Message
from reticent.gateway.service import Gateway
from reticent.gateway.settings import Settings
from tests.gateway.parts import NOON, Place


@pytest.mark.parametrize(
    ("change", "reason", "asked"),
    [
        ({"sensor": "nose"}, "unknown", 0),
        ({"symbol": "nothing like it"}, "unknown", 1),
        ({"symbol": None, "reading": (1.0, 2.0)}, "unfit", 1),
        ({"symbol": None, "sample": (1.0, 2.0)}, "unfit", 1),
        ({"time": NOON - 31}, "stale", 0),
        ({"time": NOON + 2.5}, "ahead", 0),
    ],
)
def test_what_cannot_be_used_is_counted_and_dropped(place, change, reason, asked):
    """Apart also those of the asked sensor: that nothing came in their place, the provider can notice."""
    assert place.gateway.handle([place.message(**change)]) == []
    assert place.gateway.counters[reason] == 1
    assert place.gateway.counters["asked but unusable"] == asked
    assert list(place.ledger.entries()) == []
    # It goes on with the next reading that is right.
    assert len(place.tick()) == 1


def test_duplicates_are_dropped(place):
    one = place.message()
    assert len(place.gateway.handle([one])) == 1
    assert place.gateway.handle([one]) == []
    assert place.gateway.counters["duplicate"] == 1
    place.clock.now += 1
    named = place.message(time=None, id="17")
    assert len(place.gateway.handle([named])) == 1
    place.clock.now += 1
    assert place.gateway.handle([named, place.message(time=None, id="17")]) == []
    assert place.gateway.counters["duplicate"] == 3


def test_a_reading_from_before_the_last_release_is_stale_even_after_a_restart(place):
    place.tick(seconds=10)
    assert place.gateway.handle([place.message(time=NOON + 9)]) == []
    assert place.gateway.counters["stale"] == 1
    place.again()
    assert place.gateway.handle([place.message(time=NOON + 9)]) == []
    assert place.gateway.counters["stale"] == 1
    assert len(place.tick()) == 1


def test_a_reading_is_released_once_whoever_forgets_it_meanwhile(tmp_path):
    """Merged the first time, it might pass as it is the second time."""
    place = Place(tmp_path, subjects=1)
    place.clock.now += 1
    one = [place.message(sensor=name, code=25, time=NOON) for name in place.runtime.sensors]
    assert len(place.gateway.handle(one)) == 1
    # The gateway has another subject in mind now; then it is started anew; then it is another one.
    place.tick("bob")
    assert place.gateway.handle(one) == []
    place.again()
    place.gateway.delivered(place.gateway.resend())
    assert place.gateway.handle(one) == []
    other = Gateway(place.runtime, place.ledger, Settings(place.policy), place.clock, lambda: place.draws)
    assert other.handle(one) == []
    assert (place.gateway.counters["not asked"], other.counters["not asked"]) == (3, 3)
    later = [replace(message, time=NOON + 0.001) for message in one]
    assert len(other.handle(later)) == 1
    place.ledger.close()


def test_after_a_stop_the_last_reading_is_still_known(place):
    told = [out for _ in range(4) for out in place.tick()]
    assert told[-1].sensor == "stop"
    again, place.clock.now = place.clock.now, place.clock.now + 61
    place.again()
    place.settings["stale"] = 100.0
    place.again()
    messages = [place.message(sensor=name, time=again) for name in place.runtime.sensors]
    assert place.gateway.handle(messages) == []
    assert place.gateway.counters["not asked"] == 3
    release, stop = list(place.ledger.entries("ada"))[-2:]
    assert release.measured == stop.measured == again


def test_a_clock_of_a_sensor_may_be_a_little_ahead(place):
    [sent] = place.gateway.handle([place.message(time=NOON + 1.5)])
    assert place.ledger.last("ada").measured == NOON + 1.5
    place.gateway.delivered([sent])
    # What says no time is of now, and newer than what came before it.
    [_] = place.gateway.handle([place.message(time=None)])
    assert place.ledger.last("ada").measured > NOON + 1.5


TIMES = st.lists(
    st.tuples(st.sampled_from(["ada", "bob"]), st.integers(0, 2), st.integers(-5, 40), st.integers(0, 60)), max_size=25
)


@settings(max_examples=12)
@given(TIMES)
def test_whatever_times_come_steps_follow_each_other(tmp_path_factory, told):
    place = Place(tmp_path_factory.mktemp("any"), rest=5.0)
    sent = []
    for subject, sensor, behind, later in told:
        place.clock.now += later
        message = Message(subject, place.runtime.sensors[sensor], place.clock.now - behind, symbol="1.87")
        sent += place.gateway.handle([message])
    for name in ("ada", "bob"):
        own = [(out.session, out.step, out.sensor == "stop") for out in sent if out.subject == name]
        assert own == sorted(set(own))
    assert place.gateway.trouble is None
    place.ledger.close()
