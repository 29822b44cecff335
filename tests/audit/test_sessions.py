"""Repeated sessions: what adds up where they are forgotten, and what holds where they are carried over."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.sessions import repeated_sessions
from reticent.data.episodes import episodes_of
from reticent.errors import InputError
from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.policy import FixedSensor, RandomSensor
from reticent.problem.bound import Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import named_enforcement
from reticent.problem.synthetic import tells_both, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.source import FromCodes
from tests.problems import random_model
from tests.streams import places_of, readings_of

PEOPLE = 4_096
# Of a rate; a calibrated guess is right as often as it is confident, so their difference has a smaller one.
FOUR_STANDARD_ERRORS = 4 * 0.5 / PEOPLE**0.5
NEVER_SURE = jnp.asarray(2.0)


def lookahead(bound, enforce="mask"):
    process = Process.of(Task(two_binary_sensors(), bound, enforcement=named_enforcement(enforce), horizon=30))
    return process, OneStepLookahead(process, jnp.asarray(1.0))


@pytest.mark.parametrize("enforce", ["withhold", pytest.param("coarsen", marks=pytest.mark.slow)])
def test_a_carried_belief_never_reaches_the_bound_in_any_session(enforce):
    process, policy = lookahead(Confidence(0.7), enforce)
    after = repeated_sessions(process, policy, carried=True, episodes=PEOPLE)
    assert [one.sessions for one in after] == list(range(1, 11))
    assert all(one.violation_rate is not None and one.violation_rate.value == 0 for one in after)
    assert after[-1].highest_confidence < 0.7
    assert after[-1].confidence.value > after[0].confidence.value + 0.02


def test_forgotten_sessions_add_up_and_cross_the_bound_that_each_one_keeps():
    process, policy = lookahead(Confidence(0.7), "withhold")
    after = repeated_sessions(process, policy, carried=False, episodes=PEOPLE)
    first, last = after[0], after[-1]
    assert first.violation_rate is not None
    assert last.violation_rate is not None
    assert first.violation_rate.value == 0
    assert last.violation_rate.low > 0.2
    assert last.confidence.value > first.confidence.value + 0.1
    assert last.highest_confidence > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("carried", [False, True], ids=["forgotten", "carried"])
def test_the_adversary_is_right_as_often_as_it_is_confident(carried):
    process, policy = lookahead(Confidence(0.8), "withhold")
    for one in repeated_sessions(process, policy, carried, episodes=PEOPLE, seed=1):
        assert one.accuracy_secret.value == pytest.approx(one.confidence.value, abs=FOUR_STANDARD_ERRORS)


def test_what_sessions_say_multiplies():
    # One reading of one sensor per session, from an uneven prior: confidence by enumeration of all three readings.
    model = random_model(3, secrets=3)
    process = Process.of(Task(model, Unbounded(), horizon=1))
    after = repeated_sessions(process, FixedSensor(jnp.asarray(0), NEVER_SURE), False, 3, PEOPLE)
    secret = model.prior.sum(1)
    likelihood = np.einsum("su,suz->sz", model.prior, model.channel[0]) / secret[:, None]
    paths = itertools.product(range(2), repeat=3)
    expected = sum((secret * likelihood[:, list(path)].prod(1)).max() for path in paths)
    assert after[-1].confidence.value == pytest.approx(expected, abs=FOUR_STANDARD_ERRORS)


@pytest.mark.slow
def test_carrying_changes_nothing_for_a_policy_that_ignores_the_belief():
    process = Process.of(Task(random_model(4, secrets=3), Unbounded(), horizon=3))
    policy = FixedSensor(jnp.asarray(1), NEVER_SURE)
    forgotten, carried = (repeated_sessions(process, policy, way, 3, PEOPLE) for way in (False, True))
    for one, other in zip(forgotten, carried, strict=True):
        assert one.confidence.value == pytest.approx(other.confidence.value, abs=1e-9)
        assert one.highest_confidence == pytest.approx(other.highest_confidence, abs=1e-9)
        assert one.accuracy_useful.value == other.accuracy_useful.value
    # What sessions say on their own is more than they say together.
    assert forgotten[0].spent_bits == carried[0].spent_bits
    assert forgotten[-1].spent_bits.value > carried[-1].spent_bits.value


@pytest.mark.slow
def test_a_carried_ledger_stays_below_its_limit_over_all_sessions():
    process, policy = lookahead(Information(0.2))
    carried, forgotten = (repeated_sessions(process, policy, way, episodes=PEOPLE)[-1] for way in (True, False))
    assert carried.violation_rate is not None
    assert carried.violation_rate.value == 0
    assert carried.spent_bits.value < 0.2
    assert forgotten.violation_rate is not None
    assert forgotten.violation_rate.value == 1
    assert forgotten.spent_bits.value > 0.2


@pytest.mark.slow
def test_after_a_violation_a_carried_session_is_silent():
    process = Process.of(Task(tells_both(), Confidence(0.9)))
    policy = RandomSensor(jnp.asarray(0.9))
    carried, forgotten = (repeated_sessions(process, policy, way, 2, PEOPLE) for way in (True, False))
    assert carried[0].violation_rate is not None
    assert carried[0].violation_rate.value == 1
    assert carried[0].accuracy_useful.value == 1
    assert carried[1].spent_bits.value == pytest.approx(1.0)
    assert carried[1].accuracy_useful.value == pytest.approx(0.5, abs=FOUR_STANDARD_ERRORS)
    assert forgotten[1].spent_bits.value == pytest.approx(2.0)
    assert forgotten[1].accuracy_useful.value == 1


@pytest.mark.slow
def test_a_bound_on_average_has_no_violation_rate():
    process = Process.of(Task(two_binary_sensors(), ExpectedInformation(0.2), horizon=2))
    assert repeated_sessions(process, RandomSensor(NEVER_SURE), True, 1, 100)[0].violation_rate is None


def test_the_seed_decides_everything():
    process, policy = lookahead(Confidence(0.7), "withhold")
    one, two, other = (repeated_sessions(process, policy, True, episodes=500, seed=seed) for seed in (5, 5, 6))
    assert one == two
    assert one != other


def test_recorded_people_do_not_come_back():
    model = two_binary_sensors()
    recorded = readings_of(model, places_of(model))
    process = Process.of(Task(model, Confidence(0.7), horizon=4))
    codes = FromCodes(jnp.asarray(recorded.values[:, :, 0].astype(int)), episodes_of(recorded, 4))
    with pytest.raises(InputError, match="own model"):
        repeated_sessions(process.reading_from(codes), RandomSensor(NEVER_SURE), True)
