"""Ranges of priors: their corners, and that a bound which holds for the corners holds for every prior inside."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import reticent as rt
from reticent.guard.rules import TaskRules
from reticent.problem.prior_range import extreme_priors, parsed_ranges
from reticent.problem.synthetic import two_binary_sensors
from tests.problems import random_model

LIMIT = 0.8


def test_two_secrets_have_two_corners():
    low, high = rt.over_priors(two_binary_sensors(), {"s0": (0.3, 0.6)}).panel
    assert low.prior.tolist() == [[0.15, 0.15], [0.35, 0.35]]
    assert np.allclose(high.prior, [[0.3, 0.3], [0.2, 0.2]])


def test_secrets_without_a_range_share_the_rest_in_the_models_proportions():
    prior = np.array([[0.2, 0.1], [0.1, 0.1], [0.2, 0.3]])
    for corner in extreme_priors(prior, {0: (0.25, 0.5)}):
        assert corner[1].sum() / corner[2].sum() == pytest.approx(0.4)
        # P(U | S) is the model's.
        assert np.allclose(corner / corner.sum(1, keepdims=True), prior / prior.sum(1, keepdims=True))


@given(seed=st.integers(0, 2**31 - 1))
def test_every_prior_in_the_range_is_a_mixture_of_the_corners(seed):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(8, 2.0)).reshape(4, 2)
    secret = prior.sum(1)
    ranges = {
        s: (float(secret[s] * rng.uniform(0.5, 1)), float(min(secret[s] * rng.uniform(1, 2), 0.95))) for s in (0, 2)
    }
    corners = np.array([corner.reshape(-1) for corner in extreme_priors(prior, ranges)])
    wanted = np.array([rng.uniform(*ranges[0]), 0.0, rng.uniform(*ranges[2]), 0.0])
    if wanted.sum() > 1:
        return
    wanted[[1, 3]] = (1 - wanted.sum()) * secret[[1, 3]] / secret[[1, 3]].sum()
    inside = (prior * (wanted / secret)[:, None]).reshape(-1)
    weights = linprog(np.zeros(len(corners)), A_eq=np.vstack([corners.T, np.ones(len(corners))]), b_eq=[*inside, 1])
    assert weights.status == 0
    assert np.allclose(corners.sum(1), 1)


@pytest.mark.parametrize("seed", range(3))
def test_no_prior_in_the_range_is_brought_to_the_bound(seed):
    """All histories of two releases, and priors all over the range: by hand, from scratch."""
    random = random_model(seed, symbols=3)
    model = rt.Model([[0.25, 0.3], [0.25, 0.2]], random.channel, random.secrets, random.useful, random.sensors)
    wide = rt.over_priors(model, {"s0": (0.35, 0.7)})
    rules = TaskRules(rt.Task(wide, rt.Confidence(LIMIT), enforcement=rt.Coarsen()))
    alone = TaskRules(rt.Task(model, rt.Confidence(LIMIT), enforcement=rt.Coarsen()))
    given_secret = model.prior / model.prior.sum(1, keepdims=True)
    inside = [np.array([[p], [1 - p]]) * given_secret for p in np.linspace(0.35, 0.7, 8)]
    assert highest(rules, inside) < LIMIT
    # It would not hold without the panel.
    assert highest(alone, inside) > LIMIT


def highest(rules, priors):
    """The largest posterior of a secret, over priors and histories of two releases."""
    found, reached = (
        0.0,
        [
            (
                np.ones_like(rules.prior),
                rules.public(rules.prior, 0.0, None if rules.panel is None else rules.panel.prior),
            )
        ],
    )
    for last in (False, True):
        following = []
        for told, public in reached:
            for sensor, symbol in itertools.product(
                np.flatnonzero(public.allowed[:-1]), range(public.kernels.shape[2] + 2)
            ):
                likelihood = rules.emissions(public)[sensor, :, :, symbol] * told
                if (rules.prior * likelihood).sum() < 1e-9:
                    continue
                found = max(
                    found, *((prior * likelihood).sum(1).max() / (prior * likelihood).sum() for prior in priors)
                )
                if not last:
                    following.append((likelihood, rules.public(*_after(rules, likelihood))))
        reached = following
    return found


def _after(rules, likelihood):
    belief = rules.prior * likelihood
    if rules.panel is None:
        return belief / belief.sum(), 0.0
    others = rules.panel.prior * likelihood
    return belief / belief.sum(), 0.0, others / others.sum((1, 2), keepdims=True)


def test_each_provider_of_a_panel_has_the_range():
    model = two_binary_sensors().with_panel([{"channel": 0.9 * two_binary_sensors().channel + 0.05}])
    wide = rt.over_priors(model, {"s0": (0.4, 0.6)})
    assert len(wide.panel) == 4
    assert np.array_equal(wide.panel[0].channel, model.channel)
    assert np.array_equal(wide.panel[3].channel, model.panel[0].channel)


def test_ranges_are_read_from_words():
    assert parsed_ranges(("at home=0.2..0.5", "away=.1..1e-1")) == {"at home": (0.2, 0.5), "away": (0.1, 0.1)}


@pytest.mark.parametrize("text", ["home", "home=0.2", "home=a..b", "=0.1..0.2", "0.1..0.2"])
def test_a_range_in_other_words_is_refused(text):
    with pytest.raises(rt.InputError, match=r"SECRET=LOW\.\.HIGH"):
        parsed_ranges((text,))


@pytest.mark.parametrize(
    ("ranges", "sentence"),
    [
        ({"s2": (0.1, 0.2)}, "There is no secret 's2'"),
        ({"s0": (0.6, 0.2)}, "the first must not be above the second"),
        ({"s0": (0.0, 0.2)}, "cannot be kept below a bound"),
        ({"s0": (0.6, 0.7), "s1": (0.5, 0.6)}, "they sum to 1.1 at least"),
        ({"s0": (0.1, 0.2), "s1": (0.2, 0.3)}, "and 0.5 at most"),
    ],
)
def test_ranges_that_hold_no_prior_are_refused(ranges, sentence):
    with pytest.raises(rt.InputError, match=sentence):
        rt.over_priors(two_binary_sensors(), ranges)
