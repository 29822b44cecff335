"""The numpy runtime: the decisions of the compiled policy, and the same promise."""

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
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.belief.information import entropy_bits
from reticent.belief.prospect import Joint
from reticent.errors import InputError
from reticent.gateway import decisions
from reticent.gateway.decisions import Decision, Standing
from reticent.gateway.emitter import ImpossibleReading
from reticent.gateway.policies import Lookahead as NumpyLookahead
from reticent.gateway.runtime import Runtime
from reticent.guard import safety as guarantee
from reticent.guard.safety import Safety
from reticent.guard.tangent import gradients
from reticent.guard.value_kernels import ValueKernels
from reticent.policy.lookahead import Lookahead
from reticent.policy.saved import policy_file, policy_of
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import AnswerOnly, Coarsen, Guard, Mask, PaperCost, Withhold, named_enforcement
from reticent.problem.merging import BLEND
from reticent.problem.synthetic import synthetic, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.actor_critic import train
from reticent.solve.value_iteration import Settings, value_iteration
from tests.gateway.compiled import play
from tests.gateway.following import NEAR, Tally, follow, safety_at, worth
from tests.problems import random_model
from tests.untrained import actor, lookahead

MASKED = Task(synthetic(), Information(1.0), enforcement=Mask())
# Short episodes: longer ones linger near the bound.
WITHHELD = Task(synthetic(), Confidence(0.8), enforcement=Withhold(), horizon=4)
COARSENED = Task(synthetic(), Confidence(0.8), enforcement=Coarsen(), horizon=4)
RNG = np.random.default_rng(0)
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


