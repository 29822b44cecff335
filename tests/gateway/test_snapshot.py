"""What an operator sees and does: snapshots, events, counters and pauses, from any thread; never a reading."""

import logging
import threading

import numpy as np
import pytest

from reticent.gateway.messages import Outgoing


def test_what_was_measured_when_does_not_leave(place):
    assert "measured" not in Outgoing.__slots__
    place.tick()
    assert "measured" not in str(place.gateway.snapshot("ada"))


def test_nobody_sees_readings_or_secrets(place, caplog):
    caplog.set_level(logging.DEBUG)
    place.gateway.handle([place.message(symbol="hush")])
    for _ in range(3):
        place.tick()
    shown = str(place.gateway.snapshot("ada"))
    assert "hush" not in caplog.text + shown
    for secret in place.runtime.task.model.secrets:
        assert repr(secret) not in shown


def test_the_snapshot_says_what_the_provider_knows(place):
    for _ in range(2):
        place.tick()
    snapshot = place.gateway.snapshot("ada")
    entries = list(place.ledger.entries("ada"))
    chosen = snapshot["chosen"]
    assert snapshot["bound"] == {"kind": "information", "limit": 1.4, "start": 0.0}
    assert chosen["known"] == pytest.approx(entries[-1].spent_bits)
    assert chosen["useful"] == pytest.approx(np.sum(entries[-1].belief, axis=0))
    assert 0 < chosen["left"] < 1
    assert [point["symbol"] for point in chosen["history"]] == [entry.symbol for entry in entries]
    assert place.gateway.snapshot("nobody")["chosen"] is None
    assert snapshot["subjects"][0]["name"] == "ada"


def test_subscribers_hear_of_releases_stops_and_trouble(place):
    heard = []
    end = place.gateway.subscribe(heard.append)
    for _ in range(4):
        place.tick()
    place.gateway.pause()
    kinds = [event["kind"] for event in heard]
    assert kinds.count("release") == 4
    assert kinds.count("stop") == 1
    assert kinds.count("trouble") == 1
    assert {event["subject"] for event in heard if event["kind"] == "release"} == {"ada"}
    end()
    end()
    place.gateway.resume()
    assert len(heard) == len(kinds)


def test_what_comes_during_a_pause_is_counted_and_dropped(place):
    place.gateway.pause()
    assert place.tick() == []
    assert place.gateway.counters["paused"] == 1
    assert place.gateway.counters["trouble"] == 0
    assert list(place.ledger.entries()) == []


def test_other_threads_may_look_and_pause_meanwhile(place):
    done, errors = threading.Event(), []

    def look():
        try:
            while not done.is_set():
                place.gateway.snapshot("ada")
                place.gateway.pause()
                place.gateway.resume()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(30):
        place.tick()
    done.set()
    thread.join()
    assert errors == []
    assert place.gateway.counters["received"] == 30
