"""Attackers on traces whose secret is easy, hard or impossible to read."""

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.adversaries import (
    NEVER,
    Released,
    attack,
    balanced_accuracy,
    examples_of,
    final_beliefs,
    reading_features,
    released,
    symbol_features,
)
from reticent.belief.provider import BayesProvider
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import ConfidenceBound
from reticent.problem.synthetic import two_binary_sensors
from reticent.process.replay import ReplayProcess
from reticent.process.rollout import simulate_traced
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
BAYES = BayesProvider(jnp.asarray(MODEL.prior), jnp.asarray(MODEL.channel), jnp.asarray(places_of(MODEL)))


def traces(people=2, count=2000, seed=0):
    streams = readings_of(MODEL, places_of(MODEL), people=people, length=300, seed=seed)
    process = ReplayProcess(BAYES, streams, ConfidenceBound(2.0), horizon=5)
    records, sent = simulate_traced(process, RandomSensor(jnp.asarray(0.95)).act, count, seed)
    return streams, records, released(records, sent, 2, 5)


def test_traces_say_what_was_released():
    _, records, found = traces(count=300)
    assert ((found.sensor != NEVER).sum(1) == np.asarray(records.releases)).all()
    # Nothing follows the stop.
    assert (np.diff((found.sensor != NEVER).astype(int), axis=1) <= 0).all()


def test_an_exact_provider_ends_with_the_belief_of_the_process():
    streams, records, found = traces(count=300)
    beliefs = final_beliefs(BAYES, examples_of(found, streams.values))
    assert np.allclose(beliefs, records.belief)


@pytest.mark.slow
def test_attackers_come_near_bayes():
    (streams, _, seen), (others, records, measured) = traces(seed=0, count=6000), traces(seed=1, count=4000)
    guesses = attack(reading_features(seen, streams.values), seen.useful, reading_features(measured, others.values))
    bayes = balanced_accuracy(np.asarray(records.belief).sum(1).argmax(1), measured.useful)
    for guess in guesses.values():
        accuracy = balanced_accuracy(guess, measured.useful)
        # Nobody beats Bayes but by chance: four standard errors are .03; and a fitted attacker loses little.
        assert bayes - 0.05 <= accuracy <= bayes + 0.03


def test_symbols_are_read_one_by_one():
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=600)
    sensor = np.zeros((600, 3), int)
    # The secret is in the parity of the second symbol alone.
    symbol = rng.integers(4, size=(600, 3))
    symbol[:, 1] = 2 * rng.integers(2, size=600) + secret
    features = symbol_features(Released(sensor, symbol, secret, secret), 1, 4)
    guesses = attack(features[:400], secret[:400], features[400:])
    assert all(balanced_accuracy(guess, secret[400:]) == 1.0 for guess in guesses.values())


def test_nothing_is_read_from_nothing():
    silent = np.full((100, 3), NEVER)
    truth = np.arange(100) % 2
    features = symbol_features(Released(silent, silent, truth, truth), 2, 4)
    assert (features == 0).all()
    assert all(balanced_accuracy(g, truth) == 0.5 for g in attack(features, truth, features).values())
    assert (attack(features, np.zeros(100, int), features)["constant"] == 0).all()


def test_balanced_accuracy_by_hand():
    truth = np.array([0, 0, 0, 0, 1])
    assert balanced_accuracy(np.zeros(5, int), truth) == pytest.approx(0.5)
    assert balanced_accuracy(np.array([0, 0, 1, 1, 1]), truth) == pytest.approx(0.75)
