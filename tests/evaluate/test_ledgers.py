"""The ledger of the sensor taken, and that of theorem 3, which is averaged over the policy."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.belief.information import secret_information_bits
from reticent.errors import InputError
from reticent.evaluate.ledgers import averaged, ledgers
from reticent.policy.actor import Actor, Features
from reticent.policy.network import Network
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import PaperCost
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process

PROCESS = Process.of(Task(two_binary_sensors(), Information(0.03), enforcement=PaperCost(50.0), horizon=6))


def actor(greedy: bool) -> Actor:
    return Actor(Network(4, 3, 8, jax.random.key(0)), Features(PROCESS, "belief"), greedy)


def test_both_ledgers_have_the_same_mean():
    taken, said = ledgers(PROCESS, actor(greedy=False), 20_000, seed=1)
    difference = taken - said
    assert difference.std() > 0.01
    # Given the belief, the one is the expectation of the other: four standard errors.
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))


def test_a_policy_that_does_not_draw_has_one_ledger():
    # The first sensor is made the likeliest: six releases of it.
    sure = eqx.tree_at(lambda a: a.network.layers[-1].bias, actor(greedy=True), jnp.array([9.0, 0, 0], jnp.float32))
    taken, said = ledgers(PROCESS, sure, 500, seed=1)
    assert np.allclose(taken, said, atol=1e-12)
    assert (taken > 0).all()


def test_by_hand_over_one_step():
    process = Process.of(replace(PROCESS.task, horizon=1))
    taken, said = ledgers(process, actor(greedy=False), 200, seed=2)
    bits = np.asarray(secret_information_bits(process.prior, process.channel))
    chances = np.asarray(actor(greedy=False).probabilities(process.first))
    assert np.allclose(said, chances[:2] @ bits)
    assert set(np.round(taken, 12)) == set(np.round([0.0, *bits], 12))


def test_what_reached_the_limit_is_counted():
    found = averaged(PROCESS, actor(greedy=False), 2_000, seed=1)
    _, said = ledgers(PROCESS, actor(greedy=False), 2_000, seed=1)
    assert found.averaged_violation_rate.value == pytest.approx((said >= 0.03).mean())
    assert 0 < found.averaged_violation_rate.value < 1
    assert found.averaged_bits.value == pytest.approx(said.mean())


def test_only_information_has_a_ledger():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    with pytest.raises(InputError, match="Only a bound on the information spent"):
        averaged(process, actor(greedy=False), 10, seed=0)
