"""Answers instead of readings: the program's rules, their limits, and a small problem from end to end."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import InputError
from reticent.evaluate.evaluation import summarise
from reticent.policy.answer import Answer, best_guess, private_episodes, private_task
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import AnswerOnly
from reticent.problem.objective import Objective
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.answer import MISTAKE, answer, answer_times, rule_of
from reticent.solve.answer_limits import Moments, excesses, reach, slopes, upper_limits
from reticent.solve.answer_program import Program, blind_weights, excesses_of, safe_weights, tangents_of
from reticent.solve.value_iteration import Settings, value_iteration

TIMES = np.array([0, 1, 2, 4])
EXACT = 10**10


def random_law(seed: int, secrets=3, useful=2, kinds=200):
    """A made-up law of private reading: some ends, each with a time, a belief and a probability; and its moments."""
    rng = np.random.default_rng(seed)
    belief = rng.dirichlet(np.full(secrets * useful, 0.3), kinds).reshape(kinds, secrets, useful)
    chance = rng.dirichlet(np.full(kinds, 0.5))
    return belief, rng.integers(1, len(TIMES), kinds) * useful + belief.sum(1).argmax(1), chance


def moments(belief, source, chance, episodes=EXACT) -> Moments:
    inside = (source[:, None] == np.arange(len(TIMES) * belief.shape[2])) * chance[:, None]
    square = belief.sum(2) ** 2
    return Moments(
        episodes, inside.sum(0), np.einsum("nx,nsu->xsu", inside, belief), np.einsum("nx,ns->xs", inside, square)
    )


def program_of(seed: int, room: float, episodes=EXACT) -> Program:
    """The bound lies a share `room` of the way from the prior to one."""
    belief, source, chance = random_law(seed)
    prior = np.einsum("n,nsu->su", chance, belief)
    top = prior.sum(1).max()
    return Program(TIMES, moments(belief, source, chance, episodes), prior, top + room * (1 - top), Objective())


@given(seed=st.integers(0, 2**31 - 1), room=st.floats(0.02, 0.9))
def test_every_public_belief_stays_below_the_bound(seed, room):
    program = program_of(seed, room)
    near = reach(EXACT, MISTAKE)
    chances = rule_of(program, safe_weights(program, near), program.moments, near).chances
    times, useful = chances.shape[:2]
    assert (chances >= 0).all()
    assert np.allclose(chances.sum((2, 3)), 1)
    # Recomputed from the kernel and the law alone, answer by answer and silence by silence.
    law = program.moments.joint.reshape(times, useful, *program.prior.shape)
    for time in range(times):
        silent = np.einsum("ig,igsu->s", chances[:, :, time + 1 :].sum((2, 3)), law)
        assert silent.max() <= program.limit * silent.sum() + 1e-9
        for said in range(useful):
            told = np.einsum("ig,igsu->s", chances[:, :, time, said], law)
            assert told.max() <= program.limit * told.sum() + 1e-9
    # Nobody is answered before reading has ended, but for those who are answered blindly.
    for ended in range(1, times):
        assert not chances[ended, :, 1:ended].any()
        assert np.allclose(chances[ended, :, 0], chances[-1, -1, 0])


def test_more_room_never_costs_more_and_blindness_is_the_dearest():
    def cost(room: float, weigh=lambda program: safe_weights(program, reach(EXACT, MISTAKE))):
        program = program_of(3, room)
        weights, law = weigh(program)[: len(TIMES) * 2].reshape(len(TIMES), 2, -1), program.moments.joint.sum(1)
        right = np.einsum("kux,xu->", weights, law)
        return 50 * (1 - right) + np.einsum("kux,x,k->", weights, law.sum(1), TIMES.astype(float))

    costs = [cost(room) for room in (0.05, 0.2, 0.5, 2.0)]
    assert (np.diff(costs) <= 1e-6).all()
    assert costs[-1] < costs[0] <= cost(0.5, blind_weights)


@pytest.mark.parametrize("episodes", [20, 300, 3_000, 10**5])
def test_cells_that_a_sample_cannot_support_are_closed(episodes):
    program = program_of(5, 0.5, episodes)
    weights = safe_weights(program, reach(episodes, MISTAKE))
    used = weights.max(1) > 0
    limits = upper_limits(
        weights, weights @ slopes(program.moments, program.limit), program.moments, program.prior.sum(1),
        reach(episodes, MISTAKE),
    )  # fmt: skip
    assert limits[used].max() < program.limit
    # With few episodes nothing can be said about any answer but the blind one.
    assert (weights[:2].max() == 1) == (episodes == 20)


def test_the_excess_is_that_of_the_sample():
    rng = np.random.default_rng(0)
    belief = rng.dirichlet(np.ones(4), 500).reshape(-1, 2, 2)
    source = rng.integers(0, 8, 500)
    weights, slope, prior = rng.random((3, 8)), rng.random((3, 2)), np.array([0.4, 0.6])
    of = moments(belief, source, np.full(500, 1 / 500), 500)
    found = excesses(weights, slope, of, prior, np.full(3, 0.7), reach(500, 0.01))
    for cell in range(3):
        for s in range(2):
            k, c, b = weights[cell, source], slope[cell, s], belief[:, s].sum(1)
            values = k * (b - 0.7) - c * (b - prior[s])
            ends = [k * (end - 0.7) - c * (end - prior[s]) for k in weights[cell] for end in (0.0, 1.0)]
            log = np.log(2 / 0.01)
            expected = values.mean() + np.sqrt(2 * log * values.var(ddof=1) / 500)
            expected += 7 * log * (max(ends) - min(ends)) / (3 * 499)
            assert found[cell, s] == pytest.approx(expected)


@pytest.mark.parametrize("episodes", [20, 3_000, 10**5])
def test_tangents_touch_the_excess(episodes):
    program, near = program_of(5, 0.5, episodes), reach(episodes, MISTAKE)
    rng = np.random.default_rng(0)
    weights = rng.random((5, len(program.moments.mass)))
    slope = tangents_of(program, weights, near)
    # The excess grows in proportion to the weights, so the tangent meets it there, and it is convex, so nowhere above.
    assert np.einsum("csx,cx->cs", slope, weights) == pytest.approx(excesses_of(program, weights, near), rel=1e-6)
    other = rng.random(weights.shape)
    assert (np.einsum("csx,cx->cs", slope, other) <= excesses_of(program, other, near) + 1e-9).all()


def test_limits_hold_more_often_than_they_must():
    belief, source, chance = random_law(1)
    rng = np.random.default_rng(2)
    weights = rng.random((5, len(TIMES) * 2))
    whole = moments(belief, source, chance)
    prior = whole.secret.sum(0)
    true = (weights @ whole.secret / (weights @ whole.mass)[:, None]).max(1)
    misses = 0
    for _ in range(200):
        drawn = rng.choice(len(chance), 400, p=chance)
        sample = moments(belief[drawn], source[drawn], np.full(400, 1 / 400), 400)
        limits = upper_limits(weights, weights @ slopes(whole, 0.7), sample, prior, reach(400, 0.1))
        misses += (limits < true).sum()
    # One in ten may miss; Bernstein's bound is far more careful.
    assert misses <= 0.1 * 5 * 200


def test_answers_come_at_times_that_are_worth_waiting_for():
    releases = np.repeat([1, 2, 3, 4, 5, 9, 30], [4000, 5000, 50, 589, 300, 60, 1])
    assert answer_times(releases).tolist() == [0, 1, 2, 4, 9]
    assert answer_times(np.zeros(10, int)).tolist() == [0]


@pytest.fixture(scope="module")
def private():
    settings = Settings(rounds=20, groups=2, lanes=64, rollout=4, width=16, learning_rate=1e-2)
    return value_iteration(Process.of(private_task(task(0.6))), 0, settings)


def task(limit: float) -> Task:
    return Task(two_binary_sensors(), Confidence(limit), enforcement=AnswerOnly(), horizon=40)


@pytest.fixture(scope="module")
def made(private):
    return answer(task(0.6), private, 0, 2**15)


def test_a_small_problem_from_end_to_end(made):
    assert made.rule.highest_confidence < made.rule.highest_limit < 0.6
    records = made.simulate(2**16, seed=3)
    evaluation = summarise(records, 3)
    # Between the exact optimum without a bound and stopping at once; better than releasing under a penalty (12.88).
    assert 7.18 < evaluation.cost.value < 12.8
    assert evaluation.violation_rate.value == 0
    assert records.highest_confidence.max() < 0.6
    # What the rule publishes is what drawn secrets and useful values say, cell by cell.
    _, cell, count = np.unique(
        np.column_stack([records.releases, records.belief[:, 0]]), axis=0, return_inverse=True, return_counts=True
    )
    for c in np.flatnonzero(count > 200):
        here = cell == c
        # Five standard errors, of this sample and of the published one.
        margin = 5 * 0.5 * np.sqrt(1 / here.sum() + 2 / here.sum())
        drawn = np.zeros((2, 2))
        np.add.at(drawn, (records.secret[here], records.useful[here]), 1 / here.sum())
        assert abs(drawn - records.belief[here][0]).max() < margin


def test_the_answer_comes_after_private_reading(made, private):
    hidden, seen = private_episodes(private, made.rule.last, 8192, 4), made.simulate(8192, 4)
    assert (hidden.secret == seen.secret).all()
    blind = made.rule.chances[-1, -1, 0].sum()
    # 8192 episodes: five standard errors of a share are at most 0.028.
    assert np.mean(seen.releases < hidden.releases) <= blind + 0.028
    assert (seen.releases[seen.releases > 0] >= hidden.releases[seen.releases > 0]).all()
    assert set(best_guess(hidden)) == {0, 1}


def test_without_room_the_answer_is_blind_and_costs_what_stopping_at_once_does(private):
    evaluation = summarise(answer(task(0.5001), private, 0, 2**13).simulate(2000, 0), 0)
    assert evaluation.cost.value == pytest.approx(25.0)
    assert evaluation.releases.value == 0
    assert evaluation.spent_bits.value == pytest.approx(0, abs=1e-9)


def test_a_rule_is_deterministic_and_must_fit_its_bound(made, private):
    one, again = made.rule, answer(task(0.6), private, 0, 2**15).rule
    assert all(np.array_equal(getattr(one, name), getattr(again, name)) for name in vars(one))
    with pytest.raises(InputError, match=r"not below the bound 0\.55"):
        Answer(task(0.55), private, one)
    with pytest.raises(InputError, match="does not limit the posterior of a secret"):
        answer(Task(two_binary_sensors(), Information(0.2)), private)
    with pytest.raises(InputError, match="no readings are released"):
        Process.of(task(0.7))
    with pytest.raises(InputError, match="must rise from 0"):
        replace(one, times=one.times[::-1].copy())
    with pytest.raises(InputError, match="each row must sum to one"):
        replace(one, chances=one.chances / 2)
    with pytest.raises(InputError, match="before the reading has ended"):
        replace(one, chances=np.ascontiguousarray(one.chances[::-1]))
    with pytest.raises(InputError, match="probabilities that sum to one"):
        replace(one, on_answer=2 * one.on_answer)
