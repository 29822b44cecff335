"""A finite model from recordings whose true model is known."""

import json

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.problem.fit import Codebook, calibration_error, counted, fit_model, flattened
from reticent.problem.model import ReleaseModel, read_problem
from reticent.problem.synthetic import two_binary_sensors
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
STREAMS = readings_of(MODEL, places_of(MODEL), people=3, length=2000)


def flattening(model):
    assert model.fitted is not None
    return model.fitted["flattening"]


def test_the_channel_is_found_again():
    fitted = fit_model(STREAMS, codes=2)
    codebook = Codebook.of(fitted)
    # Which centre became which code is chance: the reading 1.0 is found again by its code.
    one = codebook.codes(np.ones((1, 2, 1)))[0]
    for sensor in range(2):
        law = counted(STREAMS, codebook.codes(STREAMS.values), 2)[sensor, :, :, one[sensor]]
        # 6,000 readings per pair: four standard errors are .026; smoothing draws at most .05 of the way to the mean.
        assert np.allclose(law, MODEL.channel[sensor, :, :, 1], atol=0.05)
    # Independent readings need no flattening.
    assert flattening(fitted)["power"] >= 0.7
    assert np.array_equal(fitted.prior, np.full((2, 2), 0.25))


def test_repeated_readings_are_flattened():
    # Every reading comes ten times in a row: plain Bayes is far too sure.
    rows = np.repeat(np.arange(len(STREAMS.person)), 10)
    repeated = {name: getattr(STREAMS, name)[rows] for name in ("values", "stream", "person", "secret", "useful")}
    found = fit_model(type(STREAMS)(**{**vars(STREAMS), **repeated}), codes=2)
    found = flattening(found)
    assert found["power"] <= 0.4 or found["clip"] is not None
    assert found["loss"] < found["plain_loss"]
    assert found["calibration_error"] < 0.5 * found["plain_calibration_error"]


def test_flattening_keeps_laws_and_draws_them_together():
    plain = flattened(MODEL.channel, 1.0, None)
    assert np.allclose(plain, MODEL.channel)
    flat = flattened(MODEL.channel, 0.3, 0.2)
    assert np.allclose(flat.sum(-1), 1)
    assert np.ptp(flat, axis=(1, 2)).max() < np.ptp(MODEL.channel, axis=(1, 2)).max()


def test_a_code_that_nobody_gave_is_not_impossible():
    codes = np.zeros((len(STREAMS.person), 2), int)
    assert (counted(STREAMS, codes, 3) > 0).all()


def test_the_codebook_survives_the_problem_file(tmp_path):
    model = fit_model(STREAMS, codes=2)
    (tmp_path / "m.json").write_text(json.dumps(model.to_json()))
    again = read_problem(tmp_path / "m.json")
    assert np.array_equal(again.channel, model.channel)
    assert np.array_equal(Codebook.of(again).codes(STREAMS.values), Codebook.of(model).codes(STREAMS.values))
    with pytest.raises(InputError, match="not fitted"):
        Codebook.of(MODEL)
    broken = model.to_json()
    broken["fitted"]["codebook"]["mean"] = [[0.0]]
    with pytest.raises(InputError, match="does not fit"):
        Codebook.of(ReleaseModel.from_json(broken))


def test_pairs_that_cannot_be_get_no_belief():
    kept = (STREAMS.secret == 0) | (STREAMS.useful == 0)
    rows = {name: getattr(STREAMS, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    flat = STREAMS.values[kept] * 0 + np.arange(2)[np.arange(kept.sum()) % 2][:, None, None]
    found = flattening(fit_model(type(STREAMS)(**{**vars(STREAMS), **rows, "values": flat}), codes=2))
    # Readings that say nothing leave the prior of three pairs: log 3 nats.
    assert found["loss"] == pytest.approx(np.log(3), abs=0.01)


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(InputError, match="2 different readings, fewer than 30 codes"):
        fit_model(STREAMS)
    rows = {
        name: getattr(STREAMS, name)[STREAMS.secret == 0] for name in ("values", "stream", "person", "secret", "useful")
    }
    with pytest.raises(InputError, match="Only one secret"):
        fit_model(type(STREAMS)(**{**vars(STREAMS), **rows}), codes=2)


def test_one_person_is_too_few():
    with pytest.raises(InputError, match="at least two people"):
        fit_model(STREAMS.of([0]))


def test_calibration_error_by_hand():
    # Said .9 and right half of the time; said .6 and right in .6 of cases.
    confidence = np.array([0.9] * 10 + [0.6] * 10)
    right = np.array([1] * 5 + [0] * 5 + [1] * 6 + [0] * 4)
    assert calibration_error(confidence, right) == pytest.approx(0.2)
