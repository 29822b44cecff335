"""A finite model from recordings whose true model is known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from reticent.data.readings import uniform_prior
from reticent.errors import InputError
from reticent.fit.calibration import calibration_error
from reticent.fit.codes import counted
from reticent.fit.model import fit_model
from reticent.fit.prior import prior_of
from reticent.fit.tempering import tempered, tempered_in_parts
from reticent.gateway.readings import Encoder
from reticent.problem.codebook import Codebook
from reticent.problem.model import Model, read_problem
from reticent.problem.synthetic import two_binary_sensors
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
STREAMS = readings_of(MODEL, places_of(MODEL), people=3, length=2000)


def tempering(model):
    assert model.fitted is not None
    return model.fitted["tempering"]


def test_the_channel_is_found_again():
    fitted = fit_model(STREAMS, codes=2)
    codebook = Codebook.of(fitted)
    # Which centre became which code is chance: the reading 1.0 is found again by its code.
    one = codebook.codes(np.ones((1, 2, 1)))[0]
    for sensor in range(2):
        law = counted(STREAMS, codebook.codes(STREAMS.values), np.ones((2, 2), bool))[sensor, :, :, one[sensor]]
        # 6,000 readings per pair: four standard errors are .026; smoothing draws at most .05 of the way to the mean.
        assert np.allclose(law, MODEL.channel[sensor, :, :, 1], atol=0.05)
    # Independent readings need no tempering.
    assert tempering(fitted)["power"] >= 0.7
    assert np.array_equal(fitted.prior, np.full((2, 2), 0.25))


def test_repeated_readings_are_flattened():
    # Every reading comes ten times in a row: plain Bayes is far too sure.
    rows = np.repeat(np.arange(len(STREAMS.person)), 10)
    repeated = {name: getattr(STREAMS, name)[rows] for name in ("values", "stream", "person", "secret", "useful")}
    found = fit_model(type(STREAMS)(**{**vars(STREAMS), **repeated}), codes=2)
    found = tempering(found)
    assert found["power"] <= 0.4 or found["clip"] is not None
    assert found["loss"] < found["plain_loss"]
    assert found["calibration_error"] < 0.5 * found["plain_calibration_error"]


def test_flattening_keeps_laws_and_draws_them_together():
    plain = tempered(MODEL.channel, 1.0, None)
    assert np.allclose(plain, MODEL.channel)
    flat = tempered(MODEL.channel, 0.3, 0.2)
    assert np.allclose(flat.sum(-1), 1)
    assert np.ptp(flat, axis=(1, 2)).max() < np.ptp(MODEL.channel, axis=(1, 2)).max()


def test_parts_are_tempered_alone():
    prior = np.array([[0.5, 0.2], [0.1, 0.2]])
    assert np.allclose(tempered_in_parts(MODEL.channel, prior, 1.0, 1.0), MODEL.channel)
    # One power for both parts is one power of the whole.
    assert np.allclose(tempered_in_parts(MODEL.channel, prior, 0.3, 0.3), tempered(MODEL.channel, 0.3, None))
    blind = tempered_in_parts(MODEL.channel, prior, 1.0, 0.0)
    assert np.allclose(blind[:, 0], blind[:, 1])
    # By hand: what the first sensor says of the first useful value, whichever secret.
    assert blind[0, 0, 0] == pytest.approx((5 * MODEL.channel[0, 0, 0] + MODEL.channel[0, 1, 0]) / 6)
    rare = np.concatenate([MODEL.channel, np.zeros((2, 2, 2, 1))], axis=3)
    assert (tempered_in_parts(rare, np.array([[0.5, 0.0], [0.5, 0.0]]), 0.5, 0.2)[..., 2] == 0).all()


def test_a_code_that_nobody_gave_is_not_impossible():
    codes = np.zeros((len(STREAMS.person), 2), int)
    assert (counted(STREAMS, codes, np.ones((2, 3), bool)) > 0).all()


def test_the_codebook_survives_the_problem_file(tmp_path):
    model = fit_model(STREAMS, codes=2)
    (tmp_path / "m.json").write_text(json.dumps(model.to_json()))
    again = read_problem(tmp_path / "m.json")
    assert np.array_equal(again.channel, model.channel)
    assert np.array_equal(Codebook.of(again).codes(STREAMS.values), Codebook.of(model).codes(STREAMS.values))
    with pytest.raises(InputError, match="not fitted"):
        Codebook.of(MODEL)
    broken = model.to_json()
    for mean, sentence in (([[0.0]], "does not fit"), ("x", "no codebook"), ([[0.0], []], "no codebook")):
        broken["fitted"]["codebook"]["mean"] = mean
        with pytest.raises(InputError, match=sentence):
            Codebook.of(Model.from_json(broken))
    broken["fitted"] = {"x": 1}
    with pytest.raises(InputError, match="lacks its codebook"):
        Model.from_json(broken)


def test_a_sensor_has_as_many_codes_as_it_has_readings():
    # The first sensor is binary, the second has four values: it used to be refused with 30 codes.
    rng = np.random.default_rng(0)
    values = STREAMS.values.copy()
    values[:, 1, 0] += 2 * rng.integers(2, size=len(values))
    model = fit_model(replace(STREAMS, values=values))
    assert model.symbols == tuple(f"code {z}" for z in range(4))
    assert Codebook.of(model).sizes == (2, 4)
    # Codes of few values are those values, in their order.
    assert Codebook.of(model).codes(values[:50]).tolist() == values[:50, :, 0].astype(int).tolist()
    assert (model.channel[0, ..., 2:] == 0).all()
    assert (model.channel[0, ..., :2] > 0).all()
    assert (model.channel[1] > 0).all()
    again = Model.from_json(json.loads(json.dumps(model.to_json())))
    assert np.array_equal(Codebook.of(again).codes(values), Codebook.of(model).codes(values))
    # The gateway codes live readings with the same book.
    assert [Encoder.of(again).coded(sensor, [value]) for sensor, value in ((0, 1.0), (1, 3.0))] == [1, 3]
    # With fewer codes than values both have as many as were asked for.
    assert Codebook.of(fit_model(replace(STREAMS, values=values), codes=2)).sizes == (2, 2)


def test_the_prior_is_as_recorded_unless_another_is_given():
    # Everybody was recorded for a tenth of the time with the second useful value.
    kept = (STREAMS.useful == 0) | (np.arange(len(STREAMS.person)) % 9 == 0)
    rows = {name: getattr(STREAMS, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    rare = replace(STREAMS, **rows)
    assert np.allclose(fit_model(rare, codes=2).prior, [[0.45, 0.05], [0.45, 0.05]], atol=0.001)
    assert np.array_equal(fit_model(rare, codes=2, prior=uniform_prior(rare)).prior, np.full((2, 2), 0.25))
    with pytest.raises(InputError, match="'u1' has probability zero in the prior, but was recorded"):
        fit_model(rare, codes=2, prior=np.array([[0.5, 0.0], [0.5, 0.0]]))
    never = replace(STREAMS, **{name: getattr(STREAMS, name)[STREAMS.useful + STREAMS.secret < 2] for name in rows})
    with pytest.raises(InputError, match="'s1' with 'u1' was never recorded"):
        fit_model(never, codes=2, prior=np.full((2, 2), 0.25))


def test_a_prior_from_a_file_goes_by_names(tmp_path):
    path = tmp_path / "prior.json"
    path.write_text('{"s1": {"u1": 0.1, "u0": 0.2}, "s0": {"u0": 0.3, "u1": 0.4}}')
    assert prior_of(str(path), STREAMS).tolist() == [[0.3, 0.4], [0.2, 0.1]]
    assert prior_of("uniform", STREAMS).tolist() == [[0.25, 0.25], [0.25, 0.25]]
    for text, sentence in (
        ('{"s2": {"u0": 1}}', r"names \['s2'\]; the recordings have secrets \['s0', 's1'\]"),
        ("[[0.5], [0.5]]", "must be {secret: {useful value: probability}}"),
        ('{"s0": {"u0": "half"}}', "must be {secret"),
        ("{", "is not JSON"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=sentence):
            prior_of(str(path), STREAMS)
    with pytest.raises(InputError, match="`recorded`, `uniform` or a file, but 'recrded' cannot be read"):
        prior_of("recrded", STREAMS)


def test_pairs_that_cannot_be_get_no_belief():
    kept = (STREAMS.secret == 0) | (STREAMS.useful == 0)
    rows = {name: getattr(STREAMS, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    flat = STREAMS.values[kept] * 0 + np.arange(2)[np.arange(kept.sum()) % 2][:, None, None]
    found = tempering(fit_model(type(STREAMS)(**{**vars(STREAMS), **rows, "values": flat}), codes=2))
    # Readings that say nothing leave the prior of three pairs: log 3 nats.
    assert found["loss"] == pytest.approx(np.log(3), abs=0.01)


def test_what_cannot_be_fitted_is_refused():
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


def test_how_often_people_had_a_secret_is_stored():
    # The first person was recorded half as long with the first secret as with the second.
    kept = ~((STREAMS.person == 0) & (STREAMS.secret == 0) & (np.arange(len(STREAMS.person)) % 2 == 0))
    rows = {name: getattr(STREAMS, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    spread = (fit_model(replace(STREAMS, **rows), codes=2).fitted or {})["prior_spread"]
    assert spread["s0"] == pytest.approx([1 / 3, 1 / 2])
    assert spread["s1"] == pytest.approx([1 / 2, 2 / 3])
