"""A clock that was ahead silences subjects until somebody lifts that; and then no reading is released twice either."""

from dataclasses import replace

import pytest

from reticent.gateway.holds import AHEAD_SECONDS, all_holds, clock_note, lift
from reticent.gateway.ledger import CLOCK
from reticent.gateway.messages import Message
from reticent.gateway.opening import open_ledger
from reticent.gateway.verify import verify
from tests.gateway.parts import NOON, Place
from tests.gateway.places import FilePlace, chain

DAY = 86_400.0


@pytest.fixture
def place(tmp_path):
    """A gateway and its sensors that ran for a while with a clock a day ahead, which is right now."""
    found = Place(tmp_path)
    found.clock.now += DAY
    found.tick()
    found.tick()
    found.ledger.close()
    found.clock.now = NOON
    found.start()
    yield found
    found.ledger.close()


def lifted(place, subject="ada"):
    """As an operator does, beside the gateway that runs."""
    with open_ledger(str(place.where), beside=True) as ledger:
        return lift(ledger, subject, place.clock.now)


def says(place, subject, time):
    return [Message(subject, sensor, time, symbol="1.87") for sensor in place.runtime.sensors]


def test_it_is_listed_and_lifted(place, caplog):
    assert place.tick() == []
    assert place.gateway.counters["clock"] == 1
    assert "holds lift" in caplog.text
    [hold] = all_holds(place.ledger, place.clock.now)
    assert hold.name == "ada"
    assert "86,401 s ahead of this clock" in hold.why
    before = place.ledger.last("ada")
    assert lifted(place)
    assert list(all_holds(place.ledger, place.clock.now)) == []
    # The gateway sees it without a restart, rests, and goes on.
    assert place.tick(seconds=10) == []
    [stop] = place.gateway.resend()
    assert (stop.sensor, stop.session, stop.step) == ("stop", 0, 2)
    place.gateway.delivered([stop])
    assert [(out.session, out.step) for out in place.tick(seconds=60)] == [(1, 0)]
    # What was known stays known.
    stopped = place.ledger.at("ada", 2)
    assert (stopped.belief, stopped.spent_bits) == (before.belief, before.spent_bits)
    verdict = verify(place.ledger, place.runtime)
    assert verdict.fault is None
    assert verdict.clocks_set_back == 1


def test_there_is_nothing_to_lift_where_the_clock_is_right(place):
    assert not lifted(place, "bob")
    place.clock.now = NOON + DAY + 100
    assert not lifted(place)
    assert place.ledger.last("ada").number == 1


def test_a_reading_that_was_released_by_the_wrong_clock_is_not_released_again(place):
    """A day later its time has come, and it would look new."""
    released = place.ledger.last("ada").measured
    assert lifted(place)
    place.clock.now = released + 0.5
    for changed in (False, True):
        if changed:
            place.again()
        place.gateway.delivered(place.gateway.handle(says(place, "ada", released)))
        assert place.ledger.last("ada").symbol is None
        assert place.gateway.counters["duplicate"] == 1
    # Another one of that moment was not.
    assert len(place.gateway.handle(says(place, "ada", released + 0.25))) == 1


def test_readings_of_the_moment_of_the_lifting_are_not_used(place):
    assert lifted(place)
    place.clock.now += 61
    place.settings["stale"] = 100.0
    place.again()
    place.gateway.delivered(place.gateway.resend())
    assert place.gateway.handle(says(place, "ada", NOON + AHEAD_SECONDS)) == []
    assert len(place.gateway.handle(says(place, "ada", NOON + AHEAD_SECONDS + 1))) == 1


def test_after_a_stop_it_is_lifted_too(tmp_path):
    place = Place(tmp_path)
    place.clock.now += DAY
    while place.tick()[-1].sensor != "stop":
        pass
    place.ledger.close()
    place.clock.now = NOON
    place.start()
    stop = place.ledger.last("ada")
    assert stop is not None
    assert lifted(place)
    # The provider hears the same stop once more.
    [again] = place.gateway.resend()
    assert (again.session, again.step, again.sensor) == (stop.session, stop.step, "stop")
    place.gateway.delivered([again])
    assert [(out.session, out.step) for out in place.tick(seconds=61)] == [(1, 0)]
    assert verify(place.ledger, place.runtime).fault is None
    place.ledger.close()


def test_a_note_that_cannot_be_read_is_checked_always():
    assert clock_note({}, "ada") == float("-inf")
    assert clock_note({CLOCK + "ada": "12.5"}, "ada") == 12.5
    assert clock_note({CLOCK + "ada": "noon"}, "ada") == clock_note({CLOCK + "ada": "nan"}, "ada") == float("inf")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"time": 1.7e9, "measured": 1.7e9, "step": 7}, "does not end the session"),
        ({"time": 1.7e9, "measured": 1.7e10}, "is older than"),
    ],
)
def test_other_stops_do_not_go_back(tmp_path, changed, sentence):
    where = FilePlace(str(tmp_path / "ledger.db"))
    first, second, third = chain("ada", 3)
    stop = replace(third, sensor="stop", symbol=None, chances=None, **changed)
    with where.open() as ledger:
        ledger.append([first, second, stop])
        fault = verify(ledger).fault
        assert fault is not None
        assert sentence in fault.sentence
