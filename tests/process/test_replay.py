"""Replay: over recordings that were drawn from a model, the same as the model itself."""

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.belief.filter import NearestSymbolFilter
from reticent.data.episodes import episodes_of
from reticent.errors import InputError
from reticent.evaluate.evaluation import evaluate
from reticent.policy.contracts import check_policy, check_process
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import Coarsen, PaperCost, named_enforcement
from reticent.problem.objective import Objective
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate, simulate_traced
from reticent.process.source import FromCodes
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
STREAMS = readings_of(MODEL, places_of(MODEL), people=4, length=400)
BAYES = NearestSymbolFilter(jnp.asarray(MODEL.prior), jnp.asarray(MODEL.channel), jnp.asarray(places_of(MODEL)))


@pytest.mark.parametrize("bound", [Confidence(0.8), Information(0.3)])
def test_replay_keeps_the_contract(bound):
    process = Process.over(BAYES, STREAMS, bound, horizon=8)
    check_process(process)
    check_policy(process, RandomSensor(jnp.asarray(0.9)))


@pytest.mark.parametrize("bound", [pytest.param(Confidence(0.8), marks=pytest.mark.slow), Information(0.3)])
def test_replay_with_exact_belief_is_the_release_process(bound):
    policy = RandomSensor(jnp.asarray(0.9))
    exact = evaluate(Process.of(Task(MODEL, bound, horizon=8)), policy, 20_000, seed=1)
    replayed = evaluate(Process.over(BAYES, STREAMS, bound, horizon=8), policy, 20_000, seed=2)
    for name in ("cost", "releases", "accuracy_useful", "accuracy_secret", "violation_rate", "spent_bits"):
        if name == "spent_bits" and isinstance(bound, Confidence):
            continue  # Only an information bound keeps a ledger.
        a, b = getattr(exact, name), getattr(replayed, name)
        # The 4 x 400 readings per pair are a sample themselves: five times both intervals' reach, and 2 % on top.
        assert abs(a.value - b.value) <= 5 * max(a.high - a.value, b.high - b.value) + 0.02 * abs(a.value), name


def test_what_is_released_is_what_was_recorded():
    process = Process.over(BAYES, STREAMS, Unbounded(), horizon=6)
    records, sent = simulate_traced(process, RandomSensor(jnp.asarray(2.0)).act, 500, seed=0)
    spoke = np.asarray(sent.action) < 2
    row, episode = np.asarray(sent.symbol)[spoke], np.asarray(sent.episode)[spoke]
    assert (STREAMS.secret[row] == np.asarray(records.secret)[episode]).all()
    assert (STREAMS.useful[row] == np.asarray(records.useful)[episode]).all()
    # Row after row of one stream, one per step.
    order = np.lexsort((np.asarray(sent.step)[spoke], episode))
    row, episode = row[order], episode[order]
    same = episode[1:] == episode[:-1]
    assert (np.diff(row)[same] == 1).all()
    assert (STREAMS.stream[row][1:][same] == STREAMS.stream[row][:-1][same]).all()


@pytest.mark.slow
@pytest.mark.parametrize("enforce", ["withhold", "coarsen"])
def test_the_guarantee_holds_whatever_was_recorded(enforce):
    process = Process.of(Task(MODEL, Confidence(0.6), enforcement=named_enforcement(enforce), horizon=8))
    # Codes that the model would hardly expect: all of one person's readings are turned around.
    codes = STREAMS.values[:, :, 0].astype(np.int64)
    codes[STREAMS.person == 1] = 1 - codes[STREAMS.person == 1]
    replay = process.reading_from(FromCodes(jnp.asarray(codes), episodes_of(STREAMS, 8)))
    check_process(replay)
    records, sent = simulate_traced(replay, RandomSensor(jnp.asarray(2.0)).act, 4000, seed=0)
    assert (np.asarray(records.highest_confidence) < 0.6).all()
    assert np.asarray(records.releases).max() > 1
    # Merged symbols are sent too.
    assert np.asarray(sent.symbol).max() >= MODEL.channel.shape[-1]


@pytest.mark.slow
def test_replayed_codes_give_the_models_costs():
    policy = RandomSensor(jnp.asarray(0.9))
    process = Process.of(Task(MODEL, Confidence(0.7), enforcement=Coarsen(), horizon=8))
    codes = FromCodes(jnp.asarray(STREAMS.values[:, :, 0].astype(np.int64)), episodes_of(STREAMS, 8))
    drawn, replayed = (evaluate(p, policy, 20_000, seed=3) for p in (process, process.reading_from(codes)))
    assert abs(drawn.cost.value - replayed.cost.value) <= 5 * (drawn.cost.high - drawn.cost.value) + 0.3
    assert abs(drawn.releases.value - replayed.releases.value) <= 0.1


def test_the_printed_cost_is_charged_over_recordings_too():
    objective, cost = Objective(time_cost=0.5), PaperCost(30.0)
    process = Process.over(BAYES, STREAMS, Confidence(0.75), objective, 8, cost)
    records = simulate(process, RandomSensor(jnp.asarray(2.0)).act, 500, seed=0)
    # Nothing ends but by the stop, which this policy never chooses.
    assert (np.asarray(records.releases) == 8).all()
    violated = np.asarray(records.violated)
    assert 0 < violated.mean() < 1
    stop = 50 * (1 - np.asarray(records.belief).sum(1).max(1))
    extra = np.asarray(records.cost) - stop - 8 * 0.5
    assert np.allclose(extra[~violated], 0)
    # Whole charges of C_B in place of C_T; none for those who came over the bound with their last reading.
    charges = extra[violated] / 29.5
    assert np.allclose(charges, charges.round(), atol=1e-9)
    assert charges.max() >= 1


def test_bounds_that_cannot_be_kept_are_refused():
    with pytest.raises(InputError, match="largest prior"):
        Process.over(BAYES, STREAMS, Confidence(0.5))
    with pytest.raises(InputError, match="Over recordings"):
        Process.over(BAYES, STREAMS, ExpectedInformation(0.5))
