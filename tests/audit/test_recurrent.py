"""The recurrent attacker: it finds what is in the order, whatever it was given before, in one compiled program."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.audit import training
from reticent.audit.lstm import Lstm, held_out_rows
from reticent.audit.measures import balanced_accuracy
from reticent.audit.network import final_posterior
from reticent.audit.sequences import sequences_of
from reticent.audit.traces import PADDING, Names, Traces


def turning(count, seed=0):
    """Four sensors take turns, forwards or backwards, from anywhere: the secret in 90 %. Symbols say nothing of it."""
    rng = np.random.default_rng(seed)
    secret = rng.integers(2, size=count)
    told = np.where(rng.random(count) < 0.9, secret, 1 - secret)
    sensor = (rng.integers(4, size=count)[:, None] + np.arange(4)[None] * np.where(told, 1, -1)[:, None]) % 4
    names = Names(tuple("abcd"), ("0", "1"), ("0", "1"), ("0", "1"))
    symbol, useful = rng.integers(2, size=(count, 4)), rng.integers(2, size=count)
    return Traces(sensor, symbol, None, np.ones(count, bool), np.arange(count), secret, useful, names)


@pytest.fixture(scope="module")
def fitted():
    """One who was fitted to a third, and then to all: with what it knew after each, and programs compiled so far."""
    attacker, judged, right, programs = Lstm(), turning(1000, seed=1), [], []
    for count in (600, 1800):
        attacker.fit(turning(count))
        guess = attacker.posterior(judged).fair_guess("secret")
        right.append(balanced_accuracy(guess, judged.secret))
        compiled = (training.advance, training.losses, final_posterior)
        programs.append([one._cache_size() for one in compiled])  # type: ignore[attr-defined]
    return attacker, right, programs


@pytest.mark.slow
def test_it_learns_an_order_from_few_episodes_and_from_many(fitted):
    _, right, _ = fitted
    # The best that can be is .9; four standard errors of 1,000 episodes are .04.
    assert right[0] > 0.75
    assert right[1] == pytest.approx(0.9, abs=0.04)


@pytest.mark.slow
def test_seeds_and_sizes_share_one_program(fitted):
    _, _, programs = fitted
    assert programs[0] == programs[1]


@pytest.mark.slow
def test_it_is_never_worse_than_what_it_learned_before(fitted, monkeypatch):
    attacker, right, _ = fitted
    again = Lstm()
    again.candidates = list(attacker.candidates)
    # Whatever it learns now, it learns too little of.
    monkeypatch.setattr(training, "updates_of", lambda seen: training.BETWEEN)
    monkeypatch.setattr(training, "BETWEEN", 2)
    again.fit(turning(1500))
    assert len(again.candidates) == 3
    assert again.candidates[-1].loss > again.best.loss
    judged = turning(1000, seed=1)
    assert balanced_accuracy(again.posterior(judged).fair_guess("secret"), judged.secret) == right[1]


@pytest.mark.slow
def test_who_has_seen_nothing_believes_what_is_usual(fitted):
    attacker, _, _ = fitted
    start = turning(100).until(0)
    before = attacker.best.prior
    assert np.allclose(attacker.posterior(start).secret, before.sum(1))


def test_held_out_people_are_the_same_whoever_else_there_is():
    traces = turning(400)
    traces = replace(traces, person=np.arange(400) % 40)
    whole, part = (held_out_rows(each, 0) for each in (traces, traces.take(slice(100))))
    assert (whole[:100] == part).all()
    assert 0 < whole.mean() < 0.5
    assert set(traces.person[whole]).isdisjoint(traces.person[~whole])
    # Of one person, some episodes.
    assert held_out_rows(replace(traces, person=np.zeros(400, int)), 0).mean() == pytest.approx(0.2)


def test_the_stop_and_waits_are_read_as_steps():
    sensor = np.array([[0, 1], [1, PADDING]])
    waits = np.array([[[0.0], [1], [3]], [[0], [0], [0]]], np.float32)
    names = Names(("a", "b"), ("0", "1"), ("0", "1"), ("0", "1"), ("time",))
    labels = np.array([0, 1])
    stopped = np.array([True, False])
    traces = Traces(sensor, np.array([[1, 0], [0, PADDING]]), None, stopped, labels, labels, labels, names, waits=waits)
    seen = sequences_of(traces, None)
    assert seen.sensor.tolist() == [[0, 1, 2], [1, 0, 0]]
    assert seen.symbol.tolist() == [[1, 0, 2], [0, 2, 2]]
    assert seen.length.tolist() == [3, 1]
    assert np.allclose(seen.numbers[0, :, 0], np.log1p([0, 1, 3]))
