"""The decisions of the gateway: those of the compiled policy, made alone or together."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.belief.prospect import Joint
from reticent.gateway import decisions
from reticent.gateway.decisions import Standing
from reticent.gateway.policies import Lookahead as NumpyLookahead
from reticent.guard.safety import Safety
from reticent.guard.tangent import gradients
from reticent.guard.value_kernels import ValueKernels
from reticent.policy.lookahead import Lookahead
from reticent.policy.saved import policy_file, policy_of
from reticent.problem.bound import Confidence, Information, Unbounded
from reticent.problem.enforcement import Coarsen, Guard, PaperCost, named_enforcement
from reticent.problem.merging import BLEND
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.actor_critic import train
from reticent.solve.value_iteration import Settings, value_iteration
from tests.gateway.cases import COARSENED, MASKED, RNG, WITHHELD, runtime_of
from tests.gateway.compiled import play
from tests.gateway.following import NEAR, Tally, follow, safety_at, worth
from tests.problems import random_model
from tests.untrained import actor, lookahead

# Where a merged symbol is hardly ever sent, rounding decides whether a little of every reading is blended into it.
KERNELS = BLEND + 1e-8


class Worth(NamedTuple):
    """How far apart what kernels are worth may be: as a probability, or as a share of the error penalty."""

    apart: float
    near: float


# Label kernels are exact, so what they are worth differs by no more than what may be blended in.
LABELS = Worth(KERNELS, KERNELS)
# Priced in 32 bits. Solutions are vertices: the last digit of a price decides which of two that cost the same is taken,
# and so where the next tangents touch. Neither side is better in the mean.
VALUES, VALUED = Worth(1e-4, 1e-4), 3e-4
SAME = Worth(0.0, 0.0)


def check(tally, worth, kernels, scores=1e-5):
    """The same choices but for ties and, near the bound, one in a hundred; and how far apart the rest may be.

    Kernels are safe and worth the same at every step, near the bound too; label kernels are also the same ones.
    """
    print(tally)
    assert tally.wrong == tally.unsafe == 0
    assert tally.ties <= 1e-4 * tally.steps
    assert tally.other_near <= 0.01 * tally.near
    assert tally.near < 0.5 * tally.steps
    assert tally.belief < 1e-9
    assert tally.bits < 1e-9
    assert tally.worth <= worth.apart
    assert tally.worth_near <= worth.near
    assert abs(tally.better) <= 0.1 * worth.apart
    assert tally.kernels <= kernels
    assert tally.scores <= scores


def test_decisions_under_a_mask_are_those_of_the_compiled_policy():
    file = actor(MASKED, stops=-1.0)
    check(follow(runtime_of(file), play(file, 16, 200)), SAME, 0.0, 0.0)


def test_what_is_decided_at_a_belief_is_remembered(monkeypatch):
    runtime, calls = runtime_of(actor(COARSENED, stops=-1.0)), []
    act = runtime.policy.act
    monkeypatch.setattr(runtime.policy, "act", lambda *given: calls.append(given) or act(*given))
    first = runtime.decide(runtime.first(), RNG)
    assert runtime.decide(replace(runtime.first(), belief=runtime.first().belief.copy()), RNG) is first
    assert len(calls) == 1
    # Elsewhere it is another decision, and where the session is over none.
    other = replace(runtime.first(), belief=beliefs_of(runtime, 1)[0])
    assert runtime.decide(other, RNG) is not first
    assert runtime.decide(replace(runtime.first(), step=runtime.task.horizon), RNG).sensor is None


def test_no_more_decisions_are_remembered_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(decisions, "REMEMBERED", 3)
    runtime = runtime_of(actor(MASKED, stops=-1.0))
    at = [replace(runtime.first(), belief=belief) for belief in beliefs_of(runtime, 5)]
    made = runtime.decide_all(at, RNG)
    assert [one is other for one, other in zip(runtime.decide_all(at[2:], RNG), made[2:], strict=True)] == [True] * 3
    assert runtime.decide(at[0], RNG) is not made[0]


def beliefs_of(runtime, count, seed=0):
    """Beliefs that keep some way to the bound."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        belief = rng.dirichlet(np.ones(runtime.rules.prior.size)).reshape(runtime.rules.prior.shape)
        if runtime.confidence(Standing(belief, 0.0, 0, 0)) < 0.79:
            found.append(belief)
    return found


