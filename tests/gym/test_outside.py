"""An outside agent is a policy like any other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.belief.filter import NearestSymbolFilter
from reticent.errors import InputError
from reticent.evaluate.evaluation import evaluate
from reticent.gym.outside import OutsidePolicy
from reticent.policy.contracts import check_policy
from reticent.policy.policy import FixedSensor
from reticent.problem.bound import Confidence, Information
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from tests.streams import places_of, readings_of

TASK = Task(two_binary_sensors(), Information(0.1), horizon=10)
PROCESS = Process.of(TASK)


def sure_of_useful(observations):
    """From what is "described": the belief in each useful value follows the belief, its logarithm, and that in S."""
    return observations[:, 10:12].max(1)


class Fixed:
    """The first sensor until U is sure enough, whatever is allowed; remembers how much it was asked at a time."""

    def __init__(self):
        self.asked = []

    def __call__(self, observations, allowed):
        self.asked.append(len(observations))
        assert observations.dtype == np.float32
        assert allowed.shape == (len(observations), 3)
        return np.where(sure_of_useful(observations) >= 0.9, 2, 0)


def test_it_keeps_the_contract_and_asks_once_for_all_episodes():
    predict = Fixed()
    check_policy(PROCESS, OutsidePolicy(PROCESS, "described", predict))
    # 64 episodes side by side, 25 steps, played twice.
    assert predict.asked == [64] * 50


def test_it_is_asked_in_whatever_shape_it_is_played_and_what_is_not_allowed_counts_as_a_stop():
    predict = Fixed()
    policy = OutsidePolicy(PROCESS, "described", predict)
    act = eqx.filter_jit(lambda spent: policy.act(jax.random.key(0), PROCESS.public(PROCESS.prior, spent)))
    # The first sensor says .0337 bits, of .1.
    spent = jnp.array([[0.0, 0.09, 0.05], [0.09, 0.0, 0.07]])
    assert jax.vmap(jax.vmap(act))(spent).tolist() == [[0, 2, 0], [2, 0, 2]]
    assert act(jnp.array(0.0)) == 0
    assert predict.asked == [6, 1]


@pytest.mark.slow
def test_it_plays_what_the_same_policy_of_ours_plays():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    ours = evaluate(process, FixedSensor(jnp.asarray(0), jnp.asarray(0.9)), 20_000, seed=3)
    outside = evaluate(process, OutsidePolicy(process, "described", Fixed()), 20_000, seed=3)
    # 32-bit floats see a belief of .9 a hair too early or too late: none was that near.
    assert outside == ours


@pytest.mark.slow
def test_it_plays_over_recordings():
    model = two_binary_sensors()
    bayes = NearestSymbolFilter(jnp.asarray(model.prior), jnp.asarray(model.channel), jnp.asarray(places_of(model)))
    process = Process.over(bayes, readings_of(model, places_of(model), length=60), Information(0.1), horizon=5)
    check_policy(process, OutsidePolicy(process, "described", Fixed()))
    with pytest.raises(InputError, match="needs a finite model"):
        OutsidePolicy(process, "rich", Fixed())


@pytest.mark.parametrize("answer", [np.zeros(1), np.zeros((1, 1), int), np.array([3])])
def test_an_answer_that_is_no_action_is_an_error(answer):
    policy = OutsidePolicy(PROCESS, "belief", lambda observations, allowed: answer)
    public = PROCESS.init(jax.random.key(0)).public
    with pytest.raises(jax.errors.JaxRuntimeError, match="InputError: Actions"):
        eqx.filter_jit(policy.act)(jax.random.key(0), public).block_until_ready()
