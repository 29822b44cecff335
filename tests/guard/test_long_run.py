"""Kernels priced for the long run."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reticent as rt
from reticent.belief.prospect import Joint
from reticent.guard.long_run import LongRunKernels, long_run_value
from reticent.guard.safety import Safety
from reticent.guard.score import score, tangents
from reticent.problem.enforcement import Coarsen, Guard, Withhold
from tests.problems import random_model


@given(seed=st.integers(0, 2**31 - 1))
def test_a_score_lies_above_its_tangents_and_meets_them_at_the_anchor(seed):
    rng = np.random.default_rng(seed)
    joint = rng.random((3, 2, 4))
    anchors = rng.dirichlet(np.ones(3), (5, 2)).swapaxes(1, 2)
    assert (tangents(anchors, joint) <= score(joint)[None] + 1e-12).all()
    own = (joint / joint.sum(0))[..., 0][None]
    assert np.allclose(tangents(own, joint)[0, :, 0], score(joint)[:, 0], atol=1e-12)


def value_of(kernels, readings: Joint, omega, kappa):
    """What the kernels minimise, symbol by symbol, from scratch."""
    found = np.zeros(len(kernels))
    for sensor, kernel in enumerate(kernels):
        joint = readings.belief[:, :, None] * readings.channel[sensor]
        symbols = [*(kernel[0] * joint).transpose(2, 0, 1), *np.einsum("mz,suz->msu", kernel[1:], joint)]
        for each in (symbol for symbol in symbols if symbol.sum() > 0):
            secret, useful, law = each.sum(1), each.sum(0), each.sum()
            found[sensor] += kappa * (secret**2).sum() / law - omega * (useful**2).sum() / law - useful.max()
    return found


def safety_of(seed) -> Safety:
    model = random_model(seed, sensors=2, secrets=2, useful=2, symbols=5)
    return Safety.of(Joint(np.full((2, 2), 0.25), model.channel), np.full(2, 0.7))


@pytest.mark.parametrize("guard", [Coarsen(), Withhold()], ids=lambda guard: guard.name)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**31 - 1))
def test_kernels_are_safe_and_no_worse_than_silence_and_the_first_program(guard: Guard, seed):
    safety, rule = safety_of(seed), LongRunKernels(1.0, 0.5)
    kernels = guard.with_rule(rule).kernels(safety)
    assert safety.holds(kernels).all()
    found = value_of(kernels, safety.readings, 1.0, 0.5)
    first = guard.with_rule(LongRunKernels(1.0, 0.5, refinements=0)).kernels(safety)
    assert (found <= value_of(first, safety.readings, 1.0, 0.5) + 1e-9).all()
    # Merging everything is one of the solutions; a tangent below phi_S may mislead the program by what it lies below.
    silence = value_of(safety.merge_everything(kernels.shape[1]), safety.readings, 1.0, 0.0)
    plain = guard.with_rule(LongRunKernels(1.0, 0.0)).kernels(safety)
    assert (value_of(plain, safety.readings, 1.0, 0.0) <= silence + 0.01 + 1e-9).all()


def test_without_weights_they_are_label_kernels_but_for_one_more_symbol():
    safety = safety_of(3)
    plain, weighed = Coarsen().kernels(safety), Coarsen(LongRunKernels(0.0, 0.0)).kernels(safety)
    # Both are optimal for the same objective: the symbol that declares nothing is no better than one that does.
    assert np.allclose(value_of(plain, safety.readings, 0, 0), value_of(weighed, safety.readings, 0, 0), atol=0.01)


def test_numpy_and_jax_find_the_same():
    safety = safety_of(5)
    readings = Joint(jnp.asarray(safety.readings.belief), jnp.asarray(safety.readings.channel))
    guard = Coarsen(LongRunKernels(2.0, 1.0))
    theirs = guard.kernels(Safety.of(readings, jnp.full(2, 0.7)))
    assert np.allclose(theirs, guard.kernels(safety), atol=1e-9)


def test_the_value_falls_with_what_is_known_of_u_and_rises_with_what_is_known_of_s():
    knows, not_yet = np.array([[0.9], [0.1]]), np.array([[0.5], [0.5]])
    assert long_run_value(1.0, 1.0, not_yet, knows) < long_run_value(1.0, 1.0, not_yet, not_yet)
    assert long_run_value(1.0, 1.0, knows, not_yet) > long_run_value(1.0, 1.0, not_yet, not_yet)


@pytest.mark.slow
def test_it_beats_one_step_lookahead_over_a_day():
    """On a chain of three useful values; intervals of both means must not touch."""
    stay = np.full((3, 3), 0.025)
    np.fill_diagonal(stay, 0.95)
    model = rt.Model(
        channel=np.random.default_rng(0).dirichlet(np.full(6, 0.8), (3, 2, 3)),
        secrets=["s0", "s1"],
        useful=["u0", "u1", "u2"],
        sensors=["a0", "a1", "a2"],
        transition={"secret": [[0.98, 0.02], [0.02, 0.98]], "useful": stay},
    )
    task = rt.Monitoring(model, rt.Confidence(0.8), horizon=240)
    ours = rt.solve(task, "long-run", days=8).evaluate(64)
    assert ours.cost.high < rt.solve(task, "lookahead").evaluate(64).cost.low
    assert max(ours.highest_filter, ours.highest_smoother, ours.highest_prediction) < 0.8
