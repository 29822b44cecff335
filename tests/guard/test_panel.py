"""The promise for a panel: no symbol that can be sent brings any provider, or any mixture of them, to the bound."""

import itertools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent as rt
from reticent.belief.prospect import Joint
from reticent.guard import safety as safety_module
from reticent.guard.panel import Panel, told
from reticent.guard.rules import TaskRules
from reticent.guard.safety import Safety
from reticent.policy.policy import NEVER, RandomSensor
from reticent.process.process import Process
from reticent.process.rollout import begin, rollout, simulate
from reticent.solve.actor_critic import Recipe, train
from tests.problems import random_model

LIMIT = 0.7
KEEPING = {"coarsen": rt.Coarsen(), "withhold": rt.Withhold(), "mask": rt.Mask()}


def model_with_panel(seed, others=3, **sizes):
    """Providers with other channels, and a last one with another prior, too."""
    model = random_model(seed, **{"symbols": 4, **sizes})
    rng = np.random.default_rng([seed, 7])
    channels = [
        0.5 * model.channel + 0.5 * random_model(seed + 1 + p, **{"symbols": 4, **sizes}).channel for p in range(others)
    ]
    uniform = np.full(model.prior.shape, 1 / model.prior.size)
    own = rt.Model(**{**_names(model), "prior": uniform, "channel": model.channel})
    prior = uniform * rng.uniform(0.7, 1.3, uniform.shape)
    panel = [{"channel": channel} for channel in channels]
    panel[-1]["prior"] = prior / prior.sum()
    return own.with_panel(panel)


def _names(model):
    return {axis: getattr(model, axis) for axis in ("secrets", "useful", "sensors", "symbols")}


def by_hand(model, history):
    """P(s | sent) of a provider with this model, from scratch: `history` holds (sensor, chances) of what was sent."""
    weight = model.prior.copy()
    for sensor, chances in history:
        weight = weight * np.array([[law @ chances for law in row] for row in model.channel[sensor]])
    return weight.sum(1) / weight.sum()


def everything_sent(rules, depth):
    """Every history of at most so many releases that can come about: (history, public state) by numpy alone."""
    reached = [((), rules.public(rules.prior, 0.0, rules.panel.prior))]
    for _ in range(depth):
        following = []
        for history, public in reached:
            for sensor in np.flatnonzero(public.allowed[:-1]):
                for chances in _symbols(rules, public, sensor):
                    likelihood = rules.channel[sensor] @ chances
                    others = public.panel * (rules.panel.channel[:, sensor] @ chances)
                    belief = public.belief * likelihood
                    if belief.sum() > 1e-9:
                        others = others / others.sum((1, 2), keepdims=True)
                        after = rules.public(belief / belief.sum(), 0.0, others)
                        following.append(((*history, (sensor, chances)), after))
        yield from following
        reached = following


def _symbols(rules, public, sensor):
    readings = rules.channel.shape[-1]
    if public.kernels is None:
        return np.eye(readings)
    kernel = public.kernels[sensor]
    return [*(np.eye(readings) * kernel[0][:, None]), *kernel[1:]]


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_history_brings_any_provider_or_mixture_to_the_bound(name, seed):
    model = model_with_panel(seed, symbols=3)
    rules = TaskRules(rt.Task(model, rt.Confidence(LIMIT), enforcement=KEEPING[name]))
    providers, rng, seen = (model, *model.panel), np.random.default_rng(seed), 0
    for history, public in everything_sent(rules, 2):
        beliefs = [by_hand(each, history) for each in providers]
        assert np.max(beliefs) < LIMIT
        # What the rules follow is what each provider computes from scratch.
        assert np.allclose(beliefs[1:], public.panel.sum(-1), atol=1e-12)
        weights = rng.dirichlet(np.ones(len(providers)))
        assert mixture(providers, weights, history).max() < LIMIT
        seen += 1
    assert seen > 2


def mixture(providers, weights, history):
    """P(s | sent) of a provider who mixes the models so."""
    joint = np.zeros(len(providers[0].secrets))
    for model, weight in zip(providers, weights, strict=True):
        one = model.prior.copy()
        for sensor, chances in history:
            one = one * (model.channel[sensor] @ chances)
        joint = joint + weight * one.sum(1)
    return joint / joint.sum()


def test_without_its_rows_the_panel_is_brought_over_the_bound():
    """The test above can fail: the guard of the model's provider alone does not keep the panel's beliefs down."""
    model = model_with_panel(0, symbols=3)
    alone = TaskRules(rt.Task(model.with_panel([]), rt.Confidence(LIMIT), enforcement=rt.Coarsen()))
    public, highest = alone.public(alone.prior, 0.0), 0.0
    for sensor, each in itertools.product(np.flatnonzero(public.allowed[:-1]), model.panel):
        highest = max(
            highest, *(by_hand(each, [(sensor, own)]).max() for own in _symbols(alone, public, sensor) if own.any())
        )
    assert highest > LIMIT


@given(seed=st.integers(0, 2**31 - 1))
def test_numpy_and_jax_find_the_same_rows(seed):
    model = model_with_panel(seed % 1000, secrets=3)
    beliefs = np.random.default_rng(seed).dirichlet(np.full(6, 3.0), 4).reshape(4, 3, 2)
    limits = np.full(3, min(0.95, beliefs.sum(-1).max() + 0.05))
    rows = [
        Safety.of(
            Joint(asarray(beliefs[0]), asarray(model.channel)),
            asarray(limits),
            told(Panel.of(model.panel, asarray), asarray(beliefs[1:])),
        ).rows
        for asarray in (np.asarray, jnp.asarray)
    ]
    assert all(np.allclose(one, other, atol=1e-14) for one, other in zip(*rows, strict=True))
    assert rows[0].value.shape == (12,)
    assert np.allclose(rows[0].event.sum(-1), rows[0].value[:, None])


