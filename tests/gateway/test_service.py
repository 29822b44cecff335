"""The heart: one sensor speaks, what is sent is on disk first, and whatever is wrong, nothing leaves."""

import gc
import logging
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import InputError
from reticent.gateway import view
from reticent.gateway.messages import Message, Outgoing, Refused
from reticent.gateway.runtime import STOP, Runtime
from reticent.gateway.service import Gateway, Settings
from reticent.gateway.sessions import EXHAUSTED
from reticent.problem.bound import Confidence, Information
from reticent.problem.model import ReleaseModel
from reticent.problem.synthetic import tells_both, two_binary_sensors
from tests.gateway.parts import NOON, Place, coarsened, follow, task, write_policy
from tests.problems import random_model


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path)
    yield found
    found.ledger.close()


def test_one_sensor_speaks_and_the_rest_is_dropped(place):
    asked = place.asked()
    others = [place.message(sensor=name) for name in place.runtime.sensors if name != asked]
    assert place.gateway.handle(others) == []
    assert place.gateway.counters["not asked"] == 2
    [sent] = place.gateway.handle([place.message()])
    assert (sent.subject, sent.session, sent.step, sent.sensor) == ("ada", 0, 0, asked)
    assert place.gateway.counters["released"] == 1


def test_what_leaves_is_on_disk_with_the_belief_that_it_leads_to(place):
    sent = [out for _ in range(3) for out in place.tick()]
    entries = list(place.ledger.entries("ada"))
    assert [Outgoing(e.subject, e.session, e.step, e.sensor, e.symbol) for e in entries] == sent
    standing = place.runtime.first()
    for entry in entries:
        standing = follow(place.runtime, standing, entry)
        assert np.allclose(entry.belief, standing.belief, rtol=0, atol=1e-12)
        assert entry.spent_bits == pytest.approx(standing.spent_bits, abs=1e-12)
        assert entry.policy == place.runtime.digest


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
    from reticent.gateway.ledger import standing_of

    return standing_of(list(place.ledger.entries("ada"))[number])


def test_subjects_have_beliefs_of_their_own(place):
    for _ in range(2):
        place.tick("ada", reading=15)
    place.tick("bob", reading=30)
    ada, bob = (list(place.ledger.entries(name)) for name in ("ada", "bob"))
    assert [entry.number for entry in ada] == [0, 1]
    assert [entry.number for entry in bob] == [0]
    alone = follow(place.runtime, place.runtime.first(), bob[0])
    assert np.allclose(bob[0].belief, alone.belief, rtol=0, atol=1e-12)


def test_a_batch_is_one_transaction(place, monkeypatch):
    written = []
    append = place.ledger.append
    monkeypatch.setattr(place.ledger, "append", lambda entries: written.append(len(entries)) or append(entries))
    everybody = [f"subject {i}" for i in range(20)]
    sent = place.gateway.handle([place.message(name) for name in everybody])
    assert [out.subject for out in sent] == everybody
    assert written == [20]


def test_several_readings_of_one_subject_in_a_batch_follow_each_other(place):
    readings = [Message("ada", sensor, symbol="1.87") for _ in range(6) for sensor in place.runtime.sensors]
    sent = place.gateway.handle(readings)
    assert [out.step for out in sent] == [0, 1, 2, 3, 4]
    assert sent[-1].sensor == "stop"
    assert [entry.number for entry in place.ledger.entries("ada")] == [0, 1, 2, 3, 4]


def test_merged_symbols_leave_in_place_of_readings(tmp_path):
    place = Place(tmp_path, coarsened())
    sent = [out for reading in (1, 25, 48, 20) for out in place.tick(reading=reading)]
    entries = list(place.ledger.entries("ada"))
    assert any(str(out.symbol).startswith("merged") for out in sent)
    assert max(entry.confidence for entry in entries) < 0.8
    history = place.gateway.snapshot("ada")["chosen"]["history"]
    assert [point["merged"] for point in history] == [str(e.symbol).startswith("merged") for e in entries]
    assert [point["known"] for point in history] == pytest.approx([entry.confidence for entry in entries])
    place.ledger.close()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("bound", "enforce"),
    [(Confidence(0.75), "coarsen"), (Confidence(0.75), "withhold"), (Information(0.9), "mask")],
)
def test_whatever_comes_the_bound_holds_over_all_sessions(tmp_path, seed, bound, enforce):
    model = random_model(seed, sensors=2, secrets=3, useful=2, symbols=4, sparse=seed % 2 == 1)
    if isinstance(bound, Confidence) and model.largest_secret_prior > 0.7:
        model = ReleaseModel(
            np.full((3, 2), 1 / 6), model.channel, model.secrets, model.useful, model.sensors, model.symbols
        )
    place = Place(tmp_path, task(bound, enforce, 3, model), rest=5.0, drift_check=False)
    rng = np.random.default_rng(seed)
    for turn in range(16):
        place.tick(seconds=2.0, reading=int(rng.integers(4)))
        if turn % 7 == 6:
            place.again()
    entries = list(place.ledger.entries("ada"))
    assert entries
    if isinstance(bound, Confidence):
        assert max(entry.confidence for entry in entries) < bound.limit
    else:
        assert max(entry.spent_bits for entry in entries) < bound.bits
    place.ledger.close()


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


