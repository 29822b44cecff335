"""The chain of a hidden pair that moves, from trajectories whose chain is known."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent as rt
from reticent.data.changes import LabelChanges
from reticent.data.readings import ReadingKind, Readings
from reticent.data.switched import switched
from reticent.data.trajectories import Trajectories
from reticent.errors import InputError
from reticent.fit.codes import counted, make_codebook
from reticent.fit.model import fit_model
from reticent.fit.transition import MOVED, STAYED, fit_transition, mean_stays, moves
from reticent.problem.codebook import NOT_THERE, Codebook
from reticent.problem.model import Model
from reticent.problem.synthetic import two_binary_sensors
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
CHAIN = np.einsum("st,uv->sutv", [[0.97, 0.03], [0.06, 0.94]], [[0.8, 0.2], [0.3, 0.7]])
EVEN = np.full((2, 2), 0.25)


def lives_of(pairs, person=None, trajectory=None) -> Trajectories:
    pairs = np.asarray(pairs, int)
    none = np.zeros(len(pairs), int)
    return Trajectories(
        codes=none[:, None],
        secret=pairs // 2,
        useful=pairs % 2,
        trajectory=none if trajectory is None else np.asarray(trajectory),
        person=none if person is None else np.asarray(person),
        people=("p", "q"),
        sensors=("arm",),
        secrets=("a", "b"),
        useful_values=("c", "d"),
        step=1.0,
    )


def test_moves_by_hand():
    found = moves(lives_of([0, 0, 2, 1, 1], trajectory=[0, 0, 0, 1, 1]))
    expected = np.zeros((4, 4))
    expected[[0, 0, 1], [0, 2, 1]] = 1
    # Not from 2 to 1, which are of two trajectories.
    assert found.tolist() == [expected.tolist()]
    # Prior: ten steps of staying, a tenth of a move spread over the three other pairs.
    chain = fit_transition(lives_of([0, 0, 2, 1, 1], trajectory=[0, 0, 0, 1, 1]), EVEN).reshape(4, 4)
    total = 2 + STAYED + MOVED
    assert chain[0] == pytest.approx(
        [(1 + STAYED) / total, MOVED / 3 / total, (1 + MOVED / 3) / total, MOVED / 3 / total]
    )
    assert chain[3] == pytest.approx([MOVED / 3 / (STAYED + MOVED)] * 3 + [STAYED / (STAYED + MOVED)])


def test_every_person_counts_alike():
    # The first never moves and is recorded for long, the second always moves: together half of all steps from 0 leave.
    pairs, person = [0] * 9001 + [0, 1] * 500, [0] * 9001 + [1] * 1000
    chain = fit_transition(lives_of(pairs, person, person), EVEN).reshape(4, 4)
    # One leaves from 0 in half of the time: of 1.5 halves of the time spent with 0, half a half leave.
    assert chain[0, 1] == pytest.approx(1 / 3, abs=0.003)


def test_a_pair_that_cannot_be_is_left_at_once_and_never_entered():
    prior = np.array([[0.5, 0.3], [0.2, 0.0]])
    chain = fit_transition(lives_of([0, 1, 2, 0, 0]), prior).reshape(4, 4)
    assert (chain[:3, 3] == 0).all()
    assert chain[3] == pytest.approx(prior.reshape(-1))


@given(seed=st.integers(0, 2**31 - 1), steps=st.integers(2, 40))
def test_rows_are_laws_that_no_recording_makes_impossible(seed, steps):
    rng = np.random.default_rng(seed)
    chain = fit_transition(lives_of(rng.integers(4, size=steps)), EVEN)
    assert np.allclose(chain.sum((2, 3)), 1)
    assert (chain > 0).all()


def test_mean_stays_by_hand():
    secret, useful = mean_stays(CHAIN, EVEN)
    assert secret == pytest.approx([1 / 0.03, 1 / 0.06])
    assert useful == pytest.approx([1 / 0.2, 1 / 0.3])
    assert np.isinf(mean_stays(np.eye(4).reshape(2, 2, 2, 2), EVEN)[0]).all()


def moving(people=3, steps=6000) -> Readings:
    """Independent readings of a known model, while the pair moves by a known chain, a second a step."""
    made = replace(readings_of(MODEL, places_of(MODEL), people=people, length=500), interval=1.0)
    lives = switched(made, np.arange(len(made.values))[:, None], CHAIN, EVEN, steps)
    rows = lives.codes[:, 0]
    # Independent of one another: rows follow each other in the streams only as they were drawn.
    return replace(
        made,
        **{name: getattr(made, name)[rows] for name in ("values", "person", "secret", "useful")},
        stream=np.cumsum(np.diff(lives.pair, prepend=0) != 0),
        stretch=lives.trajectory,
        time=np.tile(np.arange(steps, dtype=float), people),
        changes=LabelChanges(0.04, 0.2),
    )


RECORDED = moving()


def test_the_chain_is_found_again_and_stored():
    model = fit_model(RECORDED, codes=2)
    assert model.transition is not None
    assert model.fitted is not None
    # At least 3,000 steps with each pair: four standard errors are .03.
    assert np.allclose(model.transition, CHAIN, atol=0.03)
    assert model.fitted["step"] == 1.0
    assert model.fitted["tempering"]["power"] >= 0.5
    assert model.fitted["tempering"]["calibration_error"] < 0.05
    again = Model.from_json(model.to_json())
    assert np.array_equal(again.dynamics, model.transition)


def test_somebody_recorded_too_briefly_to_move_is_still_counted():
    # The last person has one reading in each stretch: no trajectory, but readings that the channel counts.
    brief = np.flatnonzero(RECORDED.person == 2)[::40]
    rows = np.concatenate([np.flatnonzero(RECORDED.person < 2), brief])
    arrays = {name: value[rows] for name, value in vars(RECORDED).items() if isinstance(value, np.ndarray)}
    arrays["stretch"] = np.where(arrays["person"] == 2, 10 + np.arange(len(rows)), arrays["stretch"])
    model = fit_model(Readings(**{**vars(RECORDED), **arrays}), codes=2)
    assert np.allclose(model.dynamics, CHAIN, atol=0.03)
    # Of nobody at all, the chain is the mean of the prior.
    stays = np.diagonal(fit_transition(lives_of([]), EVEN).reshape(4, 4))
    assert stays == pytest.approx(np.full(4, STAYED / (STAYED + MOVED)))


def test_two_seconds_are_two_steps():
    model = fit_model(RECORDED, codes=2, step=2.0)
    flat = CHAIN.reshape(4, 4)
    assert np.allclose(model.dynamics.reshape(4, 4), flat @ flat, atol=0.04)


def test_a_static_model_says_how_often_labels_change():
    model = fit_model(RECORDED, codes=2, static=True)
    assert model.transition is None
    assert LabelChanges.of(model.fitted) == RECORDED.changes
    still = fit_model(replace(RECORDED, changes=LabelChanges(0.0, 0.0)), codes=2)
    assert not still.moves


def test_a_table_whose_labels_change_gives_a_transition():
    rng, who, t = np.random.default_rng(0), np.repeat([0, 1], 600), np.tile(np.arange(600.0), 2)
    sits, smokes = t // 30 % 2, t // 150 % 2
    table = pl.DataFrame({"who": who, "t": 60 * t, "sits": sits.astype(int), "smokes": smokes.astype(int)})
    table = table.with_columns(arm=rng.normal(sits), leg=rng.normal(smokes))
    columns = {
        "person": "who",
        "time": "t",
        "sensors": ["arm", "leg"],
        "useful": "sits",
        "secret": "smokes",
        "codes": 4,
    }
    model = rt.fit(table, **columns)
    # Samples are a minute apart, so each is a reading, and a step.
    assert model.fitted is not None
    assert (model.fitted["reading"]["kind"], model.fitted["step"]) == ("sample", 60.0)
    assert mean_stays(model.dynamics, model.prior)[1] == pytest.approx([30, 30], rel=0.15)
    assert rt.fit(table, **columns, static=True).transition is None


def lacking() -> Readings:
    """The second sensor is not there more often with the second secret."""
    made = readings_of(MODEL, places_of(MODEL), people=3, length=400)
    absent = np.random.default_rng(0).random(len(made.values)) < np.where(made.secret == 1, 0.6, 0.2)
    values = made.values.copy()
    values[absent, 1] = np.nan
    return replace(made, values=values)


def test_not_there_is_a_symbol_of_the_channel():
    found = lacking()
    model = fit_model(found, codes=2)
    assert model.symbols == ("code 0", "code 1", NOT_THERE)
    # 2,400 readings with each secret: four standard errors are .04; smoothing and tempering draw towards the mean.
    assert model.channel[1, 0, :, 2] == pytest.approx([0.2, 0.2], abs=0.06)
    assert model.channel[1, 1, :, 2] == pytest.approx([0.6, 0.6], abs=0.06)
    assert (model.channel[0, :, :, 2] < 0.01).all()
    assert (model.channel > 0).all()
    codebook = Codebook.of(Model.from_json(model.to_json()))
    assert codebook.codes(found.values)[:, 1].tolist() == Codebook.of(model).codes(found.values)[:, 1].tolist()
    assert ((codebook.codes(found.values)[:, 1] == 2) == np.isnan(found.values[:, 1, 0])).all()


def test_centres_are_those_of_the_readings_that_are_there():
    found = lacking()
    codebook = make_codebook(found, 2, 0)
    there = ~np.isnan(found.values[:, 1, 0])
    assert codebook.mean[1, 0] == pytest.approx(found.values[there, 1, 0].mean())
    # A sensor with fewer codes than another has its own and the last symbol.
    assert replace(codebook, centres=(codebook.centres[0][:1], codebook.centres[1])).owned.tolist() == [
        [True, False, True],
        [True, True, True],
    ]
    assert counted(found, codebook.codes(found.values), codebook.owned).sum(-1) == pytest.approx(np.ones((2, 2, 2)))


def test_a_sensor_that_was_always_there_or_never_is_said():
    found = lacking()
    model = fit_model(replace(found, values=np.nan_to_num(found.values)), codes=2)
    assert NOT_THERE not in model.symbols
    with pytest.raises(InputError, match="was in all that the model was fitted to"):
        Codebook.of(model).codes(found.values)
    values = found.values.copy()
    values[:, 0] = np.nan
    with pytest.raises(InputError, match=f"The sensors {[MODEL.sensors[0]]} are".replace("[", r"\[")):
        fit_model(replace(found, values=values), codes=2)


def test_windows_are_steps_of_their_length():
    assert replace(RECORDED, kind=ReadingKind("window", 5.0)).step == 5.0
    with pytest.raises(InputError, match="Give the seconds of a step"):
        _ = readings_of(MODEL, places_of(MODEL), people=1, length=2).step
