"""Policies change, and nothing that was spent is forgotten."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from reticent.cli.ledger import LedgerCommand
from reticent.errors import InputError
from reticent.gateway.entry import STOP
from reticent.gateway.migrate import by_digest, carried_over, migrate
from reticent.gateway.runtime import Runtime
from reticent.gateway.standing import standing_of
from reticent.gateway.verify import verify
from reticent.problem.bound import Confidence
from reticent.problem.model import Model
from reticent.problem.synthetic import synthetic
from tests.gateway.parts import NOON, Place, coarsened, task, write_policy

NAMES = ("ada", "bob", "cyd")


@pytest.fixture
def spent(tmp_path):
    """A place where three subjects have said something: one in the middle of a session, two after its end."""
    place = Place(tmp_path, coarsened())
    for name in NAMES[1:]:
        while place.tick(name)[-1].sensor != STOP:
            continue
    place.tick("ada")
    yield place
    place.ledger.close()


def policy(tmp_path, what, name="next.safetensors", seed=3):
    return Runtime.load(write_policy(tmp_path / name, what, seed=seed))


def other_model(prior=None):
    """Of the same secrets, with fewer useful values and other sensors."""
    model, rng = synthetic(), np.random.default_rng(5)
    channel = rng.dirichlet(np.ones(4), (2, 3, 2))
    prior = rng.dirichlet(np.ones(6)).reshape(3, 2) if prior is None else prior
    return Model(prior, channel, model.secrets, ("still", "moves"), ("x", "y"), ("a", "b", "c", "d"))


def carried(place, later, now=None):
    return migrate(place.ledger, by_digest([place.runtime]), later, place.clock.now if now is None else now)


def test_over_the_same_model_the_belief_stays(spent, tmp_path):
    later, before = policy(tmp_path, coarsened()), {name: spent.ledger.last(name) for name in NAMES}
    assert carried(spent, later).subjects == 3
    for name in NAMES:
        entry = spent.ledger.last(name)
        assert (entry.sensor, entry.policy, entry.number) == (STOP, later.digest, before[name].number + 1)
        assert (entry.belief, entry.spent_bits) == (before[name].belief, before[name].spent_bits)
        assert entry.measured == before[name].measured
    assert carried(spent, later).already == 3
    verdict = verify(spent.ledger, later, earlier=[spent.runtime])
    assert verdict.fault is None
    assert verdict.subjects == 3


def test_over_another_model_what_is_known_of_the_secret_stays(spent, tmp_path):
    model = other_model()
    later = policy(tmp_path, task(Confidence(0.9), "coarsen", model=model))
    known = {name: np.array(spent.ledger.last(name).belief).sum(1) for name in NAMES}
    carried(spent, later)
    given = model.prior / model.prior.sum(1, keepdims=True)
    for name in NAMES:
        belief = np.array(spent.ledger.last(name).belief)
        assert belief.sum(1) == pytest.approx(known[name], abs=1e-12)
        assert belief / belief.sum(1, keepdims=True) == pytest.approx(given, abs=1e-12)
        assert belief.sum() == pytest.approx(1, abs=1e-12)
    assert verify(spent.ledger, later, earlier=[spent.runtime]).fault is None


@pytest.mark.parametrize("model", [None, other_model()])
def test_a_gateway_goes_on_from_what_was_carried_over(spent, tmp_path, model):
    later = policy(tmp_path, coarsened() if model is None else task(Confidence(0.9), "coarsen", model=model))
    carried(spent, later)
    start = standing_of(spent.ledger.last("ada"))
    spent.ledger.close()
    spent.policy, spent.runtime = tmp_path / "next.safetensors", later
    spent.start()
    assert {out.sensor for out in spent.gateway.resend()} == {STOP}
    spent.clock.now += 100
    [first] = spent.gateway.handle([spent.message(code=1)])
    entry = spent.ledger.last("ada")
    assert (first.session, first.step) == (start.session + 1, 0)
    chances = np.array(entry.chances)
    fresh = later.next_session(start)
    at = later.sensors.index(entry.sensor), later.symbols.index(entry.symbol)
    assert np.array(entry.belief) == pytest.approx(later.heard(fresh, *at, chances), abs=1e-12)
    assert later.confidence(standing_of(entry)) < float(later.bound.number)
    # Not as if nothing had been said.
    assert not np.allclose(entry.belief, later.heard(later.first(), *at, chances))
    assert verify(spent.ledger, later, earlier=[Runtime.load(tmp_path / "policy.safetensors")]).fault is None


def test_under_a_bound_that_is_reached_already_nothing_more_is_said(spent, tmp_path):
    known = max(spent.runtime.confidence(standing_of(spent.ledger.last(name))) for name in NAMES)
    [name] = [each for each in NAMES if spent.runtime.confidence(standing_of(spent.ledger.last(each))) == known]
    later = policy(tmp_path, task(Confidence((1 / 3 + known) / 2), "coarsen"))
    carried(spent, later)
    spent.ledger.close()
    spent.policy, spent.runtime = tmp_path / "next.safetensors", later
    spent.start()
    spent.gateway.resend()
    spent.clock.now += 100
    assert spent.gateway.handle([spent.message(name, code=25, sensor=sensor) for sensor in later.sensors]) == []
    assert spent.gateway.counters["nothing left"] >= 1
    assert verify(spent.ledger, later, earlier=[Runtime.load(tmp_path / "policy.safetensors")]).fault is None


def test_nothing_is_written_unless_all_can_be_carried_over(spent, tmp_path):
    later = policy(tmp_path, coarsened())
    before = list(spent.ledger.entries())
    with pytest.raises(InputError, match="--earlier"):
        migrate(spent.ledger, {}, later, spent.clock.now)
    model = synthetic()
    others = replace(model, secrets=("u", "v", "w"))
    with pytest.raises(InputError, match="keeps secret which of"):
        carried(spent, policy(tmp_path, task(Confidence(0.9), "coarsen", model=others)))
    impossible = np.array([[0.5, 0.5], [0, 0], [0, 0]])
    with pytest.raises(InputError, match="impossible"):
        carried_over(spent.runtime.first(), spent.runtime, runtime_without(impossible))
    assert list(spent.ledger.entries()) == before


def runtime_without(prior):
    """Only what is asked of the later policy."""

    class Later(Runtime):
        def __init__(self):
            self.task = task(Confidence(0.9), "coarsen")
            object.__setattr__(self.task, "model", other_model(prior))

    return Later()


def test_who_forgets_while_carrying_over_is_found_out(spent, tmp_path):
    later = policy(tmp_path, coarsened())
    for name, change in (
        ("ada", {"belief": tuple(map(tuple, later.rules.prior.tolist()))}),
        ("bob", {"spent_bits": 0.0}),
    ):
        last = spent.ledger.last(name)
        stop = {"sensor": STOP, "symbol": None, "chances": None, "policy": later.digest, "before": last.hash}
        step = last.step + (last.symbol is not None)
        assert spent.ledger.append([replace(last, number=last.number + 1, step=step, **stop, **change)]) == [True]
        fault = verify(spent.ledger, later, earlier=[spent.runtime]).fault
        assert fault is not None
        assert fault.subject == "ada"


def test_going_on_under_another_policy_without_a_stop_is_found_out(spent, tmp_path):
    later, last = policy(tmp_path, coarsened()), spent.ledger.last("ada")
    changed = {"policy": later.digest, "before": last.hash, "measured": last.measured + 1}
    spent.ledger.append([replace(last, number=last.number + 1, step=last.step + 1, **changed)])
    fault = verify(spent.ledger, later, earlier=[spent.runtime]).fault
    assert fault is not None
    assert "nothing was carried over" in fault.sentence


def test_the_command(spent, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOON + 1_000)
    policy(tmp_path, coarsened())
    words = {"policy": tmp_path / "next.safetensors", "earlier": (spent.policy,)}
    with pytest.raises(InputError, match="--policy NEXT --earlier"):
        LedgerCommand("migrate", str(spent.where), policy=spent.policy).run()
    LedgerCommand("migrate", str(spent.where), **words).run()
    assert "Carried over: 3 subjects; 0 were" in capsys.readouterr().out
    LedgerCommand("migrate", str(spent.where), **words, json=True).run()
    assert json.loads(capsys.readouterr().out) == {"ledger": str(spent.where), "subjects": 0, "already": 3}
    LedgerCommand("verify", str(spent.where), **words).run()
    assert capsys.readouterr().out.startswith("PASS: 3 subjects")
    with pytest.raises(SystemExit):
        LedgerCommand("verify", str(spent.where), policy=words["policy"]).run()
    assert "--earlier" in capsys.readouterr().out