@pytest.mark.parametrize("kind", ["belief", "described", "rich", "label", "value"])
@pytest.mark.parametrize("enforce", ["mask", "withhold", "coarsen"])
def test_decisions_that_are_made_together_are_those_that_are_made_alone(kind, enforce):
    """The same sensor, information and rule; of value kernels, which are priced in 32 bits, a rule that is as safe."""
    bound = Information(1.0) if enforce == "mask" else Confidence(0.8)
    task = Task(synthetic(), bound, enforcement=named_enforcement(enforce))
    if kind in ("label", "value"):
        file = lookahead(task, kind if enforce != "mask" else "label", seed=3)
    else:
        file = actor(task, kind, stops=-1.0)
    together, alone = runtime_of(file), runtime_of(file)
    # More than are made at once, some twice; and one at the horizon.
    spent = np.random.default_rng(1).uniform(0, 0.5, 70)
    at = [Standing(belief, float(bits), 0, 1) for belief, bits in zip(beliefs_of(together, 70), spent, strict=True)]
    at += [at[3], replace(at[0], step=together.task.horizon)]
    made = together.decide_all(at, RNG)
    assert made[-1].sensor is None
    assert made[-2] is made[3]
    found = [alone.decide(standing, RNG) for standing in at]
    assert [one.sensor for one in made] == [other.sensor for other in found]
    assert len({one.sensor for one in made}) > 1
    for standing, one, other in zip(at, made, found, strict=True):
        assert (one.kernel is None) == (other.kernel is None)
        if together.policy.rules.enforcement.kernel_choice == "value":
            assert one.sensor is None or safe(together, standing, one)
            continue
        assert one.bits == pytest.approx(other.bits, abs=1e-6)
        assert one.kernel is None or np.abs(one.kernel - other.kernel).max() < KERNELS


def safe(runtime, standing, decision):
    """Whether no symbol of the decision's rule crosses the bound."""
    kernels = runtime.public(standing).kernels.copy()
    kernels[decision.sensor] = decision.kernel
    return safety_at(runtime, standing.belief).holds(kernels)[decision.sensor]


def test_decisions_by_a_value_without_a_bound_are_those_of_the_compiled_policy():
    file = lookahead(Task(synthetic(), Unbounded(), horizon=4))
    check(follow(runtime_of(file), play(file, 16, 16)), SAME, 0.0, 0.0)


def test_decisions_under_a_guarantee_are_those_of_the_compiled_policy():
    file = actor(COARSENED, stops=-1.0)
    tally = follow(runtime_of(file), play(file, 16, 16, seed=7))
    check(tally, LABELS, KERNELS, 0.0)
    assert tally.near > 0


@cache
def trained():
    """An actor and a value, after a little learning."""
    agent = policy_file(train(Process.of(MASKED), steps=20_000), MASKED, {})
    settings = Settings(rounds=8, groups=1, lanes=32, rollout=4)
    value = value_iteration(Process.of(COARSENED), settings=settings)
    return agent, policy_file(value, COARSENED, {})


# Value kernels are priced in 32 bits: kernels of the same worth may differ, what they are worth may not.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "kind", "steps", "bounds"),
    [
        (MASKED, "rich", 4_000, (SAME, 0.0, 0.0)),
        (MASKED, "described", 2_000, (SAME, 0.0, 0.0)),
        (WITHHELD, "rich", 75, (LABELS, KERNELS)),
        (COARSENED, "rich", 75, (LABELS, KERNELS)),
        (COARSENED, "label", 30, (LABELS, KERNELS)),
        (COARSENED, "value", 10, (VALUES, math.inf, VALUED)),
        (WITHHELD, "value", 10, (VALUES, math.inf, VALUED)),
    ],
)
def test_many_decisions_are_those_of_the_compiled_policy(task, kind, steps, bounds, tmp_path):
    """In 64 lanes: 384,000 steps of actors under a mask, 9,600 under a guarantee; 1,920 of lookahead, 1,280
    with value kernels."""
    agent, value = trained()
    if kind == "described":
        file = actor(task, "described", seed=1, stops=-1.0, width=128)
    elif kind == "rich":
        file = replace(agent, made_for=task)
    else:
        file = replace(value, made_for=task, settings={**value.settings, "kernels": kind})
    file.save(tmp_path / "policy.safetensors")
    np.savez(tmp_path / "play.npz", **play(file, 64, steps, seed=7)._asdict())
    words = [sys.executable, "-m", "tests.gateway.following", tmp_path / "policy.safetensors", tmp_path / "play.npz"]
    where = {"cwd": Path(__file__).parents[2], "env": {**os.environ, "OPENBLAS_NUM_THREADS": "1"}}
    found = subprocess.run(words, **where, check=True, capture_output=True, text=True).stdout
    check(Tally(**json.loads(found)), *bounds)


