"""The promise itself: no symbol that can be sent brings the confidence in a secret to the bound."""

from dataclasses import replace
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.belief.bayes import emitted
from reticent.belief.prospect import Joint
from reticent.guard import safety as safety_module
from reticent.guard.safety import Safety
from reticent.guard.value_kernels import ValueKernels
from reticent.policy.contracts import check_process
from reticent.policy.features import lookahead_costs
from reticent.policy.policy import RandomSensor
from reticent.problem import merging
from reticent.problem.bound import Confidence
from reticent.problem.enforcement import Coarsen, Withhold, named_enforcement
from reticent.problem.merging import NEAREST
from reticent.problem.synthetic import synthetic, tells_both, tells_useful, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import rollout
from tests.problems import random_model

PENALTY = jnp.asarray(50.0)
SHAPE = {"sensors": 2, "secrets": 3, "useful": 2, "symbols": 5}


def bumpy(belief):
    """Some cost to go, neither concave nor smooth: the promise must not depend on it."""
    xp = belief.__array_namespace__()
    steep = xp.maximum(7 * belief[..., 0, 0] - 3, 3 - 7 * belief[..., 0, 0])
    return 20 * steep + 30 * belief[..., 1, 1] ** 2 + 5 * belief.max((-2, -1))


RULES = {
    "withhold": Withhold(),
    "coarsen": Coarsen(),
    "value": Coarsen(ValueKernels(bumpy, PENALTY)),
    "withhold by value": Withhold(ValueKernels(bumpy, PENALTY)),
}


@lru_cache
def compiled(name):
    return jax.jit(
        lambda belief, channel, limit: RULES[name].kernels(Safety.of(Joint(belief, channel), jnp.full(3, limit)))
    )


def some_case(seed, nearness):
    """A model with zeros in it, a belief, and a bound above the belief's confidence, as near as asked."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, **SHAPE, sparse=True)
    belief = rng.dirichlet(np.full(6, rng.choice([0.2, 1.0, 5.0]))).reshape(3, 2)
    if rng.random() < 0.3:
        belief[rng.integers(3), rng.integers(2)] = 0.0
        belief /= belief.sum()
    confidence = belief.sum(1).max()
    return model, belief, confidence + nearness * (1 - confidence)


def posteriors(belief, emissions):
    """Law and posterior of every symbol that can be sent, by numpy alone: [(probability, belief), ...]."""
    joint = belief[None, :, :, None] * np.asarray(emissions)
    law = joint.sum((1, 2))
    return [(law[a, y], joint[a, :, :, y] / law[a, y]) for a, y in np.argwhere(law > 0)]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "withhold by value" else name for name in RULES]
)
@given(seed=st.integers(0, 2**31 - 1), nearness=st.sampled_from([1e-8, 1e-5, 1e-3, 0.03, 0.2, 0.5, 0.9, 1.0]))
def test_no_symbol_lands_in_the_forbidden_region(name, seed, nearness):
    model, belief, limit = some_case(seed, nearness)
    kernels = compiled(name)(belief, model.channel, limit)
    assert (kernels >= 0).all()
    assert np.allclose(kernels.sum(1), 1, atol=1e-12)
    emissions = emitted(jnp.asarray(model.channel), kernels)
    after = posteriors(belief, emissions)
    assert all(one.sum(1).max() < limit for _, one in after)
    # The belief is a martingale under what is sent: each sensor's posteriors average to the belief.
    mean = sum(probability * one for probability, one in after) / SHAPE["sensors"]
    assert np.allclose(mean, belief, atol=1e-12)


def broken_solvers():
    rng = np.random.default_rng(0)
    return {
        "not a number": lambda cost, *_: jnp.full_like(cost, jnp.nan),
        "infinite": lambda cost, *_: jnp.full_like(cost, jnp.inf),
        "nothing": lambda cost, *_: jnp.zeros_like(cost),
        "negative": lambda cost, *_: jnp.full_like(cost, -1.0),
        "all as it is": lambda cost, *_: jnp.zeros_like(cost).at[:, 0].set(1.0),
        "random": lambda cost, *_: jnp.asarray(rng.random(cost.shape)),
        "label by chance": lambda cost, *_: jnp.asarray(rng.random(cost.shape) ** 50),
    }


@pytest.mark.parametrize("solver", broken_solvers())
@pytest.mark.parametrize(
    "name", [name if name == "coarsen" else pytest.param(name, marks=pytest.mark.slow) for name in RULES]
)
def test_the_promise_does_not_depend_on_the_solver(name, solver, monkeypatch):
    monkeypatch.setattr(safety_module, "cheapest_kernels", broken_solvers()[solver])
    for seed in range(3):
        model, belief, limit = some_case(seed, 0.2)
        channel = jnp.asarray(model.channel)
        kernels = RULES[name].kernels(Safety.of(Joint(jnp.asarray(belief), channel), jnp.full(3, limit)))
        assert np.allclose(kernels.sum(1), 1)
        assert all(one.sum(1).max() < limit for _, one in posteriors(belief, emitted(channel, kernels)))


@pytest.mark.parametrize("seed", range(10))
def test_withholding_is_the_fractional_knapsack(seed):
    model, belief, limit = some_case(seed, 0.3)
    limit = max(limit, 0.55)
    kernels = compiled("withhold")(belief, model.channel, limit)
    theta = max(limit - merging.MARGIN, belief.sum(1).max() + merging.SHARE * (limit - belief.sum(1).max()))
    for a in range(2):
        joint = np.einsum("su,suz->sz", belief, model.channel[a])
        law = joint.sum(0)
        withheld = (joint >= theta * law).any(0).astype(float)
        # Above one half only one secret can bind: safe readings that say least of it join, the last one in part.
        excess = ((joint - theta * law) @ withheld).argmax()
        owed = (joint - theta * law)[excess] @ withheld
        for z in np.argsort(joint[excess] / np.where(law > 0, law, 1)):
            gain = (theta * law - joint[excess])[z]
            if owed > 0 and withheld[z] == 0 and gain > 0:
                withheld[z] = min(1.0, owed / gain)
                owed -= withheld[z] * gain
        assert np.asarray(kernels)[a, 1] @ law == pytest.approx(withheld @ law, abs=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_coarsening_tells_more_of_the_useful_value_than_withholding(seed):
    model, belief, limit = some_case(seed, 0.3)
    right = {}
    for name in ("withhold", "coarsen"):
        emissions = emitted(jnp.asarray(model.channel), compiled(name)(belief, model.channel, limit))
        right[name] = np.einsum("su,asuy->auy", belief, emissions).max(1).sum(1)
    # Readings stay as they are where merging them would help by less than the bonus.
    assert (right["coarsen"] >= right["withhold"] - merging.RAW_BONUS).all()


@pytest.mark.parametrize(
    ("label", "value"),
    [("coarsen", "value"), pytest.param("withhold", "withhold by value", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("seed", range(5))
def test_value_kernels_cost_no_more_than_label_kernels(seed, label, value):
    model, belief, limit = some_case(seed, 0.3)
    cost = {}
    for name in (label, value):
        emissions = emitted(jnp.asarray(model.channel), compiled(name)(belief, model.channel, limit))
        cost[name] = sum(
            probability * min(50 * (1 - one.sum(0).max()), float(bumpy(one)))
            for probability, one in posteriors(belief, emissions)
        )
    assert cost[value] <= cost[label] + 1e-9


@eqx.filter_jit
def look(process, beliefs):
    return jax.vmap(lambda belief: process.emissions(process.public(belief, jnp.zeros(()))))(beliefs)


@pytest.mark.parametrize("enforce", [pytest.param("withhold", marks=pytest.mark.slow), "coarsen"])
def test_all_histories_of_a_small_problem(enforce):
    """Every history of up to four releases, by the process's own rule: its probability and its belief."""
    model = random_model(3, sensors=2, secrets=3, useful=2, symbols=3)
    model = type(model).from_json({**model.to_json(), "prior": [[0.2, 0.15], [0.1, 0.2], [0.2, 0.15]]})
    for limit in (0.4, 0.65, 0.9):
        process = Process.of(Task(model, Confidence(limit), enforcement=named_enforcement(enforce)))
        beliefs, weights = np.array([model.prior]), [1.0]
        for depth in range(1, 5):
            # In pieces of one size, so that it is compiled once.
            padded = np.concatenate([beliefs, np.repeat([model.prior], -len(beliefs) % 64, axis=0)])
            emissions = np.concatenate([look(process, jnp.asarray(piece)) for piece in padded.reshape(-1, 64, 3, 2)])
            after = [
                (weight * probability, one)
                for weight, belief, law in zip(weights, beliefs, emissions[: len(beliefs)], strict=True)
                for probability, one in posteriors(belief, law)
            ]
            weights, beliefs = [weight for weight, _ in after], np.array([one for _, one in after])
            assert beliefs.sum(2).max() < limit
            # For each of the 2^depth sequences of sensors, the probabilities of all histories add up to one.
            assert sum(weights) == pytest.approx(2**depth)
        assert len(beliefs) >= 2**4


