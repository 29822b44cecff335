"""The environment plays the process and nothing else, as Gymnasium wants it."""

import json
import subprocess
import sys

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.seeding import np_random

import reticent.gym
from reticent.errors import InputError
from reticent.gym import play
from reticent.gym.environment import ReleaseEnv
from reticent.gym.play import first_key
from reticent.problem.bound import Confidence, Information
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process


def environment(limit=0.2, horizon=12, **settings):
    """At the prior the first sensor says .0337 bits about the secret, the second .0015."""
    task = Task(two_binary_sensors(), Information(limit), horizon=horizon)
    return ReleaseEnv(Process.of(task), **settings)


def test_the_synthetic_problem_passes_gymnasiums_checks():
    check_env(gymnasium.make("reticent/Synthetic-v0", information=1.0).unwrapped)


def test_a_problem_file_passes_gymnasiums_checks(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(two_binary_sensors().to_json()))
    check_env(gymnasium.make("reticent/Problem-v0", problem=str(path), confidence=0.8).unwrapped)


def test_the_same_key_gives_the_transitions_of_the_process():
    env = environment()
    process, chance = env.process, np.random.default_rng(0)
    init, step = eqx.filter_jit(process.init), eqx.filter_jit(process.step)
    observation, _ = env.reset(seed=5)
    key, used = jax.random.split(first_key(np_random(5)[0]))
    state, ends = init(used), set()
    for _ in range(60):
        assert np.array_equal(observation[:4], np.asarray(state.public.belief, np.float32).reshape(-1))
        assert np.array_equal(env.action_masks(), state.public.allowed)
        action = int(chance.choice(np.flatnonzero(env.action_masks())))
        observation, reward, terminated, truncated, info = env.step(action)
        key, used = jax.random.split(key)
        after = step(used, state, jnp.asarray(action))
        assert (reward, terminated, truncated) == (-after.cost, after.terminated, after.truncated)
        sent = -1 if info["sensor"] == -1 else after.symbol
        assert (info["cost"], info["symbol"], info["violated"]) == (after.cost, sent, after.violated)
        state = after.state
        if terminated or truncated:
            ends.add((terminated, truncated))
            assert np.array_equal(observation[:4], np.asarray(state.public.belief, np.float32).reshape(-1))
            observation, _ = env.reset()
            key, used = jax.random.split(key)
            state = init(used)
    assert ends


def test_the_stop_ends_an_episode_and_is_paid():
    env = environment()
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(2)
    assert (reward, terminated, truncated) == (-25.0, True, False)
    told = {"sensor": -1, "symbol": -1, "cost": 25.0, "violated": False, "forbidden": False, "stop_cost": 25.0}
    assert info == told


def test_a_cut_episode_is_truncated_and_owes_the_stop():
    env = environment(limit=9.0, horizon=3)
    env.reset(seed=0)
    steps = [env.step(0) for _ in range(3)]
    assert [step[1] for step in steps] == [-1.0, -1.0, -1.0]
    assert [step[2:4] for step in steps] == [(False, False), (False, False), (False, True)]
    # What evaluation charges on top where an episode was cut is what stopping there would cost.
    joint = np.prod([two_binary_sensors().channel[0, :, :, step[4]["symbol"]] for step in steps], axis=0)
    assert steps[-1][4]["stop_cost"] == pytest.approx(50 * (1 - joint.sum(0).max() / joint.sum()))


def test_crossing_the_bound_is_told_and_ends_the_episode():
    # A single reading of the first sensor, whichever it is, brings the confidence in a secret above .55.
    env = ReleaseEnv(Process.of(Task(two_binary_sensors(), Confidence(0.55))))
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(0)
    assert (reward, terminated, info["violated"], info["sensor"]) == (-51.0, True, True, 0)


def test_a_sensor_that_is_not_allowed_counts_as_a_stop():
    env = environment(limit=0.01)
    env.reset(seed=0)
    assert env.action_masks().tolist() == [False, True, True]
    _, reward, terminated, _, info = env.step(0)
    assert (reward, terminated) == (-25.0, True)
    assert (info["forbidden"], info["sensor"], info["symbol"]) == (True, -1, -1)


def test_a_sensor_that_is_not_allowed_may_be_an_error_after_which_play_goes_on():
    env = environment(limit=0.01, forbidden="error")
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"Sensor 0 is not allowed here.*action_masks"):
        env.step(0)
    assert env.step(1)[4]["sensor"] == 1


@pytest.mark.parametrize("action", [3, -1, 0.5, np.array([0, 1]), None])
def test_what_is_no_action_is_refused(action):
    env = environment()
    env.reset(seed=0)
    with pytest.raises(InputError, match="Actions"):
        env.step(action)


def test_episodes_begin_with_a_reset_and_end_for_good():
    env = environment()
    for ask in (lambda: env.step(0), env.action_masks):
        with pytest.raises(InputError, match="reset"):
            ask()
    env.reset()
    env.step(2)
    with pytest.raises(InputError, match="reset"):
        env.step(0)


def test_the_seed_decides_everything():
    def told(seed):
        env = environment(limit=9.0, horizon=20)
        env.reset(seed=seed)
        episodes = []
        for _ in range(2):
            episodes.append([env.step(0)[4]["symbol"] for _ in range(20)])
            env.reset()
        return episodes

    one, other = told(7), told(8)
    assert one == told(7)
    assert one != other
    assert one[0] != one[1]


def test_nobody_is_told_the_hidden_pair():
    env = environment()
    _, first = env.reset(seed=0)
    *_, info = env.step(2)
    assert not first
    assert set(info) == {"sensor", "symbol", "cost", "violated", "forbidden", "stop_cost"}


def test_other_numbers_are_not_compiled_again():
    def run(limit, horizon):
        task = Task(two_binary_sensors(), Confidence(limit), horizon=horizon)
        env = gymnasium.make("reticent/Problem-v0", problem=task)
        env.reset(seed=0)
        env.step(0)
        env.step(2)

    run(0.9, 30)
    before = [eqx.debug.get_num_traces(function) for function in (play.start, play.move)]
    run(0.7, 30)
    run(0.8, 5)
    assert [eqx.debug.get_num_traces(function) for function in (play.start, play.move)] == before


def test_the_room_is_entered_only_when_asked_for():
    def holds(code):
        return subprocess.run([sys.executable, "-c", f"import sys; {code}"], check=False).returncode == 0

    assert holds("import reticent; assert 'gymnasium' not in sys.modules")
    assert holds("import reticent.gym; assert 'jax' not in sys.modules and 'torch' not in sys.modules")


@pytest.mark.parametrize(
    ("missing", "ask", "extra"),
    [
        ("gymnasium", "import reticent.gym", "gym"),
        ("stable_baselines3", "from reticent.gym import sb3_vec_env", "agents"),
    ],
)
def test_what_is_not_installed_is_named(missing, ask, extra):
    code = f"import sys; sys.modules[{missing!r}] = None; {ask}"
    told = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert told.returncode == 1
    assert f"pip install 'reticent[{extra}]'" in told.stderr.splitlines()[-1]


def test_the_front_door_opens_every_name():
    assert set(reticent.gym.__all__) == set(reticent.gym._HOME)
    with pytest.raises(AttributeError):
        reticent.gym.nothing  # noqa: B018
