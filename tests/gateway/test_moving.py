"""Subjects whose secret moves: what is sent, restored and verified, against code of its own."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import reticent as rt
from reticent.gateway.ledger import Damaged
from reticent.gateway.moving_runtime import MovingRuntime
from reticent.gateway.moving_turns import MovingTurns
from reticent.gateway.moving_verify import Followed
from reticent.gateway.opening import open_ledger
from reticent.gateway.turns import Reading
from reticent.policy.heuristics import InformationGain
from reticent.policy.ongoing import EverySteps, LongRunLookahead
from reticent.policy.policy import NEVER, RandomSensor
from reticent.policy.saved_ongoing import ongoing_policy_of
from reticent.policy.store import PolicyFile
from reticent.problem.synthetic import two_binary_sensors
from tests.sent import highest_posteriors

MOVES = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.7, 0.3], [0.3, 0.7]]}
MODEL = two_binary_sensors().moving(MOVES)
TASK = rt.Monitoring(MODEL, rt.Confidence(0.7), horizon=50)
SECONDS = 60.0
START = 1_000_000 * SECONDS


def file_of(policy: type[rt.Policy] = RandomSensor, task: rt.Monitoring = TASK) -> PolicyFile:
    process = rt.OngoingProcess(task)
    made = {
        RandomSensor: lambda: RandomSensor(jnp.asarray(NEVER)),
        rt.CheapestStep: lambda: rt.CheapestStep(process),
        EverySteps: lambda: EverySteps(jnp.asarray(1), jnp.asarray(3)),
        LongRunLookahead: lambda: LongRunLookahead(process, jnp.asarray(1.0), jnp.asarray(0.5)),
        InformationGain: lambda: InformationGain(process, jnp.asarray(0.5), jnp.asarray(0.9)),
    }
    return rt.Solution.of(task, made[policy]()).file()


@pytest.fixture(scope="module")
def runtime():
    return MovingRuntime(file_of(), "digest", SECONDS)


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(str(tmp_path / "l.db")) as ledger:
        yield ledger


def turns_of(runtime, ledger, seed=0):
    rng = np.random.default_rng(seed)
    return MovingTurns(runtime, ledger, False, lambda: rng)


def live(turns, steps, seed=0, name="ada", restart_every=None, skip=0.2):
    """A life of so many steps: who is asked gives a reading, which is released; some steps nobody comes."""
    rng, pair = np.random.default_rng([seed, 1]), 0
    state, moves = turns.restored(turns.ledger.last(name)), MODEL.dynamics.reshape(4, 4)
    for step in range(steps):
        pair = rng.choice(4, p=moves[pair])
        now = START + step * SECONDS + rng.uniform(0, SECONDS)
        if rng.random() < skip:
            continue
        due = turns.due(state, now)
        assert due is not None
        [decision] = turns.decide([due])
        state, _ = turns.asked(name, state, due, decision, now)
        assert turns.due(state, now) is None
        if decision.sensor is None:
            continue
        reading = rng.choice(2, p=MODEL.channel[decision.sensor, pair // 2, pair % 2])
        state, entry = turns.release(name, state, Reading(decision.sensor, int(reading), now), now)
        assert turns.ledger.append([entry]) == [True]
        if restart_every and len(list(turns.ledger.entries(name))) % restart_every == 0:
            again = turns.restored(turns.ledger.last(name))
            assert np.allclose(again.standing.belief, state.standing.belief, atol=1e-12)
            assert again.standing.session == state.standing.session
            assert (again.entries, again.hash) == (state.entries, state.hash)
            state = again
    return state


def likelihoods(entries):
    """q(symbol | sensor, ., .) of each step from what the entries say, by code of its own; one where silent."""
    told = np.ones((entries[-1].step + 1, 2, 2))
    for entry in entries:
        channel = MODEL.channel[MODEL.sensors.index(entry.sensor)]
        told[entry.step] = np.einsum("suz,z->su", channel, entry.chances)
    return told


@pytest.mark.parametrize("restart_every", [None, 3])
def test_no_moment_is_told_up_to_the_bound_and_all_is_verified(runtime, ledger, restart_every):
    live(turns_of(runtime, ledger), 60, restart_every=restart_every)
    entries = list(ledger.entries("ada"))
    assert len(entries) > 15
    assert max(highest_posteriors(MODEL, likelihoods(entries))) < 0.7
    followed, before = Followed(runtime), None
    for entry in entries:
        assert followed.follow(before, entry) is None
        before = entry


def test_a_restart_changes_nothing(runtime, tmp_path):
    lives = []
    for restart_every in (None, 1):
        with open_ledger(str(tmp_path / f"{restart_every}.db")) as ledger:
            live(turns_of(runtime, ledger), 40, restart_every=restart_every)
            lives.append([(e.step, e.sensor, e.symbol, e.session) for e in ledger.entries("ada")])
    assert lives[0] == lives[1]


def test_a_restart_needs_only_what_is_still_open(runtime, ledger):
    live(turns_of(runtime, ledger), 80)
    turns, last = turns_of(runtime, ledger), ledger.last("ada")
    needed = turns._needed(last)
    assert last is not None
    assert needed[0].step <= last.session
    assert all(entry.step > last.session for entry in needed[1:])
    assert 1 <= len(needed) < last.number


def test_slots_that_run_out_silence_a_subject_but_break_nothing(tmp_path):
    few = MovingRuntime(file_of(task=replace(TASK, slots=2)), "digest", SECONDS)
    with open_ledger(str(tmp_path / "few.db")) as ledger:
        live(turns_of(few, ledger), 80, restart_every=4)
        entries = list(ledger.entries("ada"))
    assert max(highest_posteriors(MODEL, likelihoods(entries))) < 0.7
    followed, before = Followed(few), None
    for entry in entries:
        assert followed.follow(before, entry) is None
        before = entry


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"step": 7}, "by its time it is of step"),
        ({"belief": ((0.3, 0.2), (0.3, 0.2))}, "does not follow from what was sent"),
        ({"session": 10**6}, "says that moments are open since"),
        ({"policy": "other"}, "under another policy"),
        ({"sensor": "x"}, "has the sensor 'x'"),
        ({"chances": None}, "does not hold the rule"),
    ],
)
def test_what_does_not_follow_is_found(runtime, ledger, change, sentence):
    live(turns_of(runtime, ledger), 20)
    followed, before = Followed(runtime), None
    *entries, last = ledger.entries("ada")
    for entry in entries:
        assert followed.follow(before, entry) is None
        before = entry
    assert sentence in followed.follow(before, replace(last, **change))


def test_what_tells_too_much_of_the_past_is_found(runtime, ledger):
    """Somebody who sends readings as they are, with beliefs that follow, passes the bound."""
    live(turns_of(runtime, ledger), 12)
    template, standing = ledger.last("ada"), runtime.first(1_000_000)
    followed, before, found = Followed(runtime), None, []
    for step in range(30):
        standing = runtime.passed(standing, 1_000_000 + step)
        standing = runtime.told(standing, runtime.likelihood(0, 1, np.array([0.0, 1.0])), 0.0)
        entry = replace(
            template,
            number=step,
            time=START + step * SECONDS,
            measured=START + step * SECONDS,
            step=step,
            session=0,
            sensor=runtime.sensors[0],
            symbol=runtime.symbols[1],
            chances=(0.0, 1.0),
            belief=tuple(map(tuple, standing.belief.tolist())),
            spent_bits=0.0,
            before=before.hash if before else "",
        )
        found.append(followed.follow(before, entry))
        before = entry
    assert found[0] is None
    assert any(sentence and "to the bound" in sentence for sentence in found)


def test_damage_among_what_is_needed_is_told(runtime, ledger, monkeypatch):
    live(turns_of(runtime, ledger), 40)
    between = ledger.between
    damaged = lambda *a: between(*a)._replace(damaged=[Damaged("ada", "rotten")])  # noqa: E731
    monkeypatch.setattr(ledger, "between", damaged)
    with pytest.raises(Damaged, match="rotten"):
        turns_of(runtime, ledger).restored(ledger.last("ada"))


def test_an_edited_belief_blocks_the_subject(runtime, ledger):
    live(turns_of(runtime, ledger), 20)
    turns = turns_of(runtime, ledger)
    last = ledger.last("ada")
    assert turns.restored(last).blocked is None
    edited = replace(last, belief=((0.4, 0.1), (0.4, 0.1)))
    assert "the ledger was edited" in str(turns.restored(edited).blocked)
    assert "another policy file" in str(turns.restored(replace(last, policy="other")).blocked)


def test_bits_within_a_window_are_restored(tmp_path):
    task = rt.Monitoring(MODEL, rt.Information(0.1), window=6, horizon=50)
    runtime = MovingRuntime(file_of(task=task), "digest", SECONDS)
    with open_ledger(str(tmp_path / "bits.db")) as ledger:
        live(turns_of(runtime, ledger), 60, restart_every=1)
        entries = list(ledger.entries("ada"))
    bits = np.zeros(entries[-1].step + 1)
    bits[[e.step for e in entries]] = np.diff([0.0, *(e.spent_bits for e in entries)])
    assert max(bits[t : t + 6].sum() for t in range(len(bits))) < 0.1
    assert bits.sum() > 0.1


@pytest.mark.parametrize("policy", [rt.CheapestStep, EverySteps, LongRunLookahead, InformationGain])
def test_numpy_policies_choose_as_the_compiled_ones(policy):
    """Along a compiled day, given the same actions and symbols."""
    file = file_of(policy)
    runtime = MovingRuntime(file, "digest", SECONDS)
    day = rt.Solution.of(TASK, ongoing_policy_of(file)[1]).simulate(1, 3)
    standing = runtime.first(0)
    rng = np.random.default_rng(0)
    for t in range(30):
        standing = replace(runtime.passed(standing, t), origin=0)
        decision = runtime.decide(standing, rng)
        chosen = len(runtime.sensors) if decision.sensor is None else decision.sensor
        assert chosen == day.action[0, t]
        if day.sent[0, t]:
            standing = runtime.told(standing, day.likelihood[0, t], decision.bits)


def test_a_locked_subject_is_free_again_when_said(tmp_path):
    few = MovingRuntime(file_of(task=replace(TASK, slots=6)), "digest", SECONDS)
    with open_ledger(str(tmp_path / "few.db")) as ledger:
        steps, standing = None, few.first(0)
        for lived in range(8, 60):
            state = live(turns_of(few, ledger), lived, name=f"after {lived} steps", skip=0.0)
            standing = few.passed(state.standing, state.standing.at + 1)
            if steps := few.locked_for(standing):
                break
    assert steps
    for step in range(steps + 1):
        allowed = few.public(few.passed(standing, standing.at + step)).allowed[:-1].any()
        assert allowed == (step == steps)


def test_a_subject_that_can_never_speak_again_in_time_is_told_so():
    # Even silence opens more moments than there are slots.
    never = MovingRuntime(file_of(task=replace(TASK, slots=1)), "digest", SECONDS)
    standing = replace(never.first(0), origin=0)
    for step in range(12):
        standing = never.passed(standing, step)
    assert never.locked_for(standing) is None
