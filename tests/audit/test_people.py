"""The verdict over people, of whom some are easier to read than others."""

import numpy as np
import pytest

from reticent.audit.people import PeopleFound, halves, judged_by, strangers, with_recordings
from reticent.audit.posterior import Posterior
from reticent.audit.traces import Names, Traces
from reticent.problem.synthetic import two_binary_sensors
from tests.streams import places_of, readings_of

EACH, PEOPLE = 400, 4
NAMES = tuple("abcd")


def traces(told, seed=0):
    """One release of each episode; of person p it is the secret with probability told[p]."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(len(told)), EACH)
    secret = np.tile([0, 1], len(person) // 2)
    right = rng.random(len(person)) < np.asarray(told)[person]
    return Traces(
        sensor=np.zeros((len(person), 1), int),
        symbol=np.where(right, secret, 1 - secret)[:, None],
        reading=None,
        stopped=np.ones(len(person), bool),
        person=person,
        secret=secret,
        useful=rng.integers(2, size=len(person)),
        names=Names(("a",), ("0", "1"), ("s0", "s1"), ("u0", "u1")),
    )


def test_each_person_is_judged_by_attackers_who_learned_from_the_others():
    found = strangers(traces([0.6, 0.9, 0.6, 0.6]), NAMES, 0.75)
    assert [each.name for each in found.people] == list(NAMES)
    # 200 episodes of each class: four standard errors are .1.
    assert [each.secret.value for each in found.people] == pytest.approx([0.6, 0.9, 0.6, 0.6], abs=0.1)
    assert [each.name for each in found.over] == ["b"]
    assert found.worst.name == "b"
    assert all(each.secret.low < each.secret.value < each.secret.high for each in found.people)
    assert (
        next(found.sentences()) == "Over people: 1 of 4 have their secret named right in more than 0.75 of the cases."
    )


def test_who_has_recordings_of_a_person_learns_what_strangers_have_the_wrong_way_round():
    told = [0.9, 0.9, 0.9, 0.1]
    found = strangers(traces(told), NAMES, None)
    assert found.people[3].secret.value < 0.3
    # Her own recordings count for more where there are many of them.
    mine = traces(told, seed=1)
    many = mine.take(np.concatenate([np.repeat(np.flatnonzero(mine.person == 3), 8), np.flatnonzero(mine.person < 3)]))
    knowing = with_recordings(found, many, traces(told, seed=2), NAMES)
    assert knowing.people[3].knowing is not None
    assert knowing.people[3].knowing.value > 0.8
    assert "points more on average" in list(knowing.sentences())[-1]


def test_an_interval_by_hand():
    """Nine of ten of one class and all of the other: the attacker's guesses are given."""
    own = traces([1.0]).take(np.arange(20))
    guess = own.secret.copy()
    guess[0] = 1 - guess[0]
    said = Posterior(*(np.eye(2)[each] for each in (guess, own.useful)), *(np.full((20, 2), 0.5),) * 2)
    found = judged_by(own, own, ("x",), 0.9, lambda learned, judged: {"given": said})
    assert found.people[0].secret.value == pytest.approx(0.95)
    # Clopper-Pearson of 9 in 10 reaches from .555, of 10 in 10 from .692: half of the root of both squared.
    assert found.people[0].secret.low == pytest.approx(0.95 - np.hypot(0.9 - 0.5550, 1 - 0.6915) / 2, abs=1e-3)


def test_halves_of_every_stream():
    recorded = readings_of(two_binary_sensors(), places_of(two_binary_sensors()), people=2, length=7)
    early, late = halves(recorded)
    assert np.bincount(early.stream).tolist() == [4] * 8
    assert np.bincount(late.stream).tolist() == [3] * 8
    both = np.sort(np.concatenate([early.values, late.values]).reshape(-1))
    assert np.array_equal(both, np.sort(recorded.values.reshape(-1)))


def test_without_a_limit_nobody_is_over_it():
    assert PeopleFound(None, strangers(traces([0.9, 0.9]), NAMES, None).people).over == []
