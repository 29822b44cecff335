"""A gateway whose bound is kept for a panel: every provider is followed, written down and verified."""

from dataclasses import replace

import numpy as np
import pytest

import reticent as rt
from reticent.gateway.census import census
from reticent.gateway.forecast import forecast
from reticent.gateway.opening import open_ledger
from reticent.gateway.runtime import Runtime, Standing
from reticent.gateway.standing import standing_of
from reticent.gateway.subjects import SubjectState
from reticent.gateway.verify import verify
from tests.gateway.parts import task, write_policy
from tests.gateway.test_verify import played, rechained
from tests.guard.test_panel import model_with_panel
from tests.untrained import actor, lookahead

LIMIT = 0.75
KINDS = ("coarsen", "mask")


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panels")
    tasks = {name: task(rt.Confidence(LIMIT), name, model=model_with_panel(2)) for name in KINDS}
    return {name: Runtime.load(write_policy(folder / f"{name}.safetensors", each)) for name, each in tasks.items()}


@pytest.fixture(scope="module")
def histories(runtimes):
    return {name: [played(runtimes[name], f"p{seed}", seed=seed) for seed in range(4)] for name in KINDS}


def by_hand(model, entries, runtime):
    """What a provider with this model believes of the secret after each entry, from scratch, over all sessions."""
    joint, session, found = model.prior.copy(), 0, []
    for entry in entries:
        if entry.session > session:
            # The secret stays, the useful value is drawn anew.
            secret, session = joint.sum(1), entry.session
            joint = model.prior / model.prior.sum(1, keepdims=True) * secret[:, None]
        if entry.symbol is not None:
            readings = len(model.symbols)
            sensor, symbol = runtime.sensors.index(entry.sensor), runtime.symbols.index(entry.symbol)
            chances = np.eye(readings)[symbol] if entry.chances is None else np.array(entry.chances)
            joint = joint * (model.channel[sensor] @ chances)
        found.append(joint.sum(1) / joint.sum())
    return np.array(found)


@pytest.mark.parametrize("name", KINDS)
def test_entries_hold_what_every_provider_believes(runtimes, histories, name):
    runtime, released = runtimes[name], 0
    providers = (runtime.task.model, *runtime.task.panel)
    for entries in histories[name]:
        beliefs = np.array([entry.belief for entry in entries]).reshape(len(entries), len(providers), 2, 2)
        assert np.allclose(beliefs.sum((2, 3)), 1)
        for provider, own in zip(providers, beliefs.swapaxes(0, 1), strict=True):
            expected = by_hand(provider, entries, runtime)
            assert np.allclose(own.sum(2), expected, atol=1e-12)
            assert expected.max() < LIMIT
        assert [entry.confidence for entry in entries] == pytest.approx(beliefs.sum(3).max((1, 2)))
        released += sum(entry.symbol is not None for entry in entries)
    assert released > 4


@pytest.mark.parametrize("name", KINDS)
def test_a_ledger_is_whole_and_a_changed_belief_of_any_provider_is_found(runtimes, histories, name, tmp_path):
    runtime = runtimes[name]
    with open_ledger(str(tmp_path / "whole.db")) as ledger:
        assert all(ledger.append([entry for entries in histories[name] for entry in entries]))
        assert verify(ledger, runtime).fault is None
    entries = max(histories[name], key=len)
    belief = np.array(entries[0].belief)
    # A little from one cell of the last provider to another.
    belief[-1] += [1e-6, -1e-6]
    with open_ledger(str(tmp_path / "forged.db")) as ledger:
        assert all(ledger.append(rechained(entries, 0, belief=tuple(map(tuple, belief.tolist())))))
        fault = verify(ledger, runtime).fault
    assert fault is not None
    assert fault.sentence.endswith("holds a belief that does not follow from what was sent.")


def test_a_provider_over_the_bound_is_told(runtimes):
    runtime = runtimes["coarsen"]
    first = runtime.first()
    assert first.belief.shape == (8, 2)
    sure = first.belief.copy()
    sure[4:6] = [[0.4, 0.38], [0.12, 0.1]]
    standing = replace(first, belief=sure)
    assert not runtime.over(first)
    assert runtime.over(standing)
    assert runtime.budget_left(standing) == 0
    assert runtime.budget_left(first) == 1
    assert runtime.confidence(standing) == pytest.approx(0.78)
    assert not runtime.public(standing).allowed[:-1].any()
    assert census(runtime, [SubjectState(first), SubjectState(standing)]).headroom.tolist() == [0, 1]


def test_beliefs_of_the_model_alone_are_strange(runtimes):
    runtime = runtimes["coarsen"]
    assert runtime.could_be(runtime.first())
    assert not runtime.could_be(Standing(runtime.task.model.prior, 0.0, 0, 0))
    assert not runtime.could_be(replace(runtime.first(), belief=runtime.first().belief * 1.1))


@pytest.mark.parametrize("kind", [actor, lookahead])
def test_gateway_and_training_decide_alike(kind, tmp_path):
    """By the kernels and the choices of the compiled process, at what random releases lead to."""
    what = task(rt.Confidence(LIMIT), "coarsen", model=model_with_panel(1), horizon=3)
    path = tmp_path / "p.safetensors"
    kind(what).save(path)
    runtime, solution, rng = Runtime.load(path), rt.load(path), np.random.default_rng(0)
    standing = runtime.first()
    for _ in range(3):
        beliefs = standing.belief.reshape(-1, 2, 2)
        compiled = solution.process.public(beliefs[0], standing.spent_bits, beliefs[1:])
        public = runtime.public(standing)
        assert np.allclose(np.asarray(compiled.kernels), np.asarray(public.kernels), atol=1e-7)
        assert (np.asarray(compiled.allowed) == public.allowed).all()
        decision = runtime.decide(standing, rng)
        chosen = int(solution.policy.act(None, compiled))
        assert (len(runtime.sensors) if decision.sensor is None else decision.sensor) == chosen
        speaks = runtime.decided(public, int(np.flatnonzero(public.allowed)[0]))
        if speaks.sensor == len(runtime.sensors):
            break
        _, standing = runtime.release(standing, speaks, int(rng.integers(4)), rng)


def test_a_gateway_goes_on_from_the_ledger(tmp_path):
    """A second gateway on the same ledger knows of every provider what the first one knew."""
    what = task(rt.Confidence(LIMIT), "coarsen", model=model_with_panel(2), horizon=9)
    runtime = Runtime.load(write_policy(tmp_path / "p.safetensors", what))
    entries = played(runtime, "ada", sessions=1)
    first = [entry for entry in entries if entry.symbol is not None]
    restored = standing_of(first[-1])
    standing = runtime.first()
    for entry in first:
        chances = np.array(entry.chances)
        sensor, symbol = runtime.sensors.index(entry.sensor), runtime.symbols.index(entry.symbol)
        standing = replace(standing, belief=runtime.heard(standing, sensor, symbol, chances))
    assert np.array_equal(restored.belief, standing.belief)
    assert runtime.could_be(restored)


def test_a_forecast_follows_the_panel(runtimes):
    found = forecast(runtimes["coarsen"], subjects=4, most_sessions=3)
    assert 0 <= found.over.value <= 1
