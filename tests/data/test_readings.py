"""Readings, portions and episodes."""

import os
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from reticent.data.changes import LabelChanges
from reticent.data.dsa import load_dsa
from reticent.data.episodes import episodes_of
from reticent.data.motionsense import load_motionsense
from reticent.data.portions import portions, rotations
from reticent.data.readings import ReadingKind, readings, recorded_prior, uniform_prior
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


def test_the_uniform_prior_is_uniform_over_what_was_recorded():
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=2, length=12)
    assert np.array_equal(uniform_prior(made), np.full((2, 2), 0.25))
    kept = (made.secret == 0) | (made.useful == 0)
    rows = {name: getattr(made, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    assert uniform_prior(type(made)(**{**vars(made), **rows})).tolist() == [[1 / 3, 1 / 3], [1 / 3, 0]]


def test_the_recorded_prior_counts_every_person_alike():
    made = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=2, length=12)
    # The first person was recorded with one pair only and briefly; the second with all four, for as long each.
    kept = (made.person == 1) | ((made.secret == 0) & (made.useful == 0) & (np.arange(len(made.person)) < 3))
    rows = {name: getattr(made, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    prior = recorded_prior(replace(made, **rows))
    assert np.allclose(prior, [[0.5 + 0.125, 0.125], [0.125, 0.125]])


def labelled(secret: str, useful: str, seconds_apart: float = 1.0):
    """Samples of one person with these labels, one letter each."""
    return recordings(
        pl.DataFrame(
            {
                "session": "one",
                "person": "p",
                "time": np.arange(len(secret)) * seconds_apart,
                "secret": list(secret),
                "useful": list(useful),
                "arm.x": np.arange(len(secret), dtype=float),
            }
        ),
        ("arm",),
        ("a", "b"),
        ("c", "d"),
    )


def test_changes_of_labels_are_counted_where_there_is_no_pause():
    found = labelled("aaaabbbbb", "ccddccddd")
    # Eight seconds: the secret changes once, the useful value three times.
    assert found.changes == LabelChanges(1 / 8, 3 / 8)
    assert readings(found, ReadingKind("sample")).changes == found.changes
    late = pl.DataFrame({"time": [0.0, 1, 2, 3, 100, 101], "useful": list("ccccdd")}).with_columns(
        session=pl.lit("one"), person=pl.lit("p"), secret=pl.lit("a"), **{"arm.x": pl.col("time")}
    )
    # A label that is another after a pause has not changed while anybody was recorded.
    assert recordings(late, ("arm",), ("a", "b"), ("c", "d")).changes == LabelChanges(0.0, 0.0)


def test_the_sentence_on_changes_says_what_is_assumed_and_how_often_it_is_not_so():
    assumed = "A fitted model assumes that secret and useful value stay the same during an episode."
    assert (
        LabelChanges(0.0, 0.0).sentence() == f"{assumed} In the recordings, neither changes within an unbroken stretch."
    )
    both = LabelChanges(1 / 600, 1 / 42).sentence()
    assert "the secret changes every 10 min and the useful value changes every 42 s." in both
    assert "The bound does not cover an episode that such a change falls into." in both
    assert "the useful value changes every 3 h and the secret never does." in LabelChanges(0.0, 1 / 10800).sentence()
    assert LabelChanges.of({"changes_per_second": {"secret": 0.5, "useful": 0.0}}) == LabelChanges(0.5, 0.0)
    assert LabelChanges.of({"x": 1}) is LabelChanges.of(None) is None


@pytest.mark.parametrize(
    ("seconds_apart", "window", "advice"),
    [
        (5.0, 1.0, "samples, which are 5 s apart. Take --window 10 or more, or single samples (--window 0)."),
        (0.03, 0.04, "Take --window 0.06 or more, or"),
        (3000.0, 1.0, "Take single samples (--window 0)."),
        # Nine samples last nine seconds, which is no half of a window.
        (1.0, 100.0, "The longest lasts 9 s: take --window 9, or single samples (--window 0)."),
    ],
)
def test_errors_about_windows_say_which_would_do(seconds_apart, window, advice):
    with pytest.raises(InputError) as error:
        readings(labelled("a" * 9, "c" * 9, seconds_apart), ReadingKind("window", window))
    assert advice in str(error.value)


def test_too_few_readings_in_a_row_say_which_windows_would_do():
    found = readings(labelled("a" * 60, "c" * 60), ReadingKind("window", 10.0))
    with pytest.raises(InputError) as error:
        episodes_of(found, 20)
    assert "the longest has 6 of 10 s. Take --window 3, or single samples (--window 0)." in str(error.value)
    episodes_of(readings(labelled("a" * 60, "c" * 60), ReadingKind("window", 3.0)), 20)


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