def test_what_perhaps_never_left_is_sent_again(place):
    sent = place.gateway.handle([place.message()])
    assert len(sent) == 1
    place.again()
    assert place.gateway.resend() == sent
    assert [out.to_json() for out in place.gateway.resend()] == [out.to_json() for out in sent]
    place.gateway.delivered(sent)
    assert place.gateway.resend() == []
    place.again()
    assert place.gateway.resend() == []
    assert place.gateway.counters["sent again"] == 0


def test_without_asking_the_first_readings_bring_it_along(place):
    [sent] = place.gateway.handle([place.message()])
    place.again()
    assert place.tick("bob")[0] == sent


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


def test_what_was_measured_when_does_not_leave(place):
    assert "measured" not in Outgoing.__slots__
    place.tick()
    assert "measured" not in str(place.gateway.snapshot("ada"))


def test_every_message_is_counted_once(place):
    place.gateway.refuse(Refused("malformed", "a message is not JSON"))
    for _ in range(8):
        place.tick()
    place.gateway.handle([Message("ada", "nose", symbol="1.87")])
    counters = dict(place.gateway.counters)
    received = counters.pop("received")
    del counters["stopped"]
    assert received == 1 + 8 + 1
    assert sum(counters.values()) == received


def test_memory_holds_so_many_subjects_and_the_ledger_brings_back_the_others(tmp_path):
    place = Place(tmp_path, subjects=3)
    names = [f"subject {i}" for i in range(10)]
    for name in names:
        place.tick(name)
    assert place.gateway.snapshot()["in_memory"] == 3
    assert [place.tick(name)[0].step for name in names] == [1] * 10
    place.ledger.close()


def test_memory_does_not_grow_with_all_who_ever_came(tmp_path, monkeypatch):
    """Eight times as many subjects as fit in: what is kept stays the same, where ten of them take some 20 KB."""
    monkeypatch.setattr(view, "SHOWN_SUBJECTS", 10)
    place, kept, rng = Place(tmp_path, subjects=10), [], np.random.default_rng(0)
    sensor = place.asked()
    tracemalloc.start()
    for crowd in range(8):
        place.clock.now += 1
        codes = rng.choice(place.runtime.task.model.symbols[15:35], 10)
        crowded = [Message(f"{crowd} {i}", sensor, symbol=str(code)) for i, code in enumerate(codes)]
        place.gateway.delivered(place.gateway.handle(crowded))
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert place.gateway.counters["released"] == 80
    assert max(kept[4:]) - kept[3] < 15_000
    place.ledger.close()


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


def test_settings_are_checked():
    usual = Settings(Path("x"))
    for wrong in ({"rest": -1.0}, {"stale": 0.0}, {"subjects": 0}, {"rest": float("nan")}):
        with pytest.raises(InputError):
            replace(usual, **wrong)


def test_a_sensor_named_stop_is_refused(tmp_path):
    model = two_binary_sensors()
    names = ReleaseModel(model.prior, model.channel, model.secrets, model.useful, ("stop", "go"), model.symbols)
    with pytest.raises(InputError, match="rename"):
        Place(tmp_path, task(Information(0.5), model=names))


def test_where_every_reading_gives_the_secret_away_only_merged_ones_leave(tmp_path):
    place = Place(tmp_path, task(Confidence(0.8), "coarsen", model=tells_both()))
    for _ in range(10):
        place.tick(reading=int(place.draws.integers(4)))
    entries = list(place.ledger.entries())
    sent = [entry.symbol for entry in entries if entry.symbol is not None]
    assert sent
    assert all(symbol.startswith("merged: ") for symbol in sent)
    assert all(entry.confidence < 0.8 for entry in entries)
    place.ledger.close()


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
