"""Many environments in one step are as many single ones."""

import equinox as eqx
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from reticent.errors import InputError
from reticent.gym import play
from reticent.gym.environment import ReleaseEnv
from reticent.gym.vector import ReleaseVectorEnv
from reticent.problem.bound import Information
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process


def task(limit=0.15, horizon=6):
    """At the prior the first sensor says .0337 bits about the secret, the second .0015."""
    return Task(two_binary_sensors(), Information(limit), horizon=horizon)


def environments(**settings):
    """Always as many, so that they are compiled once."""
    forbidden = settings.pop("forbidden", "stop")
    return ReleaseVectorEnv(Process.of(task(**settings)), 3, forbidden=forbidden)


def test_the_same_seed_plays_what_gymnasium_makes_of_single_environments():
    ours, process = environments(), Process.of(task())
    theirs = SyncVectorEnv([lambda: ReleaseEnv(process)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    chance, ends = np.random.default_rng(0), []
    for seed in (3, None):
        (one, _), (other, _) = ours.reset(seed=seed), theirs.reset(seed=seed)
        assert np.allclose(one, other, atol=1e-6)
        for _ in range(40):
            actions = chance.choice(3, 3, p=[0.5, 0.4, 0.1])
            # Compiled for many or for one, sums may differ in the last digits.
            one, other = ours.step(actions), theirs.step(actions)
            assert data_equivalence(one, other)
            assert np.array_equal(ours.action_masks(), np.stack(theirs.call("action_masks")))
            ends += [tuple(flags) for flags in np.stack(one[2:4], axis=1)]
    # Both ends came up, and steps in which nothing ended.
    assert set(ends) == {(False, False), (True, False), (False, True)}


def test_an_episode_that_ends_is_followed_by_the_next_in_the_same_step():
    env = environments(limit=9.0, horizon=2)
    first, _ = env.reset(seed=0)
    before, *_ = env.step([0, 0, 0])
    observations, rewards, terminated, truncated, told = env.step([0, 2, 2])
    assert rewards[0] == -1.0
    assert terminated.tolist() == [False, True, True]
    assert truncated.tolist() == [True, False, False]
    assert np.array_equal(observations, first)
    # The stop leaves the belief where it was; the release has moved it.
    assert np.array_equal(np.stack(told["final_obs"][1:]), before[1:])
    assert not np.array_equal(told["final_obs"][0], before[0])
    assert told["final_info"]["sensor"].tolist() == [0, -1, -1]
    assert told["_final_obs"].all()
    assert not {"sensor", "_sensor"} & set(told)
    # The count of releases has begun again.
    *_, truncated, _ = env.step([0, 0, 0])
    assert not truncated.any()


def test_masks_are_of_the_state_that_is_seen():
    env = environments(limit=0.034)
    env.reset(seed=0)
    assert env.action_masks().all()
    env.step([0, 1, 2])
    assert env.action_masks()[[0, 2]].tolist() == [[False, True, True], [True, True, True]]
    *_, told = env.step([0, 1, 2])
    assert told["final_info"]["forbidden"].tolist() == [True, False, False]
    assert told["_final_info"].tolist() == [True, False, True]


def test_a_sensor_that_is_not_allowed_may_be_an_error():
    env = environments(limit=0.01, forbidden="error")
    with pytest.raises(InputError, match="reset"):
        env.step([2, 2, 2])
    env.reset(seed=0)
    with pytest.raises(InputError, match="Sensor 0 is not allowed"):
        env.step([1, 0, 2])
    with pytest.raises(InputError, match="whole numbers of shape"):
        env.step([1])
    assert env.step([2, 2, 2])[2].all()


def test_what_was_given_is_not_changed_later():
    env = environments()
    first, _ = env.reset(seed=0)
    kept, masks = first.copy(), env.action_masks()
    masks[:] = False
    first[:] = -9.0
    assert env.action_masks().all()
    assert np.array_equal(env.reset(seed=0)[0], kept)


def test_gymnasium_makes_it_and_its_wrappers_count_its_episodes():
    made = gymnasium.make_vec("reticent/Problem-v0", 3, "vector_entry_point", problem=task())
    assert isinstance(made, ReleaseVectorEnv)
    env = RecordEpisodeStatistics(made)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.full(3, 2))
    *_, told = env.step(np.full(3, 2))
    assert told["episode"]["l"].tolist() == [1] * 3
    assert list(env.return_queue) == [-25.0] * 12


def test_other_numbers_are_not_compiled_again():
    env = environments()
    env.reset(seed=0)
    env.step([0, 1, 2])
    before = [eqx.debug.get_num_traces(function) for function in (play.start_all, play.move_all)]
    env = environments(limit=0.5, horizon=9)
    env.reset(seed=1)
    env.step([0, 1, 2])
    env.step([0, 1, 2])
    assert [eqx.debug.get_num_traces(function) for function in (play.start_all, play.move_all)] == before
