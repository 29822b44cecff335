"""Attackers on traces whose secret is easy, hard or impossible to read."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.classifiers import BoostedTrees, Logistic, retrained
from reticent.audit.exact_bayes import ExactBayes
from reticent.audit.lstm import Lstm
from reticent.audit.measures import balanced_accuracy
from reticent.audit.naive_bayes import NaiveBayes
from reticent.audit.ngrams import NGrams
from reticent.audit.observers import Everything, SensorAlone, StepAlone, observers_of
from reticent.audit.play import play, play_readings
from reticent.audit.provider import examples_of, final_beliefs
from reticent.audit.traces import PADDING, Names, Traces, joined
from reticent.belief.filter import NearestSymbolFilter
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Unbounded
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
BAYES = NearestSymbolFilter(jnp.asarray(MODEL.prior), jnp.asarray(MODEL.channel), jnp.asarray(places_of(MODEL)))
LEARNED = (NaiveBayes, Logistic, BoostedTrees, NGrams)


def raw(people=2, count=2000, seed=0):
    streams = readings_of(MODEL, places_of(MODEL), people=people, length=300, seed=seed)
    process = Process.over(BAYES, streams, Unbounded(), horizon=5)
    return play_readings(process, RandomSensor(jnp.asarray(0.95)), count, seed, streams)


def sent(count=2000, seed=0, horizon=5):
    task = Task(MODEL, Unbounded(), horizon=horizon)
    return play(task, Process.of(task), RandomSensor(jnp.asarray(0.95)), count, seed)


def symbols(symbol, secret, sensor=None, count=4):
    names = Names(("a", "b"), tuple(map(str, range(count))), ("0", "1"), ("0", "1"))
    n = len(secret)
    sensor = np.where(symbol == PADDING, PADDING, 0) if sensor is None else sensor
    return Traces(sensor, symbol, None, np.ones(n, bool), np.arange(n), secret, secret, names)


def test_traces_say_what_was_released():
    for records, found in (raw(count=300), sent(count=300)):
        assert (found.length == np.asarray(records.releases)).all()
        # Nothing follows the stop, and who was not cut at the horizon has stopped.
        assert (np.diff((found.sensor != PADDING).astype(int), axis=1) <= 0).all()
        assert (found.stopped == ~np.asarray(records.truncated)).all()
        assert 0 < found.stopped.mean() < 1


def test_readings_know_whose_they_are():
    streams = readings_of(MODEL, places_of(MODEL), people=3, length=50, seed=0)
    process = Process.over(BAYES, streams, Unbounded(), horizon=5)
    records, found = play_readings(process, RandomSensor(jnp.asarray(2.0)), 200, 0, streams)
    row = np.asarray(records.row)
    assert found.reading is not None
    assert (found.person == streams.person[row]).all()
    assert (found.reading[:, 2] == streams.values[row + 2, found.sensor[:, 2]]).all()


def test_exact_attackers_end_with_the_belief_of_the_process():
    records, found = raw(count=300)
    assert np.allclose(final_beliefs(BAYES, examples_of(found)), records.belief)
    records, found = sent(count=300)
    said = ExactBayes(MODEL.prior, "Bayes").posterior(found)
    assert np.allclose(said.secret, np.asarray(records.belief).sum(2))
    assert np.allclose(said.useful, np.asarray(records.belief).sum(1))


def test_a_beginning_is_what_was_known_then():
    _, found = sent(count=300)
    start = found.until(0)
    assert (start.length == 0).all()
    assert not start.stopped.any()
    assert np.allclose(ExactBayes(MODEL.prior, "Bayes").posterior(start).secret, MODEL.prior.sum(1))
    two = found.until(2)
    assert (two.length == np.minimum(found.length, 2)).all()
    assert (two.stopped == (found.stopped & (found.length < 2))).all()
    # Everything is known once the stop has come.
    assert (found.until(found.longest + 1).sensor == found.sensor).all()
    assert (found.until(found.longest + 1).stopped == found.stopped).all()


def test_room_for_more_or_fewer_steps():
    _, found = sent(count=100)
    wide = found.padded(9)
    assert wide.sensor.shape == (100, 9)
    assert (wide.length == found.length).all()
    assert (wide.padded(found.longest).symbol == found.symbol).all()
    assert found.padded(2).longest == 2
    assert len(joined(wide, found)) == 200


@pytest.mark.slow
@pytest.mark.parametrize("make", LEARNED)
def test_learned_attackers_come_near_bayes(make):
    for play_some in (raw, sent):
        (_, seen), (records, measured) = play_some(seed=0, count=6000), play_some(seed=1, count=4000)
        attacker = make()
        attacker.fit(seen)
        said = attacker.posterior(measured)
        assert said.useful.sum(1) == pytest.approx(1.0)
        bayes = balanced_accuracy(np.asarray(records.belief).sum(1).argmax(1), measured.useful)
        accuracy = balanced_accuracy(said.useful.argmax(1), measured.useful)
        # Nobody beats Bayes but by chance: four standard errors are .03; and a fitted attacker loses little.
        assert bayes - 0.05 <= accuracy <= bayes + 0.03


@pytest.mark.slow
def test_the_recurrent_attacker_comes_near_bayes():
    (_, seen), (records, measured) = sent(seed=0, count=6000), sent(seed=1, count=4000)
    attacker = Lstm()
    attacker.fit(seen)
    said = attacker.posterior(measured)
    bayes = balanced_accuracy(np.asarray(records.belief).sum(1).argmax(1), measured.useful)
    assert bayes - 0.05 <= balanced_accuracy(said.useful.argmax(1), measured.useful) <= bayes + 0.03


def test_symbols_are_read_one_by_one():
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=600)
    # The secret is in the parity of the second symbol alone.
    symbol = rng.integers(4, size=(600, 3))
    symbol[:, 1] = 2 * rng.integers(2, size=600) + secret
    found = symbols(symbol, secret)
    said = retrained(found.take(slice(400)), found.take(slice(400, None)))
    assert all(balanced_accuracy(each.secret.argmax(1), secret[400:]) == 1.0 for each in said.values())


@pytest.mark.slow
def test_the_recurrent_attacker_sees_when_it_stopped():
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=2000)
    silent = np.full((2000, 3), PADDING)
    # One says nothing and stops, the other says nothing and may yet go on: only the stop tells anything.
    found = replace(symbols(silent, secret), stopped=secret == 1)
    attacker = Lstm()
    attacker.fit(found.take(slice(1000)))
    said, stopped = attacker.posterior(found.take(slice(1000, None))).secret[:, 1], secret[1000:] == 1
    assert (said[stopped] > 0.95).all()
    assert (said[~stopped] < 0.6).all()


def test_nothing_is_read_from_nothing():
    truth = np.arange(100) % 2
    silent = symbols(np.full((100, 3), PADDING), truth)
    for make in LEARNED:
        attacker = make()
        attacker.fit(silent)
        assert np.allclose(attacker.posterior(silent).secret, 0.5, atol=1e-3)
        # Who has seen one secret only names no other.
        attacker.fit(silent.take(truth == 0))
        assert np.allclose(attacker.posterior(silent).secret[:, 0], 1.0)
        assert (attacker.posterior(silent).fair_guess("secret") == 0).all()


def test_readings_far_from_zero_are_read_as_well():
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=2000)
    near = rng.normal(secret[:, None, None], 1.0, size=(2000, 1, 1)).astype(np.float32)
    for make in (NaiveBayes, Logistic):
        right = []
        for offset in (0.0, 1000.0):
            names = Names(("a",), (), ("0", "1"), ("0", "1"))
            found = Traces(
                np.zeros((2000, 1), int), None, near + np.float32(offset), np.ones(2000, bool), np.arange(2000),
                secret, secret, names,
            )  # fmt: skip
            attacker = make()
            attacker.fit(found.take(slice(1000)))
            said = attacker.posterior(found.take(slice(1000, None)))
            right.append(balanced_accuracy(said.fair_guess("secret"), secret[1000:]))
        # The best that can be is .69; four standard errors are .06.
        assert right == pytest.approx([0.69, 0.69], abs=0.06)


def test_observers_see_less():
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=800)
    noise = rng.integers(4, size=(800, 3))
    by_sensor = symbols(noise, secret, sensor=np.repeat(secret[:, None], 3, axis=1))
    by_length = symbols(np.where(np.arange(3) <= secret[:, None], noise, PADDING), secret)
    by_symbol = symbols(2 * (noise // 2) + secret[:, None], secret)
    known = {
        "everything": (True, True, True),
        "symbols without their sensor": (False, True, True),
        "sensor choices only": (True, True, False),
        "stopping time only": (False, True, False),
    }
    observers = [Everything(), *observers_of(by_sensor)]
    assert [observer.name for observer in observers] == list(known)
    for observer in observers:
        for found, told in zip((by_sensor, by_length, by_symbol), known[observer.name], strict=True):
            seen = observer.sees(found)
            attacker = Logistic()
            attacker.fit(seen.take(slice(600)))
            named = attacker.posterior(seen.take(slice(600, None))).secret.argmax(1)
            accuracy = balanced_accuracy(named, secret[600:])
            assert accuracy == 1.0 if told else accuracy < 0.65


def test_one_sensor_or_one_release_alone_by_hand():
    sensor = np.array([[0, 1, 0], [1, 1, PADDING]])
    found = symbols(np.array([[3, 1, 2], [0, 2, PADDING]]), np.array([0, 1]), sensor=sensor)
    of_a = SensorAlone(0, "a").sees(found)
    assert of_a.symbol is not None
    assert of_a.symbol.tolist() == [[3, 2], [PADDING, PADDING]]
    assert of_a.sensor.tolist() == [[0, 0], [PADDING, PADDING]]
    # That it stopped is not what the sensor said.
    assert not of_a.stopped.any()
    third = StepAlone(3).sees(found)
    assert third.symbol is not None
    assert third.symbol.tolist() == [[2], [PADDING]]
    assert third.sensor.tolist() == [[0], [PADDING]]


def test_balanced_accuracy_by_hand():
    truth = np.array([0, 0, 0, 0, 1])
    assert balanced_accuracy(np.zeros(5, int), truth) == pytest.approx(0.5)
    assert balanced_accuracy(np.array([0, 0, 1, 1, 1]), truth) == pytest.approx(0.75)