def runtime_of(file):
    return Runtime(file, "0" * 64)


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
        (MASKED, "rich", 12_000, (SAME, 0.0, 0.0)),
        (MASKED, "described", 4_000, (SAME, 0.0, 0.0)),
        (WITHHELD, "rich", 75, (LABELS, KERNELS)),
        (COARSENED, "rich", 75, (LABELS, KERNELS)),
        (COARSENED, "label", 30, (LABELS, KERNELS)),
        (COARSENED, "value", 10, (VALUES, math.inf, VALUED)),
        (WITHHELD, "value", 10, (VALUES, math.inf, VALUED)),
    ],
)
def test_a_million_decisions_are_those_of_the_compiled_policy(task, kind, steps, bounds, tmp_path):
    """In 64 lanes: 1,024,000 steps of actors under a mask, 9,600 under a guarantee; 1,920 of lookahead, 1,280
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


def tiny_task(seed, sparse, enforce):
    model = random_model(seed, 2, 3, 2, 4, sparse)
    rng = np.random.default_rng(seed)
    if enforce == "mask":
        return Task(model, Information(float(rng.uniform(0.02, 1.5))), enforcement=Mask(), horizon=6)
    start = model.largest_secret_prior
    limit = start + (1 - start) * float(rng.choice([1e-7, 0.01, 0.3, 0.9]))
    return Task(model, Confidence(limit), enforcement=named_enforcement(enforce), horizon=6)


def worst_reading(runtime, standing, sensor, rng):
    """Half of the time the possible reading that says most about the secret, else any, possible or not."""
    law = standing.belief[None] * np.moveaxis(runtime.task.model.channel[sensor], -1, 0)
    if rng.random() < 0.5:
        return int(rng.integers(len(law)))
    mass = np.maximum(law.sum((1, 2)), 1e-300)
    return int((law.sum(2).max(1) / mass).argmax())


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    sparse=st.booleans(),
    case=st.sampled_from(["mask", "withhold", "coarsen", "withhold by value", "coarsen by value"]),
)
def test_the_bound_holds_whatever_is_read_in_all_sessions(seed, sparse, case):
    enforce, _, by_value = case.partition(" by ")
    task = tiny_task(seed, sparse, enforce)
    # The actor stops only where it must; a value far too high goes on for long, too.
    file = lookahead(task, "value", seed) if by_value else actor(task, "rich", seed, stops=-1e3)
    runtime, rng = runtime_of(file), np.random.default_rng(seed)
    standing, limit = runtime.first(), task.bound.number
    releases = 0
    for _ in range(3):
        while (decision := runtime.decide(standing, rng)).sensor is not None:
            try:
                sent, after = runtime.release(
                    standing, decision, worst_reading(runtime, standing, decision.sensor, rng), rng
                )
            except ImpossibleReading:
                break
            assert after.belief.sum() == pytest.approx(1, abs=1e-12)
            assert (after.spent_bits if enforce == "mask" else runtime.confidence(after)) < limit
            assert np.array_equal(runtime.heard(standing, decision.sensor, sent.symbol, sent.chances), after.belief)
            grown = after.spent_bits - standing.spent_bits
            if enforce == "mask":
                assert grown == pytest.approx(runtime.information_bits(standing, decision.sensor), abs=1e-12)
            assert 0 <= grown <= float(entropy_bits(standing.belief.sum(1))) + 1e-12
            assert after.step == standing.step + 1
            standing, releases = after, releases + 1
        standing = runtime.next_session(standing)
        assert (standing.spent_bits if enforce == "mask" else runtime.confidence(standing)) < limit
    assert releases <= 3 * task.horizon


@pytest.mark.parametrize("solver", ["not a number", "everything raw", "random", "negative"])
@pytest.mark.parametrize("enforce", ["withhold", "coarsen"])
def test_the_promise_does_not_depend_on_the_solver(solver, enforce, monkeypatch):
    noise = np.random.default_rng(0)
    broken = {
        "not a number": lambda cost, *_: np.full(cost.shape, np.nan),
        "everything raw": lambda cost, *_: np.eye(cost.shape[1])[:1].T[None] * np.ones(cost.shape),
        "random": lambda cost, *_: noise.random(cost.shape),
        "negative": lambda cost, *_: noise.normal(size=cost.shape),
    }
    monkeypatch.setattr(guarantee, "cheapest_kernels", broken[solver])
    for seed in range(3):
        runtime, rng = runtime_of(actor(tiny_task(seed, False, enforce), seed=seed, stops=-1e3)), RNG
        standing = runtime.first()
        while (decision := runtime.decide(standing, rng)).sensor is not None:
            reading = worst_reading(runtime, standing, decision.sensor, rng)
            _, standing = runtime.release(standing, decision, reading, rng)
            assert runtime.confidence(standing) < runtime.bound.number


def test_a_reading_that_cannot_be_is_an_error():
    model = random_model(0, 1, 2, 2, 3)
    channel = np.array(model.channel)
    channel[..., 2] = 0
    model = replace(model, channel=channel / channel.sum(-1, keepdims=True))
    for task in (Task(model, Information(5.0)), Task(model, Confidence(0.99), enforcement=Coarsen())):
        runtime = runtime_of(actor(task, stops=-1e3))
        decision = runtime.decide(runtime.first(), RNG)
        with pytest.raises(ImpossibleReading, match="Sensor 'a0' gave 'z2', which has probability zero"):
            runtime.release(runtime.first(), decision, 2, RNG)
        with pytest.raises(ImpossibleReading, match="'z2'"):
            runtime.heard(runtime.first(), 0, 2, np.array([0.0, 0.0, 1.0]))
        with pytest.raises(ImpossibleReading, match="'z1'"):
            runtime.heard(runtime.first(), 0, 1, np.zeros(3))


def test_what_makes_no_sense_is_refused():
    runtime = runtime_of(actor(COARSENED, stops=-1e3))
    first = runtime.first()
    decision = runtime.decide(first, RNG)
    assert decision.sensor is not None
    for reading in (-1, 50):
        with pytest.raises(InputError, match=f"no reading {reading}: the model has 50"):
            runtime.release(first, decision, reading, RNG)
    with pytest.raises(InputError, match="to stop"):
        runtime.release(first, Decision(None, None, 0.0), 0, RNG)
    # A forged decision that sends everything as it is: the last gate holds.
    kernel = np.zeros_like(decision.kernel)
    kernel[0] = 1.0
    worst = worst_reading(runtime, first, decision.sensor, np.random.default_rng(1))
    with pytest.raises(InputError, match="not made for this standing"):
        runtime.release(first, Decision(decision.sensor, kernel, decision.bits), worst, RNG)
    full = Standing(first.belief, 0.999, 0, 0)
    with pytest.raises(InputError, match="not made for this standing"):
        runtime_of(actor(MASKED)).release(full, Decision(0, None, 0.5), 3, RNG)


def test_the_horizon_and_the_bound_stop():
    runtime = runtime_of(actor(replace(MASKED, horizon=3), stops=-1e3))
    first = runtime.first()
    assert runtime.decide(first, RNG).sensor is not None
    assert runtime.decide(replace(first, step=3), RNG).sensor is None
    assert runtime.decide(replace(first, spent_bits=0.9999), RNG).sensor is None
    near = np.array([[0.4, 0.4 - 5e-10], [0.1, 0.1 + 5e-10]])
    runtime = runtime_of(actor(Task(two_binary_sensors(), Confidence(0.8), enforcement=Coarsen()), stops=-1e3))
    assert runtime.decide(Standing(near, 0.0, 0, 0), RNG).sensor is None


def test_what_is_sent_is_drawn_from_the_kernel_and_its_surprise_is_exact():
    runtime = runtime_of(actor(COARSENED, stops=-1e3))
    first = runtime.first()
    decision = runtime.decide(first, RNG)
    kernel, sensor = decision.kernel, decision.sensor
    assert kernel is not None
    law = np.einsum("su,suz->z", first.belief, COARSENED.model.channel[sensor])
    sent = np.concatenate([law * kernel[0], kernel[1:] @ law])
    mean = -(sent * np.log(np.maximum(sent, 1e-300))).sum()
    variance = (sent * (np.log(np.maximum(sent, 1e-300)) + mean) ** 2).sum()
    mixed = int(np.abs(kernel[0] - 0.5).argmin())
    rng, found = np.random.default_rng(5), []
    for _ in range(4000):
        what, _ = runtime.release(first, decision, mixed, rng)
        found.append(what.symbol)
        assert what.surprise.nats == pytest.approx(-math.log(sent[what.symbol]))
        assert what.surprise.mean == pytest.approx(mean)
        assert what.surprise.variance == pytest.approx(variance)
    shares = np.bincount(found, minlength=53)[[mixed, 50, 51, 52]] / len(found)
    # Four standard errors of a share from 4,000 draws.
    assert np.allclose(shares, kernel[:, mixed], atol=0.032)


def test_an_actor_that_draws_follows_its_softmax():
    runtime = runtime_of(actor(MASKED, greedy=False))
    first, rng = runtime.first(), np.random.default_rng(6)
    chosen = [runtime.decide(first, rng).sensor for _ in range(4000)]
    scores = np.array(runtime.policy.scores(runtime.public(first)))
    wanted = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    found = [chosen.count(action) / 4000 for action in (0, 1, 2, None)]
    assert np.allclose(found, wanted, atol=0.032)


def test_sessions_budget_and_names():
    runtime = runtime_of(lookahead(COARSENED, "value"))
    first = runtime.first()
    assert runtime.budget_left(first) == 1.0
    assert runtime.confidence(first) == pytest.approx(1 / 3)
    belief = np.array([[0.5, 0.1, 0.0], [0.1, 0.1, 0.0], [0.1, 0.0, 0.1]])
    later = runtime.next_session(Standing(belief, 0.7, 2, 5))
    assert np.allclose(later.belief, belief.sum(1, keepdims=True) * np.ones((3, 3)) / 3)
    assert (later.spent_bits, later.session, later.step) == (0.7, 3, 0)
    assert runtime.budget_left(later) == pytest.approx((0.8 - 0.6) / (0.8 - 1 / 3))
    model = COARSENED.model
    both = [f"{what}: {name}" for what in ("declare", "go on") for name in model.useful]
    assert runtime.symbols == (*model.symbols, *both)
    assert runtime_of(actor(WITHHELD)).symbols == (*model.symbols, "withheld")
    assert runtime_of(actor(COARSENED)).symbols == (*model.symbols, *(f"merged: {name}" for name in model.useful))
    masked = runtime_of(actor(MASKED))
    assert masked.symbols == model.symbols
    assert masked.budget_left(Standing(belief, 0.25, 0, 1)) == 0.75


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (
            Task(synthetic(), Confidence(0.8)),
            "by 'penalty': .* may be crossed, .* only what is never crossed. .*--enforce coarsen",
        ),
        (Task(synthetic(), Confidence(0.8), enforcement=PaperCost()), "by 'paper'"),
        (Task(synthetic(), Information(1.0), enforcement=PaperCost()), "by 'paper': .*--enforce mask"),
        (Task(synthetic(), ExpectedInformation(0.5)), "kept on average over episodes, .* only what is never crossed"),
        (Task(synthetic(), Confidence(0.8), enforcement=AnswerOnly()), "sends an answer in place of readings"),
        (Task(synthetic(), Unbounded()), "has no bound"),
    ],
)
def test_policies_whose_bound_could_be_crossed_are_refused(task, sentence, tmp_path):
    path = tmp_path / "policy.safetensors"
    actor(task).save(path)
    with pytest.raises(InputError, match=sentence):
        Runtime.load(path)
    if "has no bound" in sentence:
        runtime = Runtime.load(path, allow_unbounded=True)
        assert runtime.decide(Standing(np.full((3, 3), 1 / 9), 50.0, 0, 0), RNG) is not None
        assert runtime.budget_left(Standing(np.diag([0.9, 0.1, 0.0]), 50.0, 0, 9)) == 1.0
    else:
        with pytest.raises(InputError, match=sentence):
            Runtime.load(path, allow_unbounded=True)


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "policy.safetensors"
    other = replace(lookahead(MASKED), kind="oracle")
    other.save(path)
    with pytest.raises(InputError, match="kind 'oracle'"):
        Runtime.load(path)
    with pytest.raises(InputError, match="do not describe a network"):
        runtime_of(replace(actor(MASKED), settings={"inputs": "tea leaves"}))
    with pytest.raises(InputError, match="holds arrays"):
        runtime_of(replace(actor(MASKED, "belief"), settings=actor(MASKED).settings))
    with pytest.raises(InputError, match="asks for value kernels"):
        runtime_of(lookahead(MASKED, "value"))
    broken = actor(MASKED)
    broken.arrays["layers.0.bias"][0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        runtime_of(broken)


def test_the_digest_is_that_of_the_file_that_was_loaded(tmp_path, monkeypatch):
    path = tmp_path / "policy.safetensors"
    actor(MASKED).save(path)
    load = PolicyFile.load

    def swapped(path):
        file = load(path)
        actor(MASKED, seed=1).save(path)
        return file

    monkeypatch.setattr(PolicyFile, "load", swapped)
    with pytest.raises(InputError, match="replaced while it was read"):
        Runtime.load(path)


LIGHT = """
import sys, hashlib, numpy as np
from reticent.gateway.runtime import Runtime
runtime, rng = Runtime.load(sys.argv[1]), np.random.default_rng(0)
standing = runtime.first()
for _ in range(5):
    decision = runtime.decide(standing, rng)
    if decision.sensor is not None:
        standing = runtime.release(standing, decision, 3, rng)[1]
heavy = {name.partition(".")[0] for name in sys.modules} & {"jax", "scipy", "polars", "sklearn", "equinox", "optax"}
kilobytes = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")]
digest = hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()
print(standing.step, sorted(heavy), digest == runtime.digest, *kilobytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.parametrize(
    ("file", "numba", "most"),
    [
        (actor(MASKED, stops=-1e3, width=128), True, 60_000),
        (lookahead(COARSENED, "value", width=64), False, 60_000),
        # numba brings a compiler, and itself imports scipy where that is installed.
        (lookahead(COARSENED, "value", width=64), True, 200_000),
    ],
)
def test_a_gateway_is_light(file, numba, most, tmp_path):
    file.save(tmp_path / "policy.safetensors")
    without = "" if numba else 'import sys; sys.modules["numba"] = None'
    words = [sys.executable, "-c", without + LIGHT, str(tmp_path / "policy.safetensors")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert int(printed[0]) > 0
    assert printed[1] == ("['scipy']" if most > 60_000 else "[]")
    assert printed[2] == "True"
    assert int(printed[3]) < most