@pytest.mark.parametrize(
    "solver", [lambda cost, *_: jnp.zeros_like(cost).at[:, 0].set(1.0), lambda cost, *_: jnp.full_like(cost, jnp.nan)]
)
def test_whoever_solves_every_provider_is_checked(solver, monkeypatch):
    monkeypatch.setattr(safety_module, "cheapest_kernels", solver)
    model = model_with_panel(0)
    beliefs = [each.prior for each in (model, *model.panel)]
    panel = told(Panel.of(model.panel), np.stack(beliefs[1:]))
    safety = Safety.of(Joint(beliefs[0], model.channel), np.full(2, LIMIT), panel)
    kernels = rt.Coarsen().kernels(safety)
    for provider, belief in zip((model, *model.panel), beliefs, strict=True):
        for sensor, option in itertools.product(range(2), range(3)):
            chances = kernels[sensor, option]
            sent = np.eye(4) * chances[:, None] if option == 0 else chances[None]
            for each in sent[sent.any(1)]:
                joint = belief * (provider.channel[sensor] @ each)
                assert joint.sum(1).max() < LIMIT * joint.sum()


@pytest.mark.parametrize("name", KEEPING)
def test_a_simulation_counts_every_provider(name):
    process = Process.of(rt.Task(model_with_panel(3), rt.Confidence(LIMIT), enforcement=KEEPING[name], horizon=6))
    records = simulate(process, RandomSensor(jnp.asarray(NEVER)).act, 64, seed=0)
    assert not np.asarray(records.violated).any()
    assert (records.highest_confidence < LIMIT).all()


def test_the_highest_confidence_is_that_of_the_surest_provider():
    model = model_with_panel(3)
    deaf = rt.Model(**{**_names(model), "prior": model.prior, "channel": np.full(model.channel.shape, 0.25)})
    task = rt.Task(deaf.with_panel(model.panel), rt.Confidence(LIMIT), enforcement=rt.Mask(), horizon=2)
    records = simulate(Process.of(task), RandomSensor(jnp.asarray(NEVER)).act, 64, seed=0)
    assert (records.belief == deaf.prior).all()
    assert (records.highest_confidence > deaf.largest_secret_prior).mean() > 0.9


def test_a_crossing_of_any_provider_is_a_violation():
    process = Process.of(rt.Task(model_with_panel(0), rt.Confidence(LIMIT), enforcement=rt.Mask()))
    assert process.panel is not None
    sure = jnp.asarray(process.panel.prior).at[1].set(jnp.asarray([[0.45, 0.45], [0.05, 0.05]]))
    prior = jnp.asarray(process.prior)
    assert not process.crossed_by_any(prior, 0.0, process.panel.prior)
    assert process.crossed_by_any(prior, 0.0, sure)
    public = process.public(prior, jnp.zeros(()), sure)
    assert not public.allowed[:-1].any()
    assert process.most_used(public) == pytest.approx(0.9 / LIMIT)


def test_the_beliefs_of_the_panel_are_followed_in_compiled_play():
    model = model_with_panel(5)
    process = Process.of(rt.Task(model, rt.Confidence(LIMIT), enforcement=rt.Coarsen(), horizon=5))
    state = begin(process, jax.random.split(jax.random.key(0), 8))
    play = jax.vmap(lambda key, state: rollout(process, RandomSensor(jnp.asarray(NEVER)).act, key, state, 5)[1])
    moments = play(jax.random.split(jax.random.key(1), 8), state)
    rules = TaskRules(process.task)
    for lane, step in itertools.product(range(8), range(5)):
        before, after = _at(moments.public, lane, step), _at(moments.after, lane, step)
        public = rules.public(before.belief, before.spent_bits, before.panel)
        assert np.allclose(np.asarray(public.kernels), np.asarray(before.kernels), atol=1e-7)
        assert (public.allowed == before.allowed).all()
        assert np.allclose(np.asarray(after.panel).sum((1, 2)), 1)


def _at(public, lane, step):
    return jax.tree.map(lambda x: np.asarray(x[lane, step]), public)


def test_other_numbers_of_a_panel_do_not_compile_again():
    traced = []

    @eqx.filter_jit
    def kernels(process):
        traced.append(None)
        return process.public(process.prior, jnp.zeros(()), process.panel.prior).kernels

    for seed in (0, 1):
        kernels(Process.of(rt.Task(model_with_panel(seed), rt.Confidence(LIMIT), enforcement=rt.Coarsen())))
    assert len(traced) == 1


@pytest.mark.slow
def test_a_policy_learns_with_a_panel():
    process = Process.of(rt.Task(model_with_panel(2), rt.Confidence(LIMIT), enforcement=rt.Coarsen(), horizon=5))
    recipe = Recipe(environments=8, rollout=4, epochs=1, minibatches=1, width=8)
    policy = train(process, 64, seed=0, recipe=recipe)
    assert rt.Solution.of(process.task, policy).evaluate(64).violation_rate.value == 0
    rt.check_policy(process, policy)


def test_what_follows_one_belief_only_refuses_a_panel():
    task = rt.Task(model_with_panel(0), rt.Confidence(LIMIT), enforcement=rt.Mask())
    with pytest.raises(rt.InputError, match="The lattice follows one belief"):
        rt.solve(task, "lattice")
    with pytest.raises(rt.InputError, match="whose beliefs are not followed here"):
        rt.solve(replace(task, enforcement=rt.Coarsen()), "tree")
