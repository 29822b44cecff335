"""The contract of the process, one test per case."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.errors import InputError
from reticent.policy.contracts import check_process
from reticent.problem.bound import Confidence, Information, Unbounded
from reticent.problem.enforcement import Mask, PaperCost, default_enforcement, named_enforcement
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, tells_both, tells_nothing, tells_useful, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate

PRICES = Objective(time_cost=1.0, error_penalty=50.0)


def start(model, bound, enforcement=None, **kwargs):
    enforcement = enforcement or named_enforcement(default_enforcement(bound).name, violation_cost=30.0)
    process = Process.of(Task(model, bound, PRICES, enforcement, **kwargs))
    return process, process.init(jax.random.key(3))


def step(process, state, action, seed=0):
    return process.step(jax.random.key(seed), state, jnp.array(action))


def test_stop_costs_the_chance_of_a_wrong_guess_and_terminates():
    process, state = start(two_binary_sensors(), Confidence(0.9))
    after = step(process, state, process.sensors)
    assert after.cost == pytest.approx(25.0)
    assert after.terminated
    assert not after.truncated
    assert not after.violated
    assert np.array_equal(after.state.public.belief, state.public.belief)


def test_a_release_costs_time_and_moves_the_belief_by_bayes():
    process, state = start(two_binary_sensors(), Confidence(0.9))
    after = step(process, state, 1)
    joint = np.asarray(state.public.belief) * two_binary_sensors().channel[1, :, :, int(after.symbol)]
    assert after.cost == pytest.approx(1.0)
    assert not after.terminated
    assert np.allclose(after.state.public.belief, joint / joint.sum())
    assert after.state.step == 1


def test_entering_the_forbidden_region_is_charged_on_entry_and_ends_the_episode():
    process, state = start(tells_both(), Confidence(0.9))
    after = step(process, state, 0)
    assert after.violated
    assert after.terminated
    assert after.cost == pytest.approx(31.0)


def test_the_forbidden_region_is_closed():
    process, _ = start(two_binary_sensors(), Confidence(0.75))
    assert process.crossed(jnp.array([[0.375, 0.375], [0.125, 0.125]]), jnp.zeros(()))
    assert not process.crossed(jnp.array([[0.37, 0.375], [0.13, 0.125]]), jnp.zeros(()))


def test_a_mask_on_confidence_forbids_what_may_enter():
    # Sensor 0 of P1 can bring the confidence in a secret to .37 / (.37 + .18) = .67, sensor 1 only to about .53.
    process = Process.of(Task(two_binary_sensors(), Confidence(0.6), enforcement=Mask()))
    state = process.init(jax.random.key(0))
    assert state.public.allowed.tolist() == [False, True, True]
    records = simulate(process, lambda key, public: jnp.argmax(public.allowed), 500, seed=0)
    assert not records.violated.any()
    assert np.isfinite(records.cost).all()


def test_no_bound_above_one():
    process, state = start(tells_both(), Unbounded())
    after = step(process, state, 0)
    assert not after.violated
    assert not after.terminated


def test_the_mask_forbids_what_would_reach_the_limit():
    # The sensor tells the secret: exactly one bit.
    process, state = start(tells_both(), Information(1.0))
    assert state.public.allowed.tolist() == [False, True]
    process, state = start(tells_both(), Information(1.01))
    assert state.public.allowed.tolist() == [True, True]
    after = step(process, state, 0)
    assert after.state.public.spent_bits == pytest.approx(1.0)
    assert not after.violated
    assert not after.terminated


def test_a_sensor_that_says_nothing_of_the_secret_is_always_allowed():
    process, state = start(tells_useful(), Information(1e-6))
    assert step(process, state, 0).state.public.allowed.tolist() == [True, True]


def test_truncation_is_not_termination():
    process, state = start(tells_nothing(), Confidence(0.9), horizon=2)
    first = step(process, state, 0)
    assert not first.truncated
    second = step(process, first.state, 0)
    assert second.truncated
    assert not second.terminated
    assert second.cost == pytest.approx(1.0)
    stopped = step(process, first.state, process.sensors)
    assert stopped.terminated
    assert not stopped.truncated


def test_the_printed_confidence_cost_is_charged_only_on_the_next_release():
    process, state = start(tells_both(), Confidence(0.9), enforcement=PaperCost(30.0))
    first = step(process, state, 0)
    assert first.violated
    assert not first.terminated
    assert first.cost == pytest.approx(1.0)
    assert step(process, first.state, 0).cost == pytest.approx(30.0)
    assert step(process, first.state, process.sensors).cost == pytest.approx(0.0)


def test_the_printed_information_cost_is_charged_on_crossing_and_nothing_is_masked():
    process, state = start(tells_both(), Information(0.5), enforcement=PaperCost(30.0))
    assert state.public.allowed.all()
    after = step(process, state, 0)
    assert after.violated
    assert not after.terminated
    assert after.cost == pytest.approx(31.0)


def test_readings_follow_the_channel_of_the_hidden_pair():
    process, state = start(two_binary_sensors(), Unbounded())
    keys = jax.random.split(jax.random.key(0), 20_000)
    symbols = jax.vmap(lambda key: process.step(key, state, jnp.array(0)).symbol)(keys)
    chance = two_binary_sensors().channel[0, int(state.secret), int(state.useful), 1]
    # Four standard errors of a share over 20 000 draws are at most 0.0142.
    assert abs(float(symbols.mean()) - chance) < 0.0142


def test_an_episode_can_start_at_any_public_state_with_a_given_secret():
    process, _ = start(two_binary_sensors(), Information(0.5))
    belief, secret = jnp.array([[0.1, 0.3], [0.5, 0.1]]), jnp.array(0)
    public = process.public(belief, jnp.array(0.499))
    keys = jax.random.split(jax.random.key(0), 20_000)
    states = jax.vmap(lambda key: process.resume(key, public, secret))(keys)
    assert np.array_equal(states.public.belief[0], belief)
    assert states.public.allowed[0].tolist() == [False, False, True]
    assert not states.step.any()
    assert not states.secret.any()
    # U given the secret is 1 with chance .3 / .4; four standard errors of a share over 20 000 draws are .0122.
    assert abs(float(states.useful.mean()) - 0.75) < 0.0122


@pytest.mark.parametrize("enforce", ["penalty", "withhold"])
def test_sensors_may_follow_another_channel_than_the_believed_one(enforce):
    process, state = start(two_binary_sensors(), Confidence(0.7), enforcement=named_enforcement(enforce))
    channel = two_binary_sensors().channel
    for seed in range(5):
        plain, same = (step(p, state, 0, seed) for p in (process, process.with_true_channel(channel)))
        assert jax.tree.all(jax.tree.map(np.array_equal, plain, same))
    always_one = process.with_true_channel(np.zeros_like(channel) + np.array([0.0, 1.0])[None, None, None])
    after = step(always_one, state, 1)
    joint = np.asarray(state.public.belief) * channel[1, :, :, 1]
    assert after.symbol == 1
    assert np.allclose(after.state.public.belief, joint / joint.sum())


def test_a_true_channel_that_the_model_cannot_account_for_is_refused():
    process, _ = start(tells_both(), Confidence(0.9))
    with pytest.raises(InputError, match="impossible"):
        process.with_true_channel(np.full((1, 2, 2, 4), 0.25))
    with pytest.raises(InputError, match="shape"):
        process.with_true_channel(np.full((1, 2, 2, 2), 0.5))
    with pytest.raises(InputError, match="sum to one"):
        process.with_true_channel(np.full((1, 2, 2, 4), 0.2))


def test_symbols_of_probability_zero_are_never_drawn():
    process = Process.of(Task(tells_both(), Unbounded()))
    states = jax.vmap(process.init)(jax.random.split(jax.random.key(0), 2_000))
    after = jax.vmap(process.step, (0, 0, None))(jax.random.split(jax.random.key(1), 2_000), states, jnp.array(0))
    assert np.array_equal(after.symbol, 2 * states.secret + states.useful)


@pytest.mark.parametrize("bound", [Confidence(0.8), Information(0.7)], ids=["confidence", "information"])
@pytest.mark.parametrize(
    "model", [two_binary_sensors, *(pytest.param(model, marks=pytest.mark.slow) for model in (synthetic, tells_both))]
)
@pytest.mark.parametrize("enforce", ["usual", "paper"])
def test_contract(model, bound, enforce):
    enforcement = default_enforcement(bound) if enforce == "usual" else PaperCost(30.0)
    check_process(Process.of(Task(model(), bound, PRICES, enforcement, horizon=10)))
