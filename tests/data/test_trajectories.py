"""Lives on a clock: dwell times, trajectories, and static recordings played by a chain."""

import numpy as np
import polars as pl
import pytest

from reticent.data.dwell import Dwell, dwells
from reticent.data.readings import ReadingKind, Readings, readings
from reticent.data.recordings import recordings
from reticent.data.switched import switched
from reticent.data.trajectories import trajectories
from reticent.errors import InputError
from reticent.problem.synthetic import two_binary_sensors
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()


def recorded(secret: str, useful: str, times) -> Readings:
    return readings(_recorded(secret, useful, times), ReadingKind("sample"))


def _recorded(secret: str, useful: str, times):
    samples = {"session": "one", "person": "p", "time": np.asarray(times, float), "arm.x": np.arange(len(secret)) * 1.0}
    frame = pl.DataFrame({**samples, "secret": list(secret), "useful": list(useful)})
    return recordings(frame, ("arm",), ("a", "b"), ("c", "d"))


def on_clock(found: Readings, step=None):
    """Which sample stands at each step, and the trajectories."""
    lives = trajectories(found, found.values[:, :, 0].astype(int), step)
    return lives.codes[:, 0].tolist(), lives


def test_dwell_times_by_hand():
    # a for 3 s until b begins, then 2 s of b that a pause cuts off, then 1 s of a.
    found = dwells(_recorded("aaabbbaa", "cccccccc", [0, 1, 2, 3, 4, 5, 100, 101]))
    assert found == [Dwell("secret", *row) for row in (("a", 4.0, 1), ("b", 2.0, 0))] + [
        Dwell("useful", "c", 6.0, 0),
        Dwell("useful", "d", 0.0, 0),
    ]
    assert found[0].mean_seconds == 4.0
    assert str(found[1]) == "b was never seen to end in 2 s"


def test_labels_change_within_a_trajectory_and_pauses_part_them():
    places, lives = on_clock(recorded("aabbbaa", "ccccccc", [0, 1, 2, 3, 4, 100, 101]))
    assert places == list(range(7))
    assert lives.trajectory.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert lives.pair.tolist() == [0, 0, 2, 2, 2, 0, 0]
    assert (lives.step, lives.lengths.tolist(), len(lives)) == (1.0, [5, 2], 7)


@pytest.mark.parametrize(
    ("times", "step", "expected"),
    [
        # Irregular samples: one is skipped, and two come twice.
        ([0, 1.2, 1.3, 2.1, 3, 6], 1.0, [0, 1, 3, 4, 4, 5, 5]),
        ([0, 1, 2, 3, 4, 5], 2.0, [0, 2, 4]),
        ([0, 1, 2, 3, 4, 5], 0.5, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]),
    ],
)
def test_the_nearest_reading_stands_at_each_step(times, step, expected):
    assert on_clock(recorded("aaaaaa", "cccccc", times), step)[0] == expected


def test_what_has_no_clock_is_refused():
    found = recorded("aa", "cc", [0, 1])
    with pytest.raises(InputError, match="more than 0 seconds, not -1"):
        on_clock(found, -1.0)
    with pytest.raises(InputError, match=r"two steps of 5 s; the longest lasts 1 s"):
        on_clock(found, 5.0)
    made = readings_of(MODEL, places_of(MODEL), people=1, length=3)
    with pytest.raises(InputError, match="do not say when they were taken"):
        trajectories(made, made.values[:, :, 0].astype(int))


def test_trajectories_of_some_people_keep_their_numbers():
    _, lives = on_clock(recorded("aabb", "cccc", [0, 1, 100, 101]))
    assert len(lives.of([0])) == 4
    assert len(lives.of([1])) == 0


CHAIN = np.einsum("st,uv->sutv", [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.25, 0.75]])


def static(people=2, length=7) -> Readings:
    """Every reading says in which row it is."""
    made = readings_of(MODEL, places_of(MODEL), people=people, length=length)
    made.values[:, :, 0] = np.arange(len(made.values))[:, None]
    return Readings(**{**vars(made), "interval": 2.0})


def test_a_chain_plays_real_readings_in_its_own_order():
    made, steps = static(), 20_000
    rows = made.values[:, :, 0].astype(int)
    lives = switched(made, rows, CHAIN, np.full((2, 2), 0.25), steps)
    assert (lives.lengths.tolist(), lives.step) == ([steps, steps], 2.0)
    row = lives.codes[:, 0]
    # Everybody says what they themselves said with this pair.
    assert (made.person[row] == lives.person).all()
    assert (made.secret[row] * 2 + made.useful[row] == lives.pair).all()
    follows = lives.trajectory[1:] == lives.trajectory[:-1]
    stays = follows & (lives.pair[1:] == lives.pair[:-1])
    ended = made.left[row[:-1]] == 1
    assert (row[1:][stays & ~ended] == row[:-1][stays & ~ended] + 1).all()
    moved = np.zeros((4, 4))
    np.add.at(moved, (lives.pair[:-1][follows], lives.pair[1:][follows]), 1)
    # Of each pair some 6,600 steps at least: four standard errors are .025.
    assert np.allclose(moved / moved.sum(1, keepdims=True), CHAIN.reshape(4, 4), atol=0.025)


def test_who_lacks_a_pair_starts_and_stays_among_the_others():
    made = static()
    kept = (made.person == 1) | (made.secret == 0)
    rows = {name: getattr(made, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    made = Readings(**{**vars(made), **rows})
    codes = made.values[:, :, 0].astype(int)
    with pytest.raises(
        InputError, match=r"leads from \('s0', 'u0'\) to \('s1', 'u0'\), but 'person 0' was not recorded"
    ):
        switched(made, codes, CHAIN, np.full((2, 2), 0.25), 5)
    lasting = np.einsum("st,uv->sutv", np.eye(2), [[0.5, 0.5], [0.25, 0.75]])
    lives = switched(made, codes, lasting, np.full((2, 2), 0.25), 300)
    assert (lives.secret[lives.person == 0] == 0).all()
    assert set(lives.useful.tolist()) == {0, 1}
    with pytest.raises(InputError, match="starts with none of the pairs that 'person 0'"):
        switched(made, codes, lasting, np.array([[0.0, 0.0], [0.5, 0.5]]), 5)
