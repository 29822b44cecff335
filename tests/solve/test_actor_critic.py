"""The agent on processes whose optimal cost is known."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.evaluate.evaluation import evaluate
from reticent.policy.heuristics import OneStepLookahead
from reticent.problem.bound import Confidence, Information
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, tells_both, tells_nothing, tells_useful, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.actor_critic import RECIPES, Recipe, advance, initialise, train, training
from reticent.solve.checkpoint import load_checkpoint, save_checkpoint

SMALL = Recipe(environments=64, width=32)


@pytest.mark.parametrize(
    ("model", "value"),
    [(tells_useful, 1.0), (tells_nothing, 25.0), pytest.param(tells_both, 25.0, marks=pytest.mark.slow)],
)
def test_the_agent_finds_the_obvious_policy(model, value):
    """The first must be told from always stopping, which costs 25; the others are solved by it."""
    process = Process.of(Task(model(), Confidence(0.9)))
    evaluation = evaluate(process, train(process, 20_480, 0, SMALL), 1_000, seed=1)
    assert evaluation.cost.value == pytest.approx(value, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "value"), [(0.6, 12.883022), (0.9, 7.197961)])
def test_the_agent_comes_near_the_exact_value_of_p1(limit, value):
    process = Process.of(Task(two_binary_sensors(), Confidence(limit)))
    evaluation = evaluate(process, train(process, 300_000, 0), 40_000, seed=1)
    # Within 3 % of the optimum, and not below it by more than the interval allows.
    assert evaluation.cost.low <= value * 1.03
    assert evaluation.cost.high >= value


@pytest.mark.slow
def test_the_paper_recipe_learns():
    process = Process.of(Task(tells_useful(), Confidence(0.9)))
    recipe = replace(RECIPES["a2c"], environments=64, width=32)
    evaluation = evaluate(process, train(process, 60_000, 0, recipe), 4_000, seed=1)
    assert evaluation.cost.value < 5.0


def test_training_compiles_once_for_all_bounds_prices_and_seeds():
    # A width that no other test has: what was compiled before would not be traced again.
    recipe = Recipe(environments=8, rollout=4, width=11)
    before = eqx.debug.get_num_traces(advance)
    for limit, penalty, seed in ((0.6, 50.0, 0), (0.8, 20.0, 1), (0.9, 10.0, 2)):
        task = Task(two_binary_sensors(), Confidence(limit), Objective(error_penalty=penalty))
        train(Process.of(task), 640, seed, recipe)
    assert eqx.debug.get_num_traces(advance) - before == 1


def test_training_is_deterministic_given_the_seed():
    process = Process.of(Task(two_binary_sensors(), Information(0.2)))
    recipe = Recipe(environments=8, rollout=4, width=8)
    one, two, other = (train(process, 1_280, seed, recipe) for seed in (0, 0, 1))
    assert jax.tree.all(jax.tree.map(np.array_equal, one, two))
    assert not jax.tree.all(jax.tree.map(np.array_equal, one.network, other.network))


@pytest.mark.parametrize("steps", [1, 32, 33, 928, 1_280])
def test_all_steps_that_were_asked_for_are_run_and_what_is_run_is_said(steps):
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    recipe = Recipe(environments=8, rollout=4, width=8)
    told: list[int] = []
    train(process, steps, 0, recipe, lambda done, _: told.append(done))
    assert told[-1] == recipe.steps_run(steps)
    # Less than one update of 32 steps more than was asked for; 29 updates used to become 20.
    assert 0 <= told[-1] - steps < recipe.steps_per_update
    assert len(told) <= 20


def test_interrupted_training_goes_on_to_the_same_result(tmp_path):
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8)))
    recipe = Recipe(environments=8, rollout=4, width=8)
    fresh, settings, path = initialise(process, recipe, 0), {"seed": 0}, tmp_path / "p.partial"
    states = [state for state, _ in training(process, recipe, fresh, 1_280)]
    save_checkpoint(path, states[7], settings)
    assert load_checkpoint(path, fresh, {"seed": 1}) is None
    resumed = load_checkpoint(path, fresh, settings)
    assert resumed is not None
    last = [state for state, _ in training(process, recipe, resumed, 1_280)][-1]
    assert jax.tree.all(jax.tree.map(np.array_equal, last.networks, states[-1].networks))


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "margin"), [(0.9, 0.3), (0.99, 1.3)])
def test_the_agent_beats_one_step_lookahead_on_the_synthetic_problem(limit, margin):
    process = Process.of(Task(synthetic(), Confidence(limit)))
    agent = evaluate(process, train(process), 100_000, seed=1)
    lookahead = evaluate(process, OneStepLookahead(process, jnp.asarray(2.0)), 100_000, seed=1)
    # Standard errors are below 0.04; the margins are those asked of the default agent.
    assert agent.cost.value <= lookahead.cost.value - margin


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "cost"), [(1.0, 18.5), (1.5, 13.1)])
def test_the_agent_under_the_information_mask_on_the_synthetic_problem(bits, cost):
    process = Process.of(Task(synthetic(), Information(bits)))
    agent = evaluate(process, train(process), 100_000, seed=1)
    assert agent.cost.value <= cost
    assert agent.violation_rate.value == 0
