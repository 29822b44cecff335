"""A panel of providers whose hidden pair moves: past, present and future stay below the bound for each of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reticent as rt
from reticent.guard.moments import Moments
from reticent.guard.ongoing import MonitoringRules
from reticent.guard.ongoing_panel import in_turn
from reticent.policy.policy import NEVER, RandomSensor
from reticent.process.days import play_days
from reticent.process.ongoing import OngoingProcess
from reticent.solve.actor_critic import Recipe, train
from tests.problems import random_model
from tests.sent import highest_posteriors

MOVES = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.7, 0.3], [0.3, 0.7]]}
SLOWER = {"secret": [[0.92, 0.08], [0.09, 0.91]], "useful": [[0.6, 0.4], [0.4, 0.6]]}
EVEN = np.full((2, 2), 0.25)
LIMIT, STEPS = 0.8, 25
NAMES = {"secrets": ["s0", "s1"], "useful": ["u0", "u1"], "sensors": ["a0", "a1"]}


def model_with_panel(seed):
    """Another channel, and another chain with another prior."""
    one, other = (random_model(seed + k, symbols=3).channel for k in (0, 100))
    model = rt.Model(EVEN, one, **NAMES, transition=MOVES)
    prior = [[0.2, 0.25], [0.3, 0.25]]
    return model.with_panel([{"channel": 0.3 * one + 0.7 * other}, {"prior": prior, "transition": SLOWER}])


@pytest.fixture(scope="module")
def task():
    return rt.Monitoring(model_with_panel(0), rt.Confidence(LIMIT), horizon=STEPS)


@pytest.fixture(scope="module")
def process(task):
    return OngoingProcess(task)


@pytest.fixture(scope="module")
def days(process):
    return play_days(process, RandomSensor(jnp.asarray(NEVER)).act, 16, seed=0)


def test_no_moment_reaches_the_bound_for_any_provider(days, task):
    """By forward-backward from scratch, with each provider's own prior, channel and chain."""
    for number, model in enumerate(task.model.panel):
        found = np.array([highest_posteriors(model, told) for told in days.panel[:, :, number]])
        assert found.max() < LIMIT
        assert found.max() > 0.6
    assert np.max([highest_posteriors(task.model, told) for told in days.likelihood]) < LIMIT
    assert days.sent.mean() > 0.2


def test_a_provider_who_is_not_on_the_panel_is_brought_over_the_bound(task):
    """The test above can fail: a guard for the model's provider alone lets the others reach the bound."""
    alone = OngoingProcess(rt.Monitoring(task.model.with_panel([]), rt.Confidence(LIMIT), horizon=STEPS))
    days = play_days(alone, RandomSensor(jnp.asarray(NEVER)).act, 16, seed=0)
    slower = task.model.panel[1]
    assert np.max([highest_posteriors(slower, told) for told in days.likelihood]) > LIMIT


def test_a_summary_is_of_the_surest_provider(process, days, task):
    found = rt.monitor(process, RandomSensor(jnp.asarray(NEVER)), days=16, seed=0)
    sides = [(task.model, days.likelihood), *zip(task.panel, np.moveaxis(days.panel, 2, 0), strict=True)]
    highest = max(highest_posteriors(model, told).filter for model, tolds in sides for told in tolds)
    assert found.highest_filter == pytest.approx(highest, abs=1e-12)
    assert max(found.highest_smoother, found.highest_prediction) < LIMIT


def test_numpy_and_jax_follow_the_same_moments(process, task):
    rules = MonitoringRules(task)
    public, compiled = rules.begin(), process.first
    sent, later = eqx.filter_jit(process.sent), eqx.filter_jit(process.later)
    rng, spoken = np.random.default_rng(0), 0
    for step in range(12):
        assert (np.asarray(compiled.allowed) == public.allowed).all()
        assert np.allclose(compiled.headroom, public.headroom, atol=1e-9)
        assert np.allclose(compiled.moments.panel.past, public.moments.panel.past, atol=1e-9)
        assert np.allclose(compiled.moments.panel.belief, public.moments.panel.belief, atol=1e-9)
        moments, theirs = public.moments, compiled.moments
        if public.allowed[0] and step % 2 == 0:
            law = (rules.emissions(public)[0] * public.belief[:, :, None]).sum((0, 1))
            symbol = int(rng.choice(len(law), p=law / law.sum()))
            (moments, possible), (theirs, also) = rules.sent(public, 0, symbol), sent(compiled, 0, jnp.asarray(symbol))
            assert possible
            assert also
            spoken += 1
        public, compiled = rules.later(public, moments, 0.0), later(compiled, theirs, jnp.zeros(()))
    assert spoken > 2


def test_one_after_the_other_is_as_all_at_once():
    rng = np.random.default_rng(0)
    given = Moments(
        rng.random((3, 2, 2)), rng.random((3, 4, 1, 4)), rng.random((3, 4)) > 0.5, np.ones((3, 2)), np.ones((3, 4, 4))
    )
    function = lambda moments, factor: moments._replace(past=moments.past * factor)  # noqa: E731
    mine, theirs = in_turn(function)(given, np.arange(3.0)), jax.vmap(function)(given, jnp.arange(3.0))
    assert all(np.allclose(one, other) for one, other in zip(mine[:-1], theirs[:-1], strict=True))
    assert mine.panel is None


def test_a_panel_whose_beliefs_are_lost_is_an_error(task):
    rules = MonitoringRules(task)
    public = rules.begin()
    with pytest.raises(rt.InputError, match="whose beliefs are not followed here"):
        rules.public(public.moments._replace(panel=None), public.recent, 0)


def test_a_secret_that_stands_still_for_some_only_is_refused():
    still = {"transition": {"secret": [[1, 0], [0, 1]], "useful": [[0.6, 0.4], [0.4, 0.6]]}}
    model = rt.Model(EVEN, random_model(0).channel, **NAMES, transition=still["transition"])
    with pytest.raises(rt.InputError, match="moves in the model but not in model 1 of the panel"):
        rt.Monitoring(model.with_panel([{"transition": MOVES}]), rt.Confidence(LIMIT))


@pytest.mark.slow
def test_a_policy_learns_with_a_panel(process):
    policy = train(process, 64, seed=0, recipe=Recipe(environments=8, rollout=4, epochs=1, minibatches=1, width=8))
    found = rt.monitor(process, policy, days=4)
    assert max(found.highest_filter, found.highest_smoother, found.highest_prediction) < LIMIT
