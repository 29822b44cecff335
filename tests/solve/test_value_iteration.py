"""Value iteration on processes whose optimal cost is known, and beside the other solvers."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.evaluate.evaluation import evaluate
from reticent.policy.features import lookahead_costs
from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.lookahead import ValueFunction, lookahead_policy, q_values, value_network
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Confidence, Information, Unbounded
from reticent.problem.enforcement import Coarsen, Penalty, named_enforcement
from reticent.problem.model import Model
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, tells_both, tells_nothing, tells_useful, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate
from reticent.solve.certificate import upper_bound
from reticent.solve.checkpoint import load_checkpoint, save_checkpoint
from reticent.solve.lattice import solve_lattice
from reticent.solve.tree import solve_tree
from reticent.solve.value_iteration import Settings, initialise, iterate, value_iteration

SMALL = Settings(rounds=60, groups=2, lanes=64, rollout=4, width=32, learning_rate=1e-2)
TINY = Settings(rounds=4, groups=2, lanes=8, rollout=4, minibatches=4, width=8)


def cost(process, settings=SMALL, episodes=8_192):
    policy = value_iteration(process, 0, settings)
    return evaluate(policy.process, policy, episodes, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "enforce", "value"),
    [
        (tells_useful, "penalty", 1.0),
        (tells_both, "penalty", 25.0),
        # Merged by useful value, the sensor that tells both tells only the useful one.
        (tells_both, "coarsen", 1.0),
        # Withheld, it can say nothing.
        (tells_both, "withhold", 25.0),
    ],
)
def test_the_obvious_policy_is_found(model, enforce, value):
    process = Process.of(Task(model(), Confidence(0.9), enforcement=named_enforcement(enforce)))
    evaluation = cost(process, replace(SMALL, rounds=30))
    # Merged symbols may be mistaken with a chance of at most 1e-5.
    assert evaluation.cost.value == pytest.approx(value, abs=1e-2)
    assert evaluation.violation_rate.value == 0


HARDLY_MOVES = Model(
    prior=np.array([[0.46, 0.08], [0.065, 0.395]]),
    channel=np.array(
        [[[[0.01, 0.74, 0.03, 0.22], [0.16, 0.66, 0.13, 0.05]], [[0.02, 0.02, 0.95, 0.01], [0.56, 0.06, 0.23, 0.15]]]]
    ),
    secrets=("s0", "s1"),
    useful=("u0", "u1"),
    sensors=("a0",),
    symbols=("z0", "z1", "z2", "z3"),
)


@pytest.mark.slow
def test_it_does_not_settle_before_what_the_policy_uses_has():
    # Merged symbols hardly move the belief near the bound: a value that is too low there repeats them for ever.
    process = Process.of(Task(HARDLY_MOVES, Confidence(0.68), enforcement=Coarsen()))
    bracket = solve_tree(process, 10)
    assert cost(process, Settings(rounds=80, groups=2, lanes=64)).cost.low <= 1.02 * bracket.upper


@pytest.mark.parametrize(
    ("bound", "value"),
    [pytest.param(Confidence(0.6), 12.883022, marks=pytest.mark.slow), (Unbounded(), 7.189754)],
)
def test_value_iteration_comes_near_the_exact_value_of_p1(bound, value):
    evaluation = cost(Process.of(Task(two_binary_sensors(), bound)), episodes=40_000)
    # Within 1 % of the optimum, and not below it by more than the interval allows.
    assert evaluation.cost.low <= value * 1.01
    assert evaluation.cost.high >= value


@pytest.mark.slow
def test_value_iteration_under_the_information_mask():
    task = Task(two_binary_sensors(), Information(0.1), Objective(error_penalty=20.0), horizon=8)
    exact = solve_lattice(task, horizon=8).upper
    evaluation = cost(Process.of(task), episodes=40_000)
    assert evaluation.violation_rate.value == 0
    assert evaluation.cost.low <= exact * 1.01
    assert evaluation.cost.high >= exact


@pytest.mark.parametrize(
    "enforce",
    [
        "penalty",
        "coarsen",
        pytest.param("paper", marks=pytest.mark.slow),
        pytest.param("withhold", marks=pytest.mark.slow),
    ],
)
def test_the_outlook_is_what_step_does(enforce):
    """Costs and beliefs of the one-step model, against sampled steps from the same state."""
    task = Task(two_binary_sensors(), Confidence(0.64), enforcement=named_enforcement(enforce, 30.0))
    process = Process.of(task)
    state = process.init(jax.random.key(0))
    look = process.outlook(state.public)
    assert np.allclose(look.law.sum(1), 1)
    keys = jax.random.split(jax.random.key(1), 4_000)
    pairs = jax.vmap(process.init)(jax.random.split(jax.random.key(2), 4_000))
    for a in range(2):
        after = jax.vmap(process.step, (0, 0, None))(keys, pairs, jnp.array(a))
        assert np.allclose(after.cost, look.cost[a][after.symbol])
        assert np.allclose(after.terminated, look.ended[a][after.symbol])
        assert np.allclose(after.state.public.belief, look.belief[a][after.symbol])
        assert np.allclose(after.state.public.spent_bits, look.spent_bits[a])
        shares = np.bincount(after.symbol, minlength=look.law.shape[1]) / 4_000
        # Four standard errors of a share over 4000 draws are at most 0.032.
        assert np.abs(shares - look.law[a]).max() < 0.032


def test_costs_of_going_on_by_enumeration():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.64), enforcement=Penalty(30.0)))
    policy = lookahead_policy(process, value_network(process, 8, jax.random.key(1)), "label")
    public = process.init(jax.random.key(0)).public
    model = two_binary_sensors()
    for a, found in enumerate(q_values(process, policy.value, public)):
        expected = 1.0
        for z in range(2):
            joint = model.prior * model.channel[a, :, :, z]
            after = joint / joint.sum()
            follows = 30.0 if after.sum(1).max() >= 0.64 else float(policy.value(jnp.asarray(after), jnp.zeros(())))
            expected += joint.sum() * follows
        assert float(found) == pytest.approx(expected)


def test_a_value_that_pays_all_that_one_release_leaves_is_one_step_lookahead():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.64), enforcement=Penalty(30.0)))
    network = value_network(process, 8, jax.random.key(1))
    network = eqx.tree_at(lambda n: n.layers[-1].bias, network, jnp.full(2, 1e3, jnp.float32))
    for belief in ([[0.25, 0.25], [0.25, 0.25]], [[0.3, 0.3], [0.3, 0.1]], [[0.05, 0.55], [0.1, 0.3]]):
        public = process.public(jnp.asarray(belief), jnp.zeros(()))
        found = ValueFunction(process, network).continuation(public.belief, public.spent_bits)
        # The value is computed in 32 bits.
        assert float(found) == pytest.approx(float(lookahead_costs(process, public).min()), rel=1e-5)


def test_where_nothing_can_be_crossed_the_continuation_is_learned_as_a_whole():
    process = Process.of(Task(two_binary_sensors(), Unbounded(), enforcement=Penalty(30.0)))
    network = value_network(process, 8, jax.random.key(1))
    network = eqx.tree_at(lambda n: n.layers[-1].bias, network, jnp.asarray([0.125], jnp.float32))
    network = eqx.tree_at(lambda n: n.layers[-1].weight, network, jnp.zeros((1, 8), jnp.float32))
    found = ValueFunction(process, network).continuation(process.prior)
    assert float(found) == 0.125 * float(process.objective.error_penalty)


@pytest.mark.parametrize("kernels", ["label", pytest.param("value", marks=pytest.mark.slow)])
def test_iteration_is_deterministic_and_goes_on_where_it_stopped(kernels, tmp_path):
    process = Process.of(Task(two_binary_sensors(), Confidence(0.65), enforcement=Coarsen()))
    settings = replace(TINY, kernels=kernels)
    one, other = (value_iteration(process, seed, settings) for seed in (0, 1))
    fresh, path = initialise(process, settings, 0), tmp_path / "p.partial"
    states = [state for state, _ in iterate(process, settings, fresh)]
    assert jax.tree.all(jax.tree.map(np.array_equal, one.value.network, states[-1].average))
    assert not jax.tree.all(jax.tree.map(np.array_equal, one.value.network, other.value.network))
    save_checkpoint(path, states[2], {"seed": 0})
    resumed = load_checkpoint(path, fresh, {"seed": 0})
    assert resumed is not None
    last = [state for state, _ in iterate(process, settings, resumed)][-1]
    assert jax.tree.all(jax.tree.map(np.array_equal, last.average, states[-1].average))


def test_iteration_stops_on_the_residual():
    process = Process.of(Task(tells_nothing(), Confidence(0.9)))
    rounds = []
    value_iteration(process, 0, replace(SMALL, tolerance=5.0, rounds=200), lambda done, _: rounds.append(done))
    assert 10 <= len(rounds) < 200


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "most"), [(Confidence(0.99), 16.12), (Unbounded(), 9.26)])
def test_value_iteration_on_the_synthetic_problem(bound, most):
    process = Process.of(Task(synthetic(), bound))
    policy = value_iteration(process, 0, Settings(rounds=100))
    # With the control variate, 8192 episodes have a standard error of about 0.006.
    assert upper_bound(process, policy, 8192, 1, policy.value).value <= most


@pytest.mark.slow
@pytest.mark.parametrize("enforce", ["withhold", "coarsen"])
def test_half_a_million_episodes_never_cross_the_bound(enforce):
    """One million in all; `highest_confidence` is of every step of every episode."""
    process = Process.of(Task(synthetic(), Confidence(0.7), enforcement=named_enforcement(enforce), horizon=12))
    policy = OneStepLookahead(process, jnp.asarray(2.0)) if enforce == "withhold" else RandomSensor(jnp.asarray(0.55))
    records = simulate(process, policy.act, 500_000, seed=0)
    assert not records.violated.any()
    assert records.highest_confidence.max() < 0.7
    assert records.highest_confidence.max() > 0.69
