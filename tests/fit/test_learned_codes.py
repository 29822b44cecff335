"""Codes on a classifier's outputs, where most of what a reading varies in tells nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest

import reticent as rt
from reticent.fit.codes import make_codebook
from reticent.fit.learned_codes import LearnedCodes, _temperature
from reticent.fit.model import fit_coded, fit_model
from reticent.problem.codebook import Codebook
from reticent.problem.synthetic import two_binary_sensors
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()


def noisy(people=4, length=100, seed=0):
    """What tells the pair is one weak direction of five; the others vary ten times as much and tell nothing."""
    streams = readings_of(MODEL, places_of(MODEL), people, length, seed)
    rng = np.random.default_rng([seed, 1])
    told = np.stack([streams.useful, streams.secret], axis=1) * 2.0 + rng.normal(size=(len(streams.person), 2))
    noise = 10 * rng.normal(size=(len(told), 2, 4))
    values = np.concatenate([told[:, :, None], noise], axis=2).astype(np.float32)
    # Turned, so that no axis shows it alone.
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(5, 5)))[0]
    return replace(streams, values=(values @ turn).astype(np.float32), features=(5, 5))


STREAMS = noisy()


@pytest.fixture(scope="module")
def learned():
    return fit_coded(STREAMS, "learned")


def test_learned_codes_tell_more_than_those_of_where_readings_lie(learned):
    model, _ = learned
    plain = fit_model(STREAMS, 20)
    ours, theirs = ((each.fitted or {})["tempering"]["loss"] for each in (model, plain))
    assert ours < theirs - 0.5
    assert max(Codebook.of(model).sizes) in (5, 10, 20)


def test_people_are_coded_by_networks_of_others():
    codes = LearnedCodes(STREAMS, 0)
    book, own = codes.codebook(5)
    # The network of everybody has seen them, so it is surer of their labels.
    everybody = book.codes(STREAMS.values)
    assert (own != everybody).mean() > 0.02
    told = [_told(STREAMS, coding[:, 0]) for coding in (own, everybody)]
    assert told[0] < told[1]


def _told(streams, codes):
    """Bits that a code tells of the useful value, as counted."""
    joint = np.histogram2d(codes, streams.useful, bins=(np.arange(6), np.arange(3)))[0] / len(codes)
    apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    return (joint * np.log2(np.where(joint > 0, joint / apart, 1))).sum()


def test_what_is_too_sure_of_itself_is_cooled():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 4))
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    pair = (chances.cumsum(1) > rng.random((len(logits), 1))).argmax(1)
    # Four standard errors are .1.
    assert _temperature(3 * logits, pair) == pytest.approx(3, abs=0.15)


def test_a_classifier_survives_the_problem_file(learned):
    model, _ = learned
    again = rt.Model.from_json(json.loads(json.dumps(model.to_json())))
    fresh = noisy(seed=9).values
    assert np.array_equal(Codebook.of(again).codes(fresh), Codebook.of(model).codes(fresh))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("shift", [0.0], "does not fit its sensors"),
        ("temperature", 0.0, "does not fit its sensors"),
        ("first", "x", "no codebook that can be read"),
    ],
)
def test_a_damaged_classifier_is_refused(learned, name, value, sentence):
    written = json.loads(json.dumps(learned[0].to_json()))
    written["fitted"]["codebook"]["classifiers"][0][name] = value
    with pytest.raises(rt.InputError, match=sentence):
        Codebook.of(rt.Model.from_json(written))


def test_a_sensor_that_is_not_there_is_a_symbol_of_its_own():
    values = STREAMS.values.copy()
    values[::7, 1] = np.nan
    book, own = LearnedCodes(replace(STREAMS, values=values), 0).codebook(5)
    assert book.may_lack
    assert (own[::7, 1] == 5).all()
    assert (book.codes(values)[::7, 1] == 5).all()
    assert own[1::7].max() < 5


def test_by_hand():
    book = make_codebook(STREAMS, 3, 0)
    from reticent.problem.codebook import Classifier

    network = Classifier(np.eye(2), np.zeros(2), np.array([[1.0, -1.0], [0.0, 0.0]]), np.zeros(2), 0.5)
    logits = network.logits(np.array([[2.0, 7.0], [-1.0, 3.0]]))
    assert logits.tolist() == [[2.0, -2.0], [0.0, 0.0]]
    assert network.roots(logits)[1] == pytest.approx([0.5**0.5] * 2)
    assert network.roots(logits)[0, 0] ** 2 == pytest.approx(1 / (1 + np.exp(-8)))
    assert book.classifiers is None
