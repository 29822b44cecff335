"""The promise about a secret that moves: no moment, past, present or future, is ever told up to the bound."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reticent.belief.chain import forecast, smoothed
from reticent.belief.prospect import Joint
from reticent.errors import InputError
from reticent.guard import safety as safety_module
from reticent.guard.chain import chain_of, present_only
from reticent.guard.moments import correct, first_moment, pass_time, row_values, rows_of
from reticent.guard.ongoing import MonitoringRules
from reticent.guard.quadratic import QuadraticKernels
from reticent.guard.rows import present_rows
from reticent.problem.bound import Confidence, Information, Unbounded
from reticent.problem.enforcement import Coarsen, Mask, Penalty, Withhold
from reticent.problem.monitoring import Monitoring
from tests.problems import random_chain, random_model
from tests.sent import highest_posteriors

RULES = {"coarsen": Coarsen(), "withhold": Withhold(), "quadratic": Coarsen(QuadraticKernels())}
INDEPENDENT = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.7, 0.3], [0.3, 0.7]]}


def play(rules, steps, seed, eager=0.9, spent=None):
    """Likelihoods [T S U] of what was sent, and the public state after each step; a random allowed sensor speaks.

    The bits of each step are appended to `spent`."""
    rng, public, told, states = np.random.default_rng(seed), rules.begin(), [], []
    for _ in range(steps):
        moments, likelihood, bits = public.moments, np.ones(rules.prior.shape), 0.0
        sensors = np.flatnonzero(public.allowed[:-1])
        if len(sensors) and rng.random() < eager:
            sensor = rng.choice(sensors)
            emissions = rules.emissions(public)[sensor]
            law = np.einsum("su,suy->y", public.belief, emissions)
            symbol = rng.choice(len(law), p=law / law.sum())
            likelihood, bits = emissions[:, :, symbol], rules.prospect(public).bits_of(sensor)
            moments, possible = rules.sent(public, sensor, symbol)
            assert possible
        told.append(likelihood)
        public = rules.later(public, moments, bits)
        if spent is not None:
            spent.append(bits)
        states.append(public)
    return np.array(told), states


def some_rules(seed, enforcement, secrets=2, slots=None, stays=0.7):
    """A random chain, half of them with channels that cannot say some things, under some bound that it allows."""
    rng = np.random.default_rng(seed)
    model = random_chain(seed, stays, sensors=2, secrets=secrets, useful=2, symbols=4, sparse=seed % 2 == 0)
    try:
        bound = Confidence(rng.uniform(0.5, 0.95))
        return MonitoringRules(Monitoring(model, bound, enforcement=enforcement, slots=slots))
    except InputError:
        assume(False)
        raise


QUICK = [("coarsen", 2), ("withhold", 2), ("quadratic", 3)]
SLOW = [(name, secrets) for name in RULES for secrets in (2, 3) if (name, secrets) not in QUICK]


@pytest.mark.parametrize(("name", "secrets"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**31 - 1), stays=st.sampled_from([0.0, 0.5, 0.9]))
def test_no_moment_is_told_up_to_the_bound(name, secrets, seed, stays):
    rules = some_rules(seed, RULES[name], secrets, stays=stays)
    told, _ = play(rules, 25, seed)
    assert max(highest_posteriors(Modelled(rules), told)) < rules.bound.number


class Modelled:
    """The model of some rules as `highest_posteriors` asks for it."""

    def __init__(self, rules):
        self.prior, self.secrets = rules.prior, range(len(rules.prior))
        self.dynamics = rules.chain.transition.reshape(rules.prior.shape * 2)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**31 - 1), slots=st.integers(1, 3))
def test_few_slots_cost_silence_and_never_the_promise(seed, slots):
    rules = some_rules(seed, Coarsen(), slots=slots)
    told, states = play(rules, 40, seed, eager=1.0)
    assert max(highest_posteriors(Modelled(rules), told)) < rules.bound.number
    missing = [bool(state.moments.missed.any()) for state in states]
    assert all(not state.allowed[:-1].any() for state, missed in zip(states, missing, strict=True) if missed)


def test_after_silence_something_may_be_sent_again():
    model = replace(random_chain(0, sensors=2, useful=2, symbols=4), prior=np.full((2, 2), 0.25)).moving(INDEPENDENT)
    few = MonitoringRules(Monitoring(model, Confidence(0.8), slots=3))
    told, states = play(few, 300, 0, eager=1.0)
    missed = [bool(state.moments.missed.any()) for state in states]
    assert any(missed)
    assert any(not later and earlier for earlier, later in pairwise(missed))
    assert max(highest_posteriors(model, told)) < 0.8


def test_the_present_alone_keeps_no_promise():
    """What all rows are for: with those of the present only, the same play tells past moments."""
    channel = [[[[0.8, 0.2], [0.7, 0.3]], [[0.3, 0.7], [0.2, 0.8]]]]
    model = replace(random_chain(0, sensors=1), channel=channel, prior=np.full((2, 2), 0.25)).moving(INDEPENDENT)
    rules = MonitoringRules(Monitoring(model, Confidence(0.8)))
    assert max(highest_posteriors(model, play(rules, 60, 0, eager=1.0)[0])) < 0.8
    rules.chain, rules.slots = present_only(model, rules.chain.limits), 0
    found = highest_posteriors(model, play(rules, 60, 0, eager=1.0)[0])
    assert found.filter < 0.8 < found.smoother


def broken_solvers():
    rng = np.random.default_rng(0)
    return {
        "not a number": lambda cost, *_: np.full_like(cost, np.nan),
        "nothing": lambda cost, *_: np.zeros_like(cost),
        "negative": lambda cost, *_: np.full_like(cost, -1.0),
        "all as it is": lambda cost, *_: np.eye(cost.shape[1])[0][None, :, None] + 0 * cost,
        "random": lambda cost, *_: rng.random(cost.shape),
        "label by chance": lambda cost, *_: rng.random(cost.shape) ** 50,
    }


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize("solver", broken_solvers())
def test_the_promise_does_not_depend_on_the_solver(solver, monkeypatch):
    monkeypatch.setattr(safety_module, "cheapest_kernels", broken_solvers()[solver])
    model = replace(random_chain(1, sensors=2, useful=2, symbols=4), prior=np.full((2, 2), 0.25)).moving(INDEPENDENT)
    rules = MonitoringRules(Monitoring(model, Confidence(0.8)))
    assert max(highest_posteriors(model, play(rules, 40, 0, eager=1.0)[0])) < 0.8


def test_rows_are_the_posteriors_of_all_moments():
    model = random_chain(2, stays=0.97, sensors=2, secrets=3, useful=2, symbols=4)
    rules = MonitoringRules(Monitoring(model, Confidence(0.9)))
    told, states = play(rules, 12, 0)
    value, _ = row_values(rules.chain, states[-1].moments)
    future = len(rules.chain.ahead)
    ahead = forecast(states[-1].belief, model.dynamics, future - 1)
    assert np.allclose(value[:3], states[-1].belief.sum(1), atol=1e-13)
    assert np.allclose(value[3 : 3 * future].reshape(-1, 3), ahead.sum(2), atol=1e-13)
    # Nothing is over after so few steps of so slow a chain, so the slots are filled in order.
    assert states[-1].moments.open[:12].all()
    past = value[3 * future :].reshape(-1, 3)[:12]
    assert np.allclose(past, smoothed(model.prior, model.dynamics, told).sum(2), atol=1e-12)


def test_a_moment_is_retired_exactly_when_no_pair_of_now_tells_it():
    model = replace(random_chain(0), prior=np.full((2, 2), 0.25)).moving(INDEPENDENT)
    chain = chain_of(model, np.full(2, 0.8))
    moments, open_for = first_moment(model.prior, 20), []
    for _ in range(30):
        moments = pass_time(chain, moments)
        open_for.append(int(moments.open.sum()))
    # P(S_j = s | S_{j+n} = s) = (1 + .8^n) / 2 is below .8 from n = 3 on: .5^... .756 < .8 < .82.
    assert open_for == [1, 2] + 28 * [2]
    # Each row of the present, the future and the past; two steps ahead the chain still says .82.
    assert len(chain.ahead) == 3


def test_where_nothing_moves_rows_are_those_of_the_static_guarantee():
    model = random_model(4, sensors=3, secrets=3, useful=2, symbols=5)
    limits = np.full(3, 0.9)
    readings = Joint(model.prior, model.channel)
    theirs = present_rows(readings, limits)
    ours = rows_of(present_only(model, limits), first_moment(model.prior, 0), model.channel)
    assert np.allclose(ours.event, theirs.event, rtol=0, atol=1e-15)
    assert np.allclose(ours.law, theirs.law, rtol=0, atol=1e-15)
    assert np.allclose(ours.value, theirs.value, rtol=0, atol=1e-15)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**31 - 1))
def test_a_secret_that_never_moves_has_one_row_for_all_time(seed):
    """Sessions: the secret stays, the useful value is drawn anew."""
    model = random_model(seed, sensors=2, useful=2, symbols=4)
    drawn = np.tile(model.prior.sum(0), (2, 1))
    model = model.moving({"secret": np.eye(2), "useful": drawn})
    assume(model.prior.sum(1).max() < 0.75)
    rules = MonitoringRules(Monitoring(model, Confidence(0.8)))
    assert (len(rules.chain.ahead), rules.slots) == (1, 0)
    assert max(highest_posteriors(model, play(rules, 20, seed)[0])) < 0.8


@pytest.mark.slow
def test_numpy_and_jax_know_the_same():
    model = random_chain(7, sensors=2, secrets=3, useful=2, symbols=4)
    rules = MonitoringRules(Monitoring(model, Confidence(0.85), enforcement=Coarsen(QuadraticKernels())))
    told, states = play(rules, 15, 1)
    theirs = MonitoringRules(Monitoring(model, Confidence(0.85), enforcement=Coarsen(QuadraticKernels())))
    theirs.prior, theirs.channel = jnp.asarray(model.prior), jnp.asarray(model.channel)
    theirs.chain = jax.tree.map(jnp.asarray, rules.chain)
    later = jax.jit(lambda public, moments: theirs.later(public, moments, 0.0))
    public = theirs.begin()
    for t, ours in enumerate(states):
        moments, _ = correct(public.moments, jnp.asarray(told[t]))
        public = later(public, moments)
        assert np.allclose(public.moments.past, ours.moments.past, rtol=0, atol=1e-12)
        assert np.array_equal(public.moments.open, ours.moments.open)
        assert np.array_equal(public.allowed, ours.allowed)
        assert float(public.headroom) == pytest.approx(ours.headroom, abs=1e-12)


@pytest.mark.parametrize(
    ("model", "limit", "sentence"),
    [
        (random_chain(0).moving({"secret": [[0.9, 0.1], [0.02, 0.98]], "useful": np.eye(2)}), 0.8, "the chain itself"),
        (replace(random_chain(0), prior=np.array([[0.4, 0.45], [0.1, 0.05]])).moving(INDEPENDENT), 0.85, "not above"),
    ],
)
def test_models_that_say_too_much_by_themselves_are_refused(model, limit, sentence):
    with pytest.raises(InputError, match=sentence):
        MonitoringRules(Monitoring(model, Confidence(limit)))


def test_a_prior_that_foretells_the_secret_is_refused():
    # U is the next secret: at present nothing is known of S, one step ahead nearly all.
    moves = np.zeros((2, 2, 2, 2))
    for s, u in np.ndindex(2, 2):
        moves[s, u, u] = 0.5
    model = replace(random_chain(0), prior=np.array([[0.48, 0.02], [0.48, 0.02]])).moving(moves)
    with pytest.raises(InputError, match="in 1 steps with probability 0"):
        MonitoringRules(Monitoring(model, Confidence(0.9)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"enforcement": Penalty(3.0)}, "not by 'penalty'"),
        ({"horizon": 0}, "at least one, but is 0"),
        ({"slots": 0}, "at least one, but are 0"),
        ({"window": 5}, "on confidence and the window is 5"),
        ({"bound": Information(0.1)}, "on information and the window is None"),
        ({"bound": Information(0.1), "window": 0}, "at least one, but is 0"),
        ({"enforcement": Mask()}, "not by 'mask'"),
    ],
)
def test_tasks_that_cannot_be_are_refused(change, sentence):
    model = replace(random_chain(0), prior=np.full((2, 2), 0.25))
    with pytest.raises(InputError, match=sentence):
        Monitoring(**{"model": model, "bound": Confidence(0.8), **change})


def test_without_a_bound_readings_are_sent_as_they_are():
    rules = MonitoringRules(Monitoring(random_chain(3), Unbounded()))
    public = rules.begin()
    assert public.kernels is None
    assert public.allowed.all()


@settings(max_examples=8)
@given(seed=st.integers(0, 2**31 - 1), window=st.integers(1, 6))
def test_no_window_says_more_bits_than_the_bound(seed, window):
    model = random_chain(seed, sensors=2, useful=2, symbols=3)
    rules = MonitoringRules(Monitoring(model, Information(0.2), window=window))
    spent = []
    play(rules, 30, seed, eager=1.0, spent=spent)
    assert all(sum(spent[t : t + window]) < 0.2 for t in range(30))
    assert any(spent)
