"""Agents of Stable-Baselines3 train on the environments unchanged, and come back in as policies."""

from importlib import import_module

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from reticent import gym
from reticent.audit.policy_audit import audit_policy
from reticent.errors import InputError
from reticent.evaluate.evaluation import evaluate
from reticent.gym import OutsidePolicy, ReleaseEnv
from reticent.policy.contracts import check_policy
from reticent.problem.bound import Confidence, Information
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solution.solution import Solution

pytestmark = pytest.mark.slow
# The first sensor says .0337 bits at the prior, so that soon it is not allowed any more.
MASKED = Task(two_binary_sensors(), Information(0.05), horizon=10)
BOUNDED = Task(two_binary_sensors(), Confidence(0.8))
OPTIMUM, STOP_AT_ONCE = 7.342248, 25.0


def test_their_checker_has_nothing_to_say(sb3):
    import_module(f"{sb3.__name__}.common.env_checker").check_env(ReleaseEnv(Process.of(MASKED)))


def test_many_environments_are_what_they_make_of_single_ones(sb3):
    ours, process = gym.sb3_vec_env("reticent/Problem-v0", 3, problem=MASKED), Process.of(MASKED)
    theirs = sb3.common.vec_env.DummyVecEnv([lambda: ReleaseEnv(process)] * 3)
    for each in (ours, theirs):
        each.seed(4)
    assert np.allclose(ours.reset(), theirs.reset(), atol=1e-6)
    chance, ended = np.random.default_rng(0), 0
    for _ in range(60):
        actions = chance.choice(3, 3, p=[0.3, 0.6, 0.1])
        (*one, ours_told), (*other, theirs_told) = ours.step(actions), theirs.step(actions)
        assert data_equivalence(one, other)
        for told, expected in zip(ours_told, theirs_told, strict=True):
            last, last_expected = (each.pop("terminal_observation", np.zeros(0)) for each in (told, expected))
            assert np.allclose(last, last_expected, atol=1e-6)
            assert told == pytest.approx(expected)
            ended += told["TimeLimit.truncated"]
        assert np.array_equal(ours.env_method("action_masks"), theirs.env_method("action_masks"))
    assert ended
    assert ours.has_attr("action_masks")
    assert not ours.has_attr("nothing")


@pytest.mark.parametrize("name", ["A2C", "PPO"])
def test_plain_agents_train_where_sensors_are_not_always_allowed(sb3, name):
    env = sb3.common.monitor.Monitor(
        gymnasium.make("reticent/Problem-v0", problem=MASKED), info_keywords=("forbidden",)
    )
    model = getattr(sb3, name)("MlpPolicy", env, n_steps=64, seed=0)
    before = model.policy.action_net.weight.detach().clone()
    model.learn(1_024)
    assert not before.equal(model.policy.action_net.weight)
    # They asked for what was not allowed, which ended the episode.
    assert any(episode["forbidden"] for episode in model.ep_info_buffer)
    process = Process.of(MASKED)
    check_policy(process, OutsidePolicy(process, "described", gym.from_sb3(model)))


@pytest.mark.parametrize("many", [False, True])
def test_maskable_ppo_never_asks_for_what_is_not_allowed(sb3, contrib, many):
    options = {"problem": MASKED, "forbidden": "error"}
    env = (
        gym.sb3_vec_env("reticent/Problem-v0", 8, **options)
        if many
        else gymnasium.make("reticent/Problem-v0", **options)
    )
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=128, seed=0)
    # An action that is not allowed would be an error.
    model.learn(1_024)
    predict, asked = gym.from_sb3(model), np.random.default_rng(0).random((100, 16)).astype(np.float32)
    allowed = np.random.default_rng(1).random((100, 3)) < 0.4
    allowed[:, 2] = True
    assert allowed[np.arange(100), predict(asked, allowed)].all()


def test_agents_that_remember_are_refused(sb3, contrib):
    env = gymnasium.make("reticent/Problem-v0", problem=MASKED)
    with pytest.raises(InputError, match="remembers"):
        gym.from_sb3(contrib.RecurrentPPO("MlpLstmPolicy", env))


def test_ppo_learns_to_release_and_to_stop(sb3):
    env = gym.sb3_vec_env("reticent/Problem-v0", 64, problem=BOUNDED)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=512, learning_rate=3e-3, gamma=1.0, seed=0)
    model.learn(10_240)
    process = Process.of(BOUNDED)
    found = evaluate(process, OutsidePolicy(process, "described", gym.from_sb3(model)), 16_384, seed=1)
    assert found.cost.value < 0.5 * STOP_AT_ONCE
    # No policy is cheaper than the optimum: four standard errors.
    assert found.cost.value > OPTIMUM - 4 * (found.cost.high - found.cost.value) / 1.96


@pytest.mark.usefixtures("less_work")
def test_an_agent_is_evaluated_certified_and_audited_like_a_policy_of_ours(sb3):
    env = gymnasium.make("reticent/Problem-v0", problem=BOUNDED)
    model = sb3.A2C("MlpPolicy", env, gamma=1.0, seed=0)
    model.learn(3_000)
    process = Process.of(BOUNDED)
    policy = OutsidePolicy(process, "described", gym.from_sb3(model))
    check_policy(process, policy)
    evaluated, certified = (
        evaluate(process, policy, 8_192, seed=1),
        Solution.of(BOUNDED, policy).certify(seed=2),
    )
    assert evaluated.cost.value < STOP_AT_ONCE
    assert (certified.kind, certified.lower.value) == ("exact", pytest.approx(OPTIMUM, abs=1e-5))
    # The same policy, other episodes: four standard errors of the rarer one.
    assert abs(certified.upper.value - evaluated.cost.value) < 4 * (evaluated.cost.high - evaluated.cost.value) / 1.96
    found = audit_policy(BOUNDED, process, policy, 2_000)
    assert found.audit.passed
    assert len(found.carried) == len(found.forgotten) == 10
    assert len(found.wrong_models) == 2
    # What Bayes comes to believe in the played episodes is what evaluation says: four standard errors of each.
    over, crossed = found.audit.attacks[0].over, evaluated.violation_rate
    assert over is not None
    assert abs(over.value - crossed.value) < 4 / (2 * 1.96) * (over.high - over.low + crossed.high - crossed.low)
