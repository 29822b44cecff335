"""The contract of the process that goes on."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.data.trajectories import Trajectories
from reticent.errors import InputError
from reticent.evaluate.monitoring import summarise_days
from reticent.guard.ongoing import MonitoringRules
from reticent.policy.ongoing import CheapestStep, EverySteps
from reticent.policy.policy import NEVER, RandomSensor
from reticent.problem.bound import Confidence
from reticent.problem.monitoring import Monitoring
from reticent.process.days import play_days
from reticent.process.ongoing import OngoingProcess
from reticent.process.source import FromTrajectories
from tests.problems import random_chain
from tests.sent import highest_posteriors

MOVES = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.7, 0.3], [0.3, 0.7]]}
STEPS = 30


@pytest.fixture(scope="module")
def task():
    model = replace(random_chain(0, sensors=2, useful=2, symbols=3), prior=np.full((2, 2), 0.25)).moving(MOVES)
    return Monitoring(model, Confidence(0.8), horizon=STEPS)


@pytest.fixture(scope="module")
def process(task):
    return OngoingProcess(task)


@pytest.fixture(scope="module")
def days(process):
    return play_days(process, RandomSensor(jnp.asarray(NEVER)).act, 20, seed=0)


step = eqx.filter_jit(lambda process, key, state, action: process.step(key, state, action))


def test_what_is_sent_tells_no_moment_up_to_the_bound(days, task):
    highest = [highest_posteriors(task.model, told) for told in days.likelihood]
    assert np.max(highest) < 0.8
    # The summary finds the same by the filter and smoother of the package.
    assert days.sent.mean() > 0.3
    assert ((days.bits > 0) == days.sent).all()


def test_a_summary_says_what_was_played(days, process, task):
    found = summarise_days(process, days, 0)
    highest = np.max([highest_posteriors(task.model, told, ahead=60) for told in days.likelihood], axis=0)
    assert (found.highest_filter, found.highest_prediction) == pytest.approx((highest[0], highest[2]), abs=1e-12)
    assert found.highest_smoother <= highest[1] + 1e-12
    assert found.releases.value == pytest.approx(days.sent.mean())
    assert found.accuracy_useful.value > 0.5
    weights = [len(part) for part in np.array_split(np.arange(STEPS), 12)]
    assert np.average([part["silent"] for part in found.course], weights=weights) == pytest.approx(1 - days.sent.mean())


def test_a_step_costs_what_is_sent_and_the_error_about_the_present(process):
    state = process.init(jax.random.key(0))
    silent = step(process, jax.random.key(1), state, jnp.asarray(2))
    assert float(silent.cost) == pytest.approx(25.0)
    spoken = step(process, jax.random.key(1), state, jnp.asarray(1))
    emissions = np.asarray(process.emissions(state.public))[1, :, :, int(spoken.symbol)]
    after = emissions / emissions.sum()
    assert float(spoken.cost) == pytest.approx(1 + 50 * (1 - after.sum(0).max()))
    # Time has passed: the belief of the next step is the prediction.
    later = np.einsum("su,sutv->tv", after, process.task.model.dynamics)
    assert np.allclose(spoken.state.public.belief, later, atol=1e-12)


def test_nothing_ends_a_day_but_its_horizon(process):
    state = process.init(jax.random.key(0))
    for t in range(STEPS):
        transition = step(process, jax.random.key(t), state, jnp.asarray(2))
        state = transition.state
        assert not transition.terminated
        assert bool(transition.truncated) == (t == STEPS - 1)


def test_what_is_not_allowed_is_refused(process):
    state = process.init(jax.random.key(0))
    locked = eqx.tree_at(lambda s: s.public, state, state.public._replace(allowed=jnp.array([False, True, True])))
    refused = step(process, jax.random.key(0), locked, jnp.asarray(0))
    assert refused.refusal.forbidden
    assert float(refused.cost) == pytest.approx(25.0)
    with pytest.raises(InputError, match="sensor 0, which is not allowed there"):
        refused.refusal.raise_first(2)
    assert step(process, jax.random.key(0), state, jnp.asarray(7)).refusal.forbidden


def test_the_hidden_pair_moves_by_the_chain(days):
    stays = (days.secret[:, 1:] == days.secret[:, :-1]).mean()
    # 580 moves that stay with probability .9: five standard errors are .062.
    assert stays == pytest.approx(0.9, abs=0.062)


def test_the_gateway_rules_follow_what_was_played(days, task, process):
    """Numpy's rules, given the actions and symbols of a compiled day, know the same after each step."""
    rules = MonitoringRules(task)
    public = rules.begin()
    for t in range(STEPS):
        assert float(public.headroom) == pytest.approx(days.headroom[0, t], abs=1e-9)
        moments = public.moments
        if days.sent[0, t]:
            emissions = rules.emissions(public)[days.action[0, t]]
            symbol = int(np.abs(emissions - days.likelihood[0, t][..., None]).sum((0, 1)).argmin())
            assert np.allclose(emissions[..., symbol], days.likelihood[0, t], atol=1e-9)
            moments, possible = rules.sent(public, days.action[0, t], symbol)
            assert possible
        public = rules.later(public, moments, 0.0)


def test_baselines(process):
    cheapest = play_days(process, CheapestStep(process).act, 4, seed=1)
    assert cheapest.sent.any()
    every = play_days(process, EverySteps(jnp.asarray(1), jnp.asarray(5)).act, 4, seed=1)
    spoke = np.flatnonzero(every.sent.any(0))
    assert set(spoke) <= set(range(0, STEPS, 5))
    assert (every.action[:, spoke] < 2).any()


@pytest.mark.slow
def test_the_present_only_is_told_beyond_the_bound(task):
    """Why all rows are needed: the smoother of what a guard of the present sends passes the bound."""
    process = OngoingProcess.keeping_the_present_only(task)
    played = play_days(process, RandomSensor(jnp.asarray(NEVER)).act, 20, seed=0)
    found = summarise_days(process, played, 0)
    assert found.highest_filter < 0.8 < found.highest_smoother


def recorded(steps):
    """Two lives of so many steps, each sensor saying the step's number in its own way."""
    time = np.tile(np.arange(steps), 2)
    return Trajectories(
        codes=np.stack([time % 3, (time + 1) % 3], axis=1),
        secret=np.repeat([0, 1], steps),
        useful=time // 5 % 2,
        trajectory=np.repeat([0, 1], steps),
        person=np.repeat([0, 1], steps),
        people=("ada", "bob"),
        sensors=("a", "b"),
        secrets=("no", "yes"),
        useful_values=("low", "high"),
        step=1.0,
    )


def test_recorded_lives_are_played_step_by_step_under_the_same_guard(process):
    lives = recorded(STEPS)
    source = FromTrajectories.of(lives, STEPS)
    assert source.starts.tolist() == [0, STEPS]
    day = play_days(process.reading_from(source), EverySteps(jnp.asarray(1), jnp.asarray(1)).act, 6, seed=0)
    assert set(day.secret[:, 0]) == {0, 1}
    assert (day.secret == day.secret[:, :1]).all()
    assert (day.useful == lives.useful[:STEPS]).all()
    assert np.max([highest_posteriors(process.task.model, told) for told in day.likelihood]) < 0.8


def test_lives_that_are_too_short_are_refused():
    with pytest.raises(InputError, match="No trajectory has 31 steps; the longest has 30"):
        FromTrajectories.of(recorded(STEPS), STEPS + 1)
