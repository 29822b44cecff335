"""Simpler means at the same utility: one game is played for all thresholds, and mechanisms of others are among them."""

from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.comparison import EPISODES, baseline_points, both_balanced
from reticent.audit.measures import Resampler
from reticent.audit.play import play
from reticent.audit.posterior import posterior_of
from reticent.policy.heuristics import OneStepLookahead
from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.enforcement import Coarsen, Penalty
from reticent.problem.mechanisms import MECHANISMS
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process

pytestmark = pytest.mark.slow
TASK = Task(two_binary_sensors(), Confidence(0.8), enforcement=Coarsen())


@pytest.fixture(scope="module")
def points():
    return baseline_points(TASK, 0)


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.95])
def test_a_threshold_stops_where_a_policy_with_it_would(points, threshold):
    free = replace(TASK, bound=Unbounded(), enforcement=Penalty(), horizon=50)
    process = Process.of(free)
    stops = eqx.tree_at(lambda p: p.threshold, OneStepLookahead(process), jnp.asarray(threshold))
    records, traces = play(free, process, stops, EPISODES, 7)
    believed = posterior_of(np.asarray(records.belief), TASK.model.prior)
    wanted = both_balanced(believed, traces, Resampler(np.arange(EPISODES), 0))
    [found] = [each for each in points if (each.policy, each.threshold) == ("one-step lookahead", threshold)]
    # Other episodes: four standard errors of the difference of two shares.
    for one, other in zip((found.useful, found.secret), wanted, strict=True):
        assert one.value == pytest.approx(other.value, abs=4 * (0.5 / EPISODES) ** 0.5)
    releases = np.asarray(records.releases)
    assert found.releases == pytest.approx(releases.mean(), abs=4 * releases.std() * (2 / EPISODES) ** 0.5 + 1e-9)


def test_nothing_is_released_at_the_lowest_threshold_and_more_at_higher_ones(points):
    for policy, variant in {(each.policy, each.variant) for each in points}:
        curve = [each for each in points if (each.policy, each.variant) == (policy, variant)]
        assert curve[0].releases == 0
        assert all(a.releases <= b.releases for a, b in pairwise(curve))


def test_mechanisms_of_others_are_compared(points):
    for name, variants in MECHANISMS.items():
        assert {each.variant for each in points if each.policy == name} == {
            each.variant for each in variants(TASK.model)
        }
    # Noise tells less of both than the readings themselves.
    surest = {
        variant: max(each.secret.value for each in points if each.variant == variant)
        for variant in ("epsilon 0.5", "epsilon 6")
    }
    assert surest["epsilon 0.5"] < surest["epsilon 6"]
