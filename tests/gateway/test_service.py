"""The gateway: one sensor speaks, what is sent is on disk first, and the bound holds over all sessions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.gateway.messages import Message, Outgoing, Refused
from reticent.gateway.settings import Settings
from reticent.problem.bound import Confidence, Information
from reticent.problem.model import Model
from reticent.problem.synthetic import tells_both, two_binary_sensors
from tests.gateway.parts import Place, coarsened, follow, task
from tests.problems import random_model


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
        model = Model(np.full((3, 2), 1 / 6), model.channel, model.secrets, model.useful, model.sensors, model.symbols)
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


def test_settings_are_checked():
    usual = Settings(Path("x"))
    for wrong in ({"rest": -1.0}, {"stale": 0.0}, {"subjects": 0}, {"rest": float("nan")}):
        with pytest.raises(InputError):
            replace(usual, **wrong)


def test_a_sensor_named_stop_is_refused(tmp_path):
    model = two_binary_sensors()
    names = Model(model.prior, model.channel, model.secrets, model.useful, ("stop", "go"), model.symbols)
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
