"""Wrong models: what somebody with the right one learns."""

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.mismatch import informed_beliefs, mismatch, mixed, moved_apart, sharpened
from reticent.errors import InputError
from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import named_enforcement
from reticent.problem.synthetic import synthetic, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate_traced
from tests.problems import random_model

EPISODES = 4_096
FOUR_STANDARD_ERRORS = 4 * 0.5 / EPISODES**0.5


def lookahead(bound, enforce="mask"):
    process = Process.of(Task(two_binary_sensors(), bound, enforcement=named_enforcement(enforce), horizon=30))
    return process, OneStepLookahead(process, jnp.asarray(1.0))


@pytest.mark.parametrize("enforce", ["withhold", pytest.param("coarsen", marks=pytest.mark.slow)])
def test_with_the_assumed_channel_the_informed_belief_is_the_public_one(enforce):
    process, policy = lookahead(Confidence(0.7), enforce)
    channel = two_binary_sensors().channel
    records, sent = simulate_traced(process.with_true_channel(channel), policy.act, EPISODES, seed=2)
    belief, highest = informed_beliefs(two_binary_sensors().prior, channel, sent, EPISODES)
    assert np.allclose(belief, records.belief, rtol=0, atol=1e-9)
    assert np.allclose(highest, records.highest_confidence, rtol=0, atol=1e-9)
    assert highest.max() < 0.7


@pytest.mark.slow
def test_a_sharper_truth_crosses_the_bound_that_the_assumed_belief_keeps():
    process, policy = lookahead(Confidence(0.8), "withhold")
    truth = sharpened(two_binary_sensors().channel, 0.5)
    found = mismatch(process, policy, truth, EPISODES)
    records, _ = simulate_traced(process.with_true_channel(truth), policy.act, EPISODES, seed=0)
    assert found.violation_rate is not None
    assert found.violation_rate.low > 0
    assert found.highest_confidence >= 0.8
    assert records.highest_confidence.max() < 0.8
    assert found.accuracy_secret.value == pytest.approx(found.confidence_secret.value, abs=FOUR_STANDARD_ERRORS)
    assert found.accuracy_secret.value >= found.accuracy_secret_assumed.value
    assert mismatch(process, policy, truth, EPISODES) == found


@pytest.mark.slow
def test_whoever_trusts_a_wrong_model_names_the_wrong_secret():
    # The channel of the other secret: the assumed model is worse than a coin, the true one is not.
    process, policy = lookahead(Information(0.3))
    found = mismatch(process, policy, two_binary_sensors().channel[:, ::-1], EPISODES)
    assert found.accuracy_secret_assumed.high < 0.5 < found.accuracy_secret.low
    # A bound on information says nothing of confidence.
    assert found.violation_rate is None


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.0, 2.0])
def test_sharpening_normal_laws_scales_their_deviation(factor):
    assert np.allclose(sharpened(synthetic().channel, factor), synthetic(noise=factor).channel, rtol=1e-9, atol=1e-300)


def test_sharpening_by_hand():
    channel = np.array([0.2, 0.8]).reshape(1, 1, 1, 2)
    assert sharpened(channel, 0.5).ravel() == pytest.approx([0.2**4 / (0.2**4 + 0.8**4), 0.8**4 / (0.2**4 + 0.8**4)])
    assert sharpened(np.array([0.0, 1.0]).reshape(1, 1, 1, 2), 0.5).ravel().tolist() == [0, 1]


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_moving_normal_laws_apart_moves_their_means(factor):
    grid, means, spread = np.arange(-40, 41), np.array([-6.0, 1.0, 5.0]), 3.0

    def normal(means):
        law = np.exp(-((grid - means[:, None]) ** 2) / (2 * spread**2))
        return (law / law.sum(-1, keepdims=True))[None, None]

    # Around what they have in common, the mean of the means, which is zero.
    assert np.allclose(moved_apart(normal(means), factor), normal(factor * means), atol=1e-9)


def test_moving_apart_by_hand():
    channel = np.array([[0.2, 0.8], [0.8, 0.2]]).reshape(1, 2, 1, 2)
    # In common they have the uniform law.
    assert moved_apart(channel, 2.0)[0, 0, 0] == pytest.approx([0.04 / 0.68, 0.64 / 0.68])
    assert np.allclose(moved_apart(channel, 0.0), 0.5)
    never = np.array([[0.0, 1.0], [0.5, 0.5]]).reshape(1, 2, 1, 2)
    assert moved_apart(never, 2.0)[0, 0, 0].tolist() == [0, 1]
    assert np.allclose(moved_apart(never, 1.0), never)


def test_mixing_moves_every_law_towards_the_others():
    channel = random_model(0, secrets=1, useful=3).channel
    assert np.array_equal(mixed(channel, 0.0), channel)
    assert np.allclose(mixed(channel, 0.3).sum(-1), 1)
    expected = 0.7 * channel[0, 0, 0] + 0.3 * (channel[0, 0, 1] + channel[0, 0, 2]) / 2
    assert np.allclose(mixed(channel, 0.3)[0, 0, 0], expected)
    # With as much of every other pair as of the own one, the reading says nothing.
    assert np.ptp(mixed(channel, 2 / 3), axis=2).max() < 1e-12


def test_what_cannot_be_is_refused():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    channel = two_binary_sensors().channel
    with pytest.raises(InputError, match="above zero"):
        sharpened(channel, 0.0)
    with pytest.raises(InputError, match="not negative"):
        moved_apart(channel, -1.0)
    with pytest.raises(InputError, match="between zero and one"):
        mixed(channel, 1.5)
    with pytest.raises(InputError, match="nothing to mix"):
        mixed(channel[:, :1, :1], 0.5)
    with pytest.raises(InputError, match="two episodes"):
        mismatch(process, RandomSensor(jnp.asarray(1.0)), channel, 1)
