import json

import jax.numpy as jnp
import pytest
from scipy.stats import beta

from reticent.errors import InputError
from reticent.evaluate.estimate import mean, rate
from reticent.evaluate.evaluation import PILOT, evaluate
from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.policy import NoProtection, RandomSensor
from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.synthetic import tells_both, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solution.solution import Solution


def test_rates_have_the_exact_binomial_interval():
    estimate = rate([True] * 3 + [False] * 97)
    assert estimate.value == 0.03
    assert estimate.low == pytest.approx(beta.ppf(0.025, 3, 98))
    assert estimate.high == pytest.approx(beta.ppf(0.975, 4, 97))
    assert rate([False] * 100).low == 0.0
    assert rate([False] * 100).high == pytest.approx(1 - 0.025 ** (1 / 100))


def test_means_have_a_normal_interval():
    estimate = mean([1.0, 2.0, 3.0, 4.0])
    assert estimate.value == 2.5
    assert estimate.high - 2.5 == pytest.approx(1.959964 * 1.290994 / 2, abs=1e-5)


def test_a_violation_is_charged_and_reported():
    process = Process.of(Task(tells_both(), Confidence(0.9)))
    evaluation = evaluate(process, RandomSensor(jnp.asarray(0.9)), 1_000, seed=0)
    assert evaluation.violation_rate.value == 1.0
    assert evaluation.cost.value == pytest.approx(51.0)
    assert evaluation.cost_without_penalty.value == pytest.approx(1.0)
    assert evaluation.highest_confidence_secret.value == pytest.approx(1.0)
    assert evaluation.spent_bits.value == pytest.approx(1.0)


def test_accuracy_equals_mean_confidence_because_the_belief_is_exact():
    process = Process.of(Task(two_binary_sensors(), Unbounded(), horizon=10))
    evaluation = evaluate(process, NoProtection(), 20_000, seed=0)
    assert evaluation.truncated_rate.value == 1.0
    # Four standard errors of a rate over 20 000 episodes are at most 0.0142.
    assert evaluation.accuracy_secret.value == pytest.approx(evaluation.confidence_secret.value, abs=0.0142)
    assert evaluation.accuracy_useful.value == pytest.approx(evaluation.confidence_useful.value, abs=0.0142)


def test_the_record_is_one_json_object_and_the_seed_decides_it():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    policy = OneStepLookahead(process, jnp.asarray(2.0))
    one, two = (evaluate(process, policy, 500, seed=3).to_json() for _ in range(2))
    assert json.loads(json.dumps(one)) == two
    assert one["episodes"] == 500
    assert len(one["accuracy_per_useful"]) == 2


def test_one_episode_is_too_few():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    with pytest.raises(InputError, match="two episodes"):
        evaluate(process, NoProtection(), 1)


def test_no_more_episodes_than_the_precision_needs():
    task = Task(two_binary_sensors(), Confidence(0.9))
    solution = Solution.of(task, RandomSensor(jnp.asarray(0.9)))
    pilot = solution.evaluate(PILOT)
    reach = pilot.cost.high - pilot.cost.value
    found = solution.evaluate(precision=reach / 1.5)
    # 2.25 pilots, as the spread of the pilot says.
    assert found.episodes == pytest.approx(2.25 * PILOT, abs=1)
    assert found.cost.high - found.cost.value == pytest.approx(reach / 1.5, rel=0.03)
    assert found == solution.evaluate(found.episodes)
    assert solution.evaluate(precision=2 * reach) == pilot
    assert solution.evaluate(10_000, precision=reach / 100).episodes == 10_000
    with pytest.raises(InputError, match="half the width"):
        solution.evaluate(precision=0.0)
