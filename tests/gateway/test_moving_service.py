"""The gateway of a problem that goes on, from messages to what leaves, with a clock of its own."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import reticent as rt
from reticent.gateway.loading import load_runtime, step_seconds
from reticent.gateway.messages import Message
from reticent.gateway.moving_runtime import MovingRuntime
from reticent.gateway.moving_service import MovingGateway
from reticent.gateway.opening import open_ledger
from reticent.gateway.settings import Settings
from reticent.gateway.simulate import Lived
from reticent.gateway.verify import verify
from tests.commands import commands
from tests.gateway.test_moving import MODEL, SECONDS, START, file_of, likelihoods
from tests.sent import highest_posteriors


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "lived.safetensors"
    file_of(rt.CheapestStep).save(path)
    return path


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def gateway_on(policy, ledger, clock, drift_check=False):
    runtime = load_runtime(policy, SECONDS)
    assert isinstance(runtime, MovingRuntime)
    rng = np.random.default_rng(0)
    return MovingGateway(runtime, ledger, Settings(policy, drift_check=drift_check), clock, lambda: rng)


def live(gateway, clock, source, steps):
    sent = []
    for _ in range(steps):
        out = gateway.handle(list(source.moment()))
        gateway.delivered(out)
        sent += out
        clock.now += SECONDS
    return sent


def test_a_household_lives_on_and_restarts(policy, tmp_path):
    clock, source = Clock(), Lived(MODEL, ["ada", "bob"], seed=1)
    where, sent = str(tmp_path / "l.db"), []
    for _ in range(3):
        with open_ledger(where) as ledger:
            sent += live(gateway_on(policy, ledger, clock), clock, source, 25)
        # Nobody is there for a while: time passes in silence.
        clock.now += 7 * SECONDS
    with open_ledger(where) as ledger:
        assert verify(ledger).fault is None
        verdict = verify(ledger, load_runtime(policy, SECONDS))
        assert verdict.fault is None
        assert verdict.entries == len(sent) > 40
        for name in ("ada", "bob"):
            entries = list(ledger.entries(name))
            assert max(highest_posteriors(MODEL, likelihoods(entries))) < 0.7
            assert np.allclose(
                [e.time // SECONDS - entries[0].time // SECONDS for e in entries], [e.step for e in entries]
            )
    places = {(each.subject, each.step) for each in sent}
    assert len(places) == len(sent)


def test_at_most_one_reading_leaves_in_a_step(policy, tmp_path):
    clock = Clock()
    with open_ledger(str(tmp_path / "l.db")) as ledger:
        gateway = gateway_on(policy, ledger, clock)
        messages = [Message("ada", name, symbol="1") for name in MODEL.sensors] * 3
        out = gateway.handle(messages)
        clock.now += SECONDS / 3
        assert len(out) == 1
        assert gateway.handle(messages) == []
        assert gateway.counters["resting"] + gateway.counters["not asked"] == 11


def test_what_is_seen_is_the_day(policy, tmp_path):
    clock, source = Clock(), Lived(MODEL, ["ada"], seed=2)
    with open_ledger(str(tmp_path / "l.db")) as ledger:
        gateway = gateway_on(policy, ledger, clock)
        live(gateway, clock, source, 40)
        found = gateway.snapshot("ada")
        chosen, entries = found["chosen"], list(ledger.entries("ada"))
        told = likelihoods(entries)
        day = chosen["day"]
        assert len(day["then"]) == len(day["silent"]) >= len(told)
        # By enumeration-free code of its own: belief at the time, and at the end of the day.
        moves, belief, now = MODEL.dynamics.reshape(4, 4), MODEL.prior.reshape(-1), []
        for step in range(len(told)):
            belief = belief * told[step].reshape(-1)
            belief = belief / belief.sum()
            now.append(belief.reshape(2, 2).sum(1).max())
            belief = belief @ moves
        assert np.allclose(day["then"][: len(told)], now, atol=1e-12)
        highest = highest_posteriors(MODEL, told)
        assert max(day["hindsight"]) <= highest.smoother + 1e-12 < 0.7
        assert sum(not quiet for quiet in day["silent"]) == len(entries)
        assert found["moving"]["seconds"] == SECONDS
        assert gateway.status().census.conditions["held"] == 0
        assert json.loads(json.dumps(found))["bound"]["limit"] == 0.7


def test_memory_is_constant_per_subject(policy, tmp_path):
    """What is kept of a subject is as large after many steps as after few."""
    clock, source = Clock(), Lived(MODEL, ["ada"], seed=3)
    sizes = []
    with open_ledger(str(tmp_path / "l.db")) as ledger:
        gateway = gateway_on(policy, ledger, clock)
        for _ in range(3):
            live(gateway, clock, source, 60)
            state = gateway._subjects.of("ada").state
            assert state is not None
            standing = state.standing
            sizes.append(sum(np.asarray(each).nbytes for each in (*standing.moments[:5], standing.opened)))
    assert len(set(sizes)) == 1


def test_commands_serve_verify_and_simulate_a_moving_policy(policy, tmp_path, monkeypatch, capsys):
    run = commands(monkeypatch, capsys)
    code, _, err = run("serve", policy, "--check", "--ledger", tmp_path / "l.db")
    assert code == 2
    assert "Give --step SECONDS" in err
    code, _, err = run("serve", policy, "--step", 60, "--check", "--ledger", tmp_path / "l.db")
    assert code == 0
    assert "The bound is on the secret of every moment" in err
    clock = Clock()
    with open_ledger(str(tmp_path / "l.db")) as ledger:
        live(gateway_on(policy, ledger, clock), clock, Lived(MODEL, ["ada"], seed=4), 20)
    code, out, _ = run("ledger", "verify", tmp_path / "l.db", "--policy", policy, "--step", 60)
    assert code == 0
    assert "PASS" in out
    code, out, _ = run("simulate", policy, "--subjects", 1, "--episodes", 1, "--readings", 2, "--interval", 0)
    assert len(out.splitlines()) == 2 * len(MODEL.sensors)


def test_a_step_that_is_not_the_chains_is_refused(policy):
    fitted = rt.Monitoring(MODEL, rt.Confidence(0.7))
    object.__setattr__(fitted, "model", SimpleNamespace(fitted={"step": 30.0}))
    assert step_seconds(fitted, None) == step_seconds(fitted, 30.0) == 30.0
    with pytest.raises(rt.InputError, match="fitted to steps of 30"):
        step_seconds(fitted, 60.0)
    with pytest.raises(rt.InputError, match="more than 0 seconds"):
        load_runtime(policy, -1.0)
