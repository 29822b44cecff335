"""What is seen lies within the limits that are given for it, whatever the bound and however it is kept."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.errors import InputError
from reticent.gym.environment import ReleaseEnv
from reticent.gym.spaces import ROUNDING, features_of, observation_space
from reticent.gym.vector import ReleaseVectorEnv
from reticent.policy.actor import Inputs
from reticent.problem.bound import Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import Mask, PaperCost
from reticent.problem.synthetic import tells_both, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process, PublicState
from tests.problems import random_model

SMALL = two_binary_sensors()
CASES: dict[str, tuple[Task, Inputs]] = {
    "mask": (Task(SMALL, Information(0.1), horizon=8), "described"),
    "multiplier": (Task(SMALL, ExpectedInformation(0.1), horizon=8), "rich"),
    "penalty": (Task(SMALL, Confidence(0.7), horizon=8), "rich"),
    "inadmissible": (Task(SMALL, Confidence(0.6), enforcement=Mask()), "rich"),
    "printed": (Task(tells_both(), Information(0.5), enforcement=PaperCost(), horizon=8), "described"),
    "three by two, no bound": (Task(random_model(1, 3, 3, 2, 4), Unbounded(), horizon=8), "described"),
}
QUICK = ("mask",)


def process_of(case):
    process = Process.of(CASES[case][0])
    return process.with_multiplier(jnp.asarray(10.0)) if case == "multiplier" else process


@pytest.mark.parametrize("case", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in CASES])
def test_observations_lie_within_the_space(case):
    process, inputs = process_of(case), CASES[case][1]
    env = ReleaseVectorEnv(process, 3, inputs)
    space = observation_space(env.features)
    assert np.isfinite([space.low, space.high]).all()
    assert env.single_observation_space == space
    observations, _ = env.reset(seed=0)
    chance, ended = np.random.default_rng(0), 0
    for _ in range(300):
        assert env.observation_space.contains(observations)
        # Sensors more often than the stop, so that beliefs move far; allowed or not.
        actions = chance.choice(process.sensors + 1, 3, p=[0.9 / process.sensors] * process.sensors + [0.1])
        observations, _, terminated, truncated, info = env.step(actions)
        for lane in np.flatnonzero(terminated | truncated):
            assert space.contains(info["final_obs"][lane])
            ended += 1
    assert ended > 60


@pytest.mark.parametrize("inputs", ["belief", "described", "rich"])
def test_the_limits_are_of_what_is_seen(inputs):
    features = features_of(process_of("penalty"), inputs)
    space = observation_space(features)
    assert space.shape == (features.size,)
    assert space.dtype == np.float32


def test_the_limits_are_no_wider_than_need_be():
    # Of two secrets and .7: the share of the bound that is used up starts at .5 / .7 and ends at 1 / .7.
    low, high = (
        getattr(observation_space(features_of(process_of("penalty"), "described")), end) for end in ("low", "high")
    )
    assert low[12] == pytest.approx(0.5 / 0.7 - ROUNDING)
    assert high[12] == pytest.approx(1 / 0.7 + ROUNDING)
    # Under the mask the ledger never reaches its limit.
    assert observation_space(features_of(process_of("mask"), "described")).high[12] == pytest.approx(1 + ROUNDING)
    # Nothing is less sure of U than a coin.
    assert high[13] == pytest.approx(np.sqrt(0.5) + ROUNDING)


def test_the_limits_are_reached_where_everything_is_known():
    features = features_of(process_of("mask"), "described")
    space = observation_space(features)
    public = PublicState(jnp.array([[1.0, 0.0], [0.0, 0.0]]), jnp.zeros(()), jnp.ones(3, bool), None, None)
    seen = np.asarray(features(public))
    assert space.contains(seen)
    assert seen[5:8] == pytest.approx(space.low[5:8] + ROUNDING, abs=1e-6)
    assert seen[13] == pytest.approx(space.low[13] + ROUNDING, abs=1e-6)
    assert seen[:2].tolist() == [1.0, 0.0]


def test_a_bound_on_average_needs_its_price():
    with pytest.raises(InputError, match="with_multiplier"):
        ReleaseEnv(Process.of(Task(SMALL, ExpectedInformation(0.1))))


@pytest.mark.slow
def test_settings_that_do_not_exist_are_named():
    # In an interpreter of its own: in this one types are checked before anything is said.
    code = """
import gymnasium, reticent.gym
from reticent.errors import InputError
for setting in ("inputs", "forbidden"):
    try:
        gymnasium.make("reticent/Synthetic-v0", information=1.0, **{setting: "nothing"})
    except InputError as error:
        assert str(error).startswith(f"{setting} is one of ['")
    else:
        raise AssertionError
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
