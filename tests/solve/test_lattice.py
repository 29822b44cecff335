import math
from functools import cache
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.belief.information import secret_information_bits
from reticent.errors import InputError
from reticent.problem.bound import Confidence, Information, Unbounded
from reticent.problem.enforcement import Mask, PaperCost, named_enforcement
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, tells_both, tells_nothing, tells_useful, two_binary_sensors
from reticent.problem.task import Task
from reticent.solve.lattice import solve_lattice
from tests.problems import random_model


def brute_force(task, horizon):
    """Optimal cost over all histories, by recursion without folding, pruning or arrays of nodes."""
    model, prices = task.model, task.objective
    confidence = task.bound.posterior_limit(len(model.secrets))
    violation_cost = getattr(task.enforcement, "cost", math.inf)

    @cache
    def information(history):
        belief = joint(history)
        return np.asarray(secret_information_bits(jnp.asarray(belief / belief.sum()), jnp.asarray(model.channel)))

    @cache
    def joint(history):
        weight = model.prior
        for a, z in history:
            weight = weight * model.channel[a, :, :, z]
        return weight

    def value(history, left, spent):
        belief = joint(history) / joint(history).sum()
        best = prices.error_penalty * (1 - belief.sum(0).max())
        for a in range(len(model.sensors)) if left else ():
            bits = 0.0 if confidence else information(history)[a]
            if not confidence and spent + bits >= task.bound.bits:
                continue
            cost = prices.time_cost
            for z in range(len(model.symbols)):
                chance = (belief * model.channel[a, :, :, z]).sum()
                if chance > 0:
                    after = belief * model.channel[a, :, :, z] / chance
                    if confidence and after.sum(1).max() >= confidence:
                        cost += chance * violation_cost
                    else:
                        cost += chance * value((*history, (a, z)), left - 1, spent + bits)
            best = min(best, cost)
        return best

    return value((), horizon, 0.0)


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        *((Confidence(x), v) for x, v in ((0.6, 12.883022), (0.7, 7.740456), (0.8, 7.342248), (0.9, 7.197961))),
        (Unbounded(), 7.189754),
    ],
)
@pytest.mark.parametrize("violation_cost", [50.0, math.inf])
def test_reference_values_of_p1(bound, value, violation_cost):
    task = Task(two_binary_sensors(), bound, enforcement=named_enforcement("penalty", violation_cost))
    bracket = solve_lattice(task)
    assert bracket.gap < 1e-6
    assert bracket.lower == pytest.approx(value, abs=1e-6)
    assert bracket.upper == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("violation_cost", [4.0, math.inf])
def test_confidence_agrees_with_brute_force(seed, horizon, violation_cost):
    model = random_model(seed, secrets=2 + seed % 2, symbols=2 + seed // 4, sparse=seed % 2 == 1)
    limit = model.largest_secret_prior * 0.7 + 0.3
    task = Task(model, Confidence(limit), Objective(0.3, 20.0), named_enforcement("penalty", violation_cost))
    bracket = solve_lattice(task, horizon=horizon)
    assert bracket.upper == pytest.approx(brute_force(task, horizon), abs=1e-9)
    assert bracket.lower <= bracket.upper


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bits", [0.02, 0.1, 0.4])
def test_information_agrees_with_brute_force(seed, bits):
    task = Task(random_model(seed), Information(bits), Objective(0.3, 20.0))
    assert solve_lattice(task, horizon=3).upper == pytest.approx(brute_force(task, 3), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_brackets_tighten_with_depth_and_contain_each_other(seed):
    task = Task(random_model(seed), Unbounded(), Objective(0.3, 20.0))
    brackets = [solve_lattice(task, horizon=horizon) for horizon in (2, 5, 10)]
    for wide, narrow in pairwise(brackets):
        assert wide.lower <= narrow.lower + 1e-12
        assert narrow.upper <= wide.upper + 1e-12
    assert all(bracket.lower <= bracket.upper for bracket in brackets)


@pytest.mark.parametrize("seed", range(3))
def test_a_looser_bound_never_costs_more(seed):
    model = random_model(seed)
    limits = np.linspace(model.largest_secret_prior + 0.02, 0.99, 5)
    prices = Objective(1.0, 20.0)
    values = [solve_lattice(Task(model, Confidence(float(limit)), prices, Mask())).upper for limit in limits]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(values))


@pytest.mark.parametrize(
    ("model", "value", "first"), [(tells_useful, 1.0, 0), (tells_both, 25.0, 1), (tells_nothing, 25.0, 1)]
)
def test_known_answers(model, value, first):
    bracket = solve_lattice(Task(model(), Confidence(0.9)))
    assert (bracket.lower, bracket.upper, bracket.first) == (pytest.approx(value), pytest.approx(value), first)


def test_what_does_not_fit_is_refused_with_a_sentence():
    with pytest.raises(InputError, match="too many for the lattice"):
        solve_lattice(Task(synthetic(), Confidence(0.9)))
    with pytest.raises(InputError, match="need more than 100 nodes"):
        solve_lattice(Task(two_binary_sensors(), Unbounded()), horizon=50, max_nodes=100)
    with pytest.raises(InputError, match="not by 'paper'"):
        solve_lattice(Task(two_binary_sensors(), Confidence(0.9), enforcement=PaperCost()))


def test_a_node_budget_still_gives_a_valid_bracket():
    wide = solve_lattice(Task(two_binary_sensors(), Unbounded()), max_nodes=200)
    assert wide.lower <= 7.189754 <= wide.upper
    assert wide.gap > 1e-3
