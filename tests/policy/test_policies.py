from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.policy.actor import Actor, Features, Inputs, masked_logits
from reticent.policy.contracts import check_policy
from reticent.policy.heuristics import (
    Chernoff,
    ExtrinsicJensenShannon,
    InformationGain,
    OneStepLookahead,
    chernoff_mixture,
    extrinsic_jensen_shannon,
    lookahead_costs,
)
from reticent.policy.network import Network
from reticent.policy.policy import FixedSensor, NoProtection, RandomSensor
from reticent.problem.bound import Confidence, Information, Unbounded
from reticent.problem.enforcement import Penalty
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, tells_both, tells_nothing, tells_useful, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process, PublicState
from tests.problems import random_model

THRESHOLD = jnp.asarray(0.9)
# Under the first the better sensor is soon not allowed, under the last no sensor ever is.
MASKED = Task(two_binary_sensors(), Information(0.05), horizon=10)
SETTINGS = [
    MASKED,
    Task(synthetic(), Information(0.6), horizon=20),
    Task(tells_both(), Information(1.0), horizon=20),
]


def policies(process):
    mixture = jnp.asarray(chernoff_mixture(np.asarray(process.prior), np.asarray(process.channel)))
    settings: tuple[tuple[Inputs, bool], ...] = (("belief", False), ("rich", True))
    for inputs, greedy in settings:
        features = Features(process, inputs)
        network = Network(features.size, process.sensors + 1, 16, jax.random.key(0))
        yield Actor(network, features, greedy)
    yield RandomSensor(THRESHOLD)
    yield OneStepLookahead(process, THRESHOLD)
    yield FixedSensor(jnp.array(0), THRESHOLD)
    yield InformationGain(process, jnp.asarray(0.5), THRESHOLD)
    yield ExtrinsicJensenShannon(process, THRESHOLD)
    yield Chernoff(mixture, THRESHOLD)


def test_the_first_policies_keep_the_contract():
    """The others act by the same two functions, `best` and `choose`; tests/solve/test_baselines simulates them."""
    process = Process.of(MASKED)
    for policy in islice(policies(process), 4):
        check_policy(process, policy)


@pytest.mark.slow
@pytest.mark.parametrize("task", SETTINGS, ids=lambda task: f"{task.model.channel.shape}-{task.bound}")
def test_every_policy_keeps_the_contract(task):
    process = Process.of(task)
    for policy in policies(process):
        check_policy(process, policy)


def test_no_protection_never_stops():
    process = Process.of(Task(two_binary_sensors(), Unbounded(), horizon=10))
    check_policy(process, NoProtection())
    state = process.init(jax.random.key(0)).public
    actions = jax.vmap(lambda key: NoProtection().act(key, state))(jax.random.split(jax.random.key(0), 500))
    assert set(actions.tolist()) == {0, 1}


@pytest.mark.parametrize("seed", range(4))
def test_lookahead_costs_by_enumeration(seed):
    model = random_model(seed, sensors=2, secrets=3, useful=2, symbols=3)
    limit = model.largest_secret_prior + 0.1
    process = Process.of(Task(model, Confidence(limit), Objective(1.5, 20.0), Penalty(7.0)))
    expected = []
    for a in range(2):
        cost = 1.5
        for z in range(3):
            joint = model.prior * model.channel[a, :, :, z]
            after = joint / joint.sum()
            cost += joint.sum() * (7.0 if after.sum(1).max() >= limit else 20 * (1 - after.sum(0).max()))
        expected.append(cost)
    assert np.allclose(lookahead_costs(process, process.init(jax.random.key(0)).public), expected)


@pytest.mark.parametrize(("model", "action"), [(tells_useful, 0), (tells_nothing, 1), (tells_both, 1)])
def test_lookahead_takes_the_obvious_first_action(model, action):
    process = Process.of(Task(model(), Confidence(0.9)))
    public = process.init(jax.random.key(0)).public
    assert OneStepLookahead(process, jnp.asarray(2.0)).act(jax.random.key(0), public) == action


def test_information_gain_avoids_what_tells_the_secret():
    # Sensor 0 tells both, sensor 1 only the useful value: kappa decides between equals.
    channel = np.concatenate([tells_both().channel, np.repeat(tells_useful().channel, 2, -1) / 2])
    names = {"secrets": ["0", "1"], "useful": ["0", "1"], "sensors": ["both", "useful"], "symbols": list("abcd")}
    model = type(tells_both()).from_json({**names, "channel": channel.tolist()})
    process = Process.of(Task(model, Unbounded()))
    public = process.init(jax.random.key(0)).public
    assert InformationGain(process, jnp.asarray(0.5), THRESHOLD).act(jax.random.key(0), public) == 1


def test_ejs_of_two_equally_likely_values_is_the_mean_of_both_divergences():
    model = two_binary_sensors()
    laws = model.channel[1].mean(0)
    forth, back = (np.sum(p * np.log(p / q)) for p, q in ((laws[0], laws[1]), (laws[1], laws[0])))
    score = extrinsic_jensen_shannon(jnp.asarray(model.prior), jnp.asarray(model.channel))
    assert float(score[1]) == pytest.approx((forth + back) / 2)


def test_chernoff_mixture_beats_every_pure_choice():
    channel = synthetic().channel
    mixture = chernoff_mixture(synthetic().prior, channel)
    assert np.allclose(mixture.sum(-1), 1)
    for s, u in np.ndindex(3, 3):
        rivals = np.delete(channel, u, axis=2).reshape(3, -1, 50)
        divergence = (channel[:, s, u, None] * np.log(channel[:, s, u, None] / rivals)).sum(-1)
        assert (mixture[s, u] @ divergence).min() >= divergence.min(1).max() - 1e-9


def test_a_masked_action_has_probability_zero():
    network = Network(3, 4, 8, jax.random.key(0))
    logits = masked_logits(network, jnp.ones(3, jnp.float32), jnp.array([True, False, True, True]))
    assert jax.nn.softmax(logits)[1] == 0


def test_policies_cannot_see_the_hidden_pair():
    assert set(PublicState._fields) == {"belief", "spent_bits", "allowed", "kernels", "bits", "panel"}