def test_tangent_planes_are_the_gradients():
    # "paper" has the value of a guarantee, and no kernels that would have to be compiled.
    task = Task(synthetic(), Confidence(0.8), enforcement=PaperCost())
    file = lookahead(task, seed=4)
    _, policy = policy_of(file)
    assert isinstance(policy, Lookahead)
    ours, theirs = NumpyLookahead(file), policy.value.continuation
    beliefs = np.random.default_rng(1).dirichlet(np.full(9, 0.4), 200)
    # Where a pair and the doubt about U are below what the network tells apart.
    beliefs[0] = [0.2, 0, 0, 0.5, 0, 0, 0.3 - 1e-7, 1e-7, 0]
    beliefs = beliefs.reshape(-1, 3, 3)
    one, other = ValueKernels(ours.continuation, 50.0), ValueKernels(theirs, jnp.asarray(50.0))
    for name in ("_weighted_continuation", "_weighted_value"):
        wanted = np.asarray(gradients(getattr(other, name), jnp.asarray(beliefs)))
        # In 32 bits; the gradient of a logarithm is large where a pair is hardly possible.
        most = np.abs(wanted).max((1, 2), keepdims=True)
        assert np.allclose(gradients(getattr(one, name), beliefs), wanted, rtol=1e-4, atol=1e-5 * most)
    assert np.allclose(ours.continuation(beliefs), theirs(jnp.asarray(beliefs)), rtol=1e-5)


def test_kernels_are_those_of_the_compiled_guarantee():
    model, limit = random_model(5, 3, 3, 2, 8), 0.7
    channel, limits = jnp.asarray(model.channel), np.full(3, limit)
    compiled = jax.jit(jax.vmap(lambda b: Coarsen().kernels(Safety.of(Joint(b, channel), jnp.asarray(limits)))))
    beliefs = np.random.default_rng(2).dirichlet(np.ones(6), 400).reshape(-1, 3, 2)
    beliefs = beliefs[beliefs.sum(2).max(1) < limit - NEAR]
    assert len(beliefs) > 300
    for belief, kernels in zip(beliefs, np.asarray(compiled(beliefs)), strict=True):
        assert np.abs(Coarsen().kernels(Safety.of(Joint(belief, model.channel), limits)) - kernels).max() < KERNELS


@pytest.mark.parametrize("enforce", ["coarsen", "withhold"])
def test_value_kernels_are_worth_what_the_compiled_ones_are(enforce):
    """As safe, and of the same expected cost to go; which of several with that cost they are may differ."""
    model, limit = random_model(5, 2, 2, 2, 4), 0.7
    file = lookahead(Task(model, Confidence(limit), enforcement=named_enforcement(enforce)), "value", seed=1)
    runtime, (process, _) = runtime_of(file), policy_of(file)
    beliefs = np.random.default_rng(2).dirichlet(np.ones(4), 200).reshape(-1, 2, 2)
    beliefs = beliefs[beliefs.sum(2).max(1) < limit - NEAR]
    assert len(beliefs) > 60
    theirs, ours = process.enforcement, runtime.rules.enforcement
    assert isinstance(theirs, Guard)
    assert isinstance(ours, Guard)
    assert isinstance(theirs.rule, ValueKernels)
    assert isinstance(ours.rule, ValueKernels)
    channel, limits = jnp.asarray(model.channel), jnp.full(2, limit)
    compiled = jax.jit(jax.vmap(lambda b: theirs.kernels(Safety.of(Joint(b, channel), limits))))
    apart, better = [], []
    for belief, kernels in zip(beliefs, np.asarray(compiled(beliefs)), strict=True):
        safety = safety_at(runtime, belief)
        found, label = ours.kernels(safety), named_enforcement(enforce).kernels(safety)
        assert safety.holds(found).all()
        assert safety.holds(kernels).all()
        value = worth(runtime, safety, found)
        apart.append(value - worth(runtime, safety, kernels))
        label = np.pad(label, ((0, 0), (0, found.shape[1] - label.shape[1]), (0, 0)))
        better.append(worth(runtime, safety, label) - value)
    # Not those of the labels, which would be as safe.
    assert np.max(better) > 0.01
    # The last digit of a price may decide between two vertices, and so where the next tangents touch: rarely, by little
    # of what is gained over labels, and for neither side.
    assert np.mean(np.abs(apart) > 1e-6) < 0.02
    assert np.max(np.abs(apart)) < 0.02 * np.max(better)
    assert abs(np.mean(apart)) < 1e-5
