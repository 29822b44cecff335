"""Readings, portions and episodes."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from reticent.data.dsa import load_dsa
from reticent.data.episodes import episodes_of
from reticent.data.motionsense import load_motionsense
from reticent.data.portions import portions, rotations
from reticent.data.readings import ReadingKind, readings, recorded_prior
from reticent.data.recordings import recordings
from reticent.errors import InputError
from reticent.problem.synthetic import two_binary_sensors
from tests.streams import places_of, readings_of

DATA = Path(os.environ.get("RETICENT_DATA") or Path(__file__).parents[3] / "shared" / "data")


def recorded(seconds=4, rate=10):
    """One person, one sensor of two axes: x counts up, y is 0, 1, 0, 1, ..."""
    count = seconds * rate
    samples = pl.DataFrame(
        {
            "session": "one",
            "person": "p",
            "time": np.arange(count) / rate,
            "secret": "s",
            "useful": "u",
            "arm.x": np.arange(count, dtype=float),
            "arm.y": np.arange(count) % 2.0,
        }
    )
    return recordings(samples, ("arm",), ("s",), ("u",))


def test_a_window_is_summed_up():
    found = readings(recorded(), ReadingKind("window", 1.0))
    assert found.values.shape == (4, 1, 4)
    assert np.allclose(found.values[:, 0, 0], [4.5, 14.5, 24.5, 34.5])
    assert np.allclose(found.values[:, 0, 1], 0.5)
    assert np.allclose(found.values[:, 0, 2], np.log(np.std(np.arange(10))), atol=1e-6)
    assert np.allclose(found.values[:, 0, 3], np.log(0.5), atol=1e-6)


def test_a_sample_is_what_it_is():
    found = readings(recorded(), ReadingKind("sample"))
    assert np.array_equal(found.values[:, 0, 0], np.arange(40))
    assert found.features == (2,)


def test_a_window_needs_samples():
    with pytest.raises(InputError, match="fewer than two samples"):
        readings(recorded(), ReadingKind("window", 0.1))
    with pytest.raises(InputError, match="more than 0"):
        ReadingKind("window", -1.0)


def test_windows_that_are_hardly_full_are_told():
    table = recorded().table.filter((pl.col("time") < 3) | (pl.col("time") > 3.75))
    found = readings(type(recorded())(table, ("arm",), ("s",), ("u",)))
    assert len(found.values) == 3
    assert found.notes == ("Windows with less than 50% of their samples are left out: 1 of 'p'.",)


@pytest.mark.parametrize("people", [4, 7, 9, 20])
def test_portions_are_disjoint_and_everybody_is_measured(people):
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=people, length=12)
    measured = []
    for rotation in range(rotations(made)):
        who = portions(made, rotation)
        everybody = [*who.predictor, *who.policy, *who.adversary, *who.measured]
        assert sorted(everybody) == list(range(people))
        assert min(map(len, (who.predictor, who.policy, who.adversary, who.measured))) >= 1
        measured += who.measured
    assert set(measured) == set(range(people))


def test_everybody_with_one_secret_only_is_mixed():
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=8, length=12)
    kept = made.secret == (made.person < 4)
    rows = {name: getattr(made, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    made = type(made)(**{**vars(made), **rows})
    for rotation in range(rotations(made)):
        who = portions(made, rotation)
        for people in (who.predictor, who.policy, who.adversary, who.measured):
            assert len({person < 4 for person in people}) == 2


def test_portions_without_a_pair_are_refused():
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=8, length=12)
    # Two of eight have the second secret, for good: they cannot be in four portions.
    kept = made.secret == (made.person < 2)
    rows = {name: getattr(made, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    with pytest.raises(InputError, match="nobody of the"):
        portions(type(made)(**{**vars(made), **rows}))


def test_too_few_people_are_refused():
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=3, length=12)
    with pytest.raises(InputError, match="at least 4"):
        portions(made)


def test_episodes_stay_within_one_stream_and_treat_people_alike():
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=3, length=12)
    # The first person was recorded for half as long.
    kept = (made.person > 0) | (np.arange(len(made.person)) % 12 < 6)
    rows = {name: getattr(made, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    made = type(made)(**{**vars(made), **rows})
    starts = episodes_of(made, horizon=5)
    keys = jax.random.split(jax.random.key(0), 6000)
    row = np.asarray(jax.vmap(starts.begin, (0, None))(keys, jnp.asarray(3)))
    assert (made.secret[row] == 1).all()
    assert (made.useful[row] == 1).all()
    assert (made.stream[row] == made.stream[row + 4]).all()
    # Each of three people in a third of episodes: 6000 draws, four standard errors are 0.024.
    assert np.allclose(np.bincount(made.person[row]) / 6000, 1 / 3, atol=0.025)
    with pytest.raises(InputError, match="readings in a row"):
        episodes_of(made, horizon=13)


def test_the_prior_is_uniform_over_what_was_recorded():
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=2, length=12)
    assert np.array_equal(recorded_prior(made), np.full((2, 2), 0.25))
    kept = (made.secret == 0) | (made.useful == 0)
    rows = {name: getattr(made, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    assert recorded_prior(type(made)(**{**vars(made), **rows})).tolist() == [[1 / 3, 1 / 3], [1 / 3, 0]]


real = pytest.mark.skipif(not DATA.is_dir(), reason=f"no recordings in {DATA}; RETICENT_DATA says where they are")


@real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "people", "rate", "streams"), [(load_dsa, 7, 25, 28), (load_motionsense, 20, 50, 140)]
)
def test_published_recordings(load, people, rate, streams):
    found = load(DATA)
    assert len(found.people) == people
    assert 1 / found.interval == pytest.approx(rate)
    assert found.table["stream"].n_unique() == streams
    read = readings(found)
    assert np.isfinite(read.values).all()
    assert (recorded_prior(read) > 0).all()