def test_a_sensor_that_cannot_move_the_belief_is_not_allowed():
    # It tells everything at once, so nothing of it may be told at a bound just above the prior ...
    process = Process.of(Task(tells_both(), Confidence(0.5 + 1e-10), enforcement=Withhold()))
    assert process.init(jax.random.key(0)).public.allowed.tolist() == [False, True]
    # ... while a sensor that says nothing of the secret is sent as it is, whatever the bound.
    process = Process.of(Task(tells_useful(), Confidence(0.6), enforcement=Withhold()))
    public = process.init(jax.random.key(0)).public
    assert public.allowed.tolist() == [True, True]
    assert public.kernels is not None
    assert np.allclose(public.kernels[:, 0], 1, atol=1e-6)
    assert float(lookahead_costs(process, public)[0]) == pytest.approx(1.0, abs=1e-4)


def test_nothing_is_released_a_hair_below_the_bound():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.8), enforcement=Coarsen()))
    belief = jnp.array([[0.4, 0.4 - NEAREST / 2], [0.1, 0.1 + NEAREST / 2]])
    assert process.public(belief, jnp.zeros(())).allowed.tolist() == [False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "enforce"), [(synthetic, "coarsen"), (tells_both, "withhold")])
def test_contract(model, enforce):
    check_process(Process.of(Task(model(), Confidence(0.7), enforcement=named_enforcement(enforce), horizon=10)))


@eqx.filter_jit
def random_play(process, keys):
    act = RandomSensor(jnp.asarray(2.0)).act
    play = jax.vmap(lambda key: rollout(process, act, key, process.init(key), 6)[1])
    return play(keys)


@pytest.mark.slow
def test_bounds_below_one_half():
    model = random_model(0, secrets=3, symbols=4)
    model = replace(model, prior=np.full((3, 2), 1 / 6))
    for limit in (0.34, 0.4, 0.5):
        process = Process.of(Task(model, Confidence(limit), enforcement=Coarsen(), horizon=6))
        moments = random_play(process, jax.random.split(jax.random.key(0), 64))
        belief = np.asarray(moments.after.belief)
        assert belief.sum(3).max() < limit
        assert belief[:, -1].sum(1).max(1).mean() > 0.36
