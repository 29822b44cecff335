import jax.numpy as jnp
import numpy as np
import pytest

from reticent.policy.heuristics import BASELINES, OneStepLookahead
from reticent.policy.policy import NEVER as NO_THRESHOLD
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Confidence, Information
from reticent.problem.synthetic import synthetic, tells_nothing, tells_useful, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate
from reticent.solve.baselines import THRESHOLDS, _threshold_costs, tuned_baseline

NEVER = jnp.asarray(NO_THRESHOLD)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(
    ("model", "value"), [(tells_useful, 1.0), pytest.param(tells_nothing, 25.0, marks=pytest.mark.slow)]
)
def test_tuned_baselines_solve_the_obvious_problems(name, model, value):
    process = Process.of(Task(model(), Confidence(0.9)))
    policy = tuned_baseline(name, process, seed=0, episodes=256)
    assert simulate(process, policy.act, 1_000, seed=1).cost.mean() == pytest.approx(value)


@pytest.mark.parametrize("bound", [Confidence(0.9), pytest.param(Information(0.1), marks=pytest.mark.slow)])
def test_costs_of_all_thresholds_at_once_agree_with_playing_each(bound):
    process = Process.of(Task(two_binary_sensors(), bound))
    costs = _threshold_costs(process, RandomSensor(NEVER).act, 0, 8_192)
    for index in (0, 40, 60, 66):
        policy = RandomSensor(jnp.asarray(THRESHOLDS[index]))
        played = simulate(process, policy.act, 8_192, seed=1).cost
        # Independent samples: five standard errors of the difference.
        assert abs(played.mean() - costs[index]) < 5 * np.sqrt(2) * played.std() / np.sqrt(8_192) + 1e-9


@pytest.mark.slow
def test_one_step_lookahead_on_the_synthetic_problem():
    process = Process.of(Task(synthetic(), Confidence(0.99)))
    cost = simulate(process, OneStepLookahead(process, NEVER).act, 100_000, seed=0).cost
    # The prototype's figure is 18.2; the standard error here is 0.03.
    assert cost.mean() == pytest.approx(18.2, abs=0.15)
