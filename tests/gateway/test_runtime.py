"""The numpy runtime: what is sent, what is known then, and the promise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.belief.information import entropy_bits
from reticent.errors import InputError
from reticent.gateway.decisions import Decision, Standing
from reticent.gateway.emitter import ImpossibleReading
from reticent.guard import safety as guarantee
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Coarsen, Mask, named_enforcement
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from tests.gateway.cases import COARSENED, MASKED, RNG, WITHHELD, runtime_of
from tests.problems import random_model
from tests.untrained import actor, lookahead


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
    chosen = [runtime.decide(first, rng).sensor for _ in range(1000)]
    scores = np.array(runtime.policy.scores(runtime.public(first)))
    wanted = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    found = [chosen.count(action) / 1000 for action in (0, 1, 2, None)]
    # Four standard errors of a share of 1,000.
    assert np.allclose(found, wanted, atol=0.064)


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
