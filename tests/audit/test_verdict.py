"""What the verdict says of findings that are given, and of traces whose leak is planted."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.audit.audit import audit_traces
from reticent.audit.comparison import SameUtility
from reticent.audit.findings import EVERYTHING, OWN, RANDOM, Attack, Check, title
from reticent.audit.measures import Resampler, named
from reticent.audit.policy_audit import Audited, PolicyAudit
from reticent.audit.traces import Names, Traces
from reticent.audit.verdict import NOT_REFUTED, Audit, Outcome
from reticent.evaluate.estimate import Estimate

STRONG = named(np.eye(2), np.arange(2), np.arange(2), Resampler(np.arange(2)))
WEAK = named(np.full((2, 2), 0.5), np.zeros(2, int), np.arange(2), Resampler(np.arange(2)))
pytestmark = pytest.mark.usefixtures("quick_attackers")


def estimate(low, value, high):
    return Estimate(value, low, high, "bootstrap")


def with_balanced(numbers, low, value, high):
    return replace(numbers, balanced=estimate(low, value, high))


def found(**changed):
    """An audit of 3,000 episodes in which nothing was found."""
    attack = Attack("naive Bayes", OWN, with_balanced(WEAK, 0.48, 0.5, 0.52), with_balanced(WEAK, 0.88, 0.9, 0.92))
    about = {"episodes": 3000, "people": None, "splits": 1, "secrets": ("a", "b"), "useful": ("u", "v"), "limit": None}
    about |= {"guess_secret": 0.5, "guess_useful": 0.5, "enforce": None, "claimed": False, "contenders": 3}
    about |= {"strongest": attack, "headline": estimate(0.47, 0.51, 0.54), "surest": None, "attacks": [attack]}
    about |= {"observers": [attack], "by_sensor": [], "by_step": [], "over_time": [], "learning": [], "linked": None}
    about |= {"calibration": [], "calibration_error": 0.0, "calibrated": "", "channels": [], "leakage": None}
    return Audit(**{**about, "checks": [], **changed})


def seen(observer, secret, useful=(0.5, 0.5, 0.5)):
    return Attack("n-grams", OWN, with_balanced(WEAK, *secret), with_balanced(WEAK, *useful), None, observer)


def test_it_begins_with_the_outcome():
    assert found().verdict[0].startswith("No leak found, up to 54.0 %: the strongest of 3 attackers, naive Bayes (")
    leaks = found(headline=estimate(0.7, 0.8, 0.9))
    assert leaks.verdict[0].startswith("It leaks: ")
    assert "in 80.0 % [70.0, 90.0] of episodes" in leaks.verdict[0]
    few = found(people=3, headline=estimate(0.7, 0.8, 0.9))
    assert few.verdict[0].startswith("Cannot tell, because only 3 people were judged, and 10 are needed")
    wide = found(episodes=120, headline=estimate(0.45, 0.6, 0.75))
    assert wide.verdict[0].startswith("Cannot tell, because 120 judged episodes are too few: ")
    # Wide, but clear.
    assert found(headline=estimate(0.55, 0.7, 0.85)).outcome == Outcome.LEAKS


def test_beliefs_that_move_are_a_leak_though_no_guess_is_better():
    moved = found(surest=found().strongest)
    assert moved.outcome == Outcome.LEAKS
    assert "believes more in the true secret than before" in moved.verdict[0]


@pytest.mark.parametrize(("shows_leak", "outcome"), [(True, Outcome.LEAKS), (False, Outcome.NONE_FOUND)])
def test_what_must_be_so_and_is_not_comes_before_the_rest(shows_leak, outcome):
    failed = found(checks=[Check("x", False, "It is not so.", shows_leak)])
    assert failed.outcome == outcome
    assert failed.verdict[1] == "Check failed: It is not so."
    assert failed.passed is False


def test_it_says_where_the_leak_is():
    leaks = {"headline": estimate(0.8, 0.84, 0.88)}
    step, weak = seen("release 3 only", (0.79, 0.83, 0.86)), seen("sensor 'x' only", (0.52, 0.55, 0.58))
    strong, none = seen("sensor 'y' only", (0.69, 0.7, 0.71)), seen("release 1 only", (0.5, 0.5, 0.5))
    where = found(**leaks, by_step=[none, step], by_sensor=[weak, strong]).verdict[1]
    assert where == (
        "Where: an observer of release 3 only names the secret correctly in 83.0 % [79.0, 86.0]; "
        "an observer of sensor 'y' only names the secret correctly in 70.0 % [69.0, 71.0]."
    )
    # What tells less than half of the leak does not carry it.
    assert "sensor 'x'" not in found(**leaks, by_step=[step], by_sensor=[weak]).verdict[1]
    together = found(**leaks, by_sensor=[weak]).verdict[1]
    assert together.startswith(
        "Where: in no sensor and no release alone, but in how they go together; an observer of sensor"
    )
    assert not any(sentence.startswith("Where") for sentence in found(by_step=[step]).verdict)


def test_a_sensor_that_tells_as_much_and_gives_away_less_is_a_cheaper_alternative():
    leaks = {"headline": estimate(0.8, 0.84, 0.88)}
    good, useless = ("sensor 'x' only", (0.49, 0.52, 0.55)), ("sensor 'y' only", (0.49, 0.5, 0.51))
    told = found(**leaks, by_sensor=[seen(*good, useful=(0.86, 0.89, 0.91)), seen(*useless)]).verdict[-1]
    assert told.startswith("A cheaper alternative: sensor 'x' only tells as much of the useful value (89.0 % ")
    assert "less of the secret (52.0 % [49.0, 55.0], to n-grams)" in told
    assert not any("cheaper" in sentence for sentence in found(**leaks, by_sensor=[seen(*useless)]).verdict)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ((0.55, 0.6, 0.65), "gives away less: the secret is named correctly in 60.0 % [55.0, 65.0], of this policy in"),
        ((0.65, 0.7, 0.75), "may give away no more"),
        ((0.85, 0.9, 0.95), None),
    ],
)
def test_a_simpler_policy_that_gives_away_less_belongs_into_the_verdict(other, words):
    own = Audited(estimate(0.9, 0.9, 0.9), estimate(0.7, 0.75, 0.8))
    same = [SameUtility("fixed sensor", "heart", estimate(*other)), SameUtility("random sensor", "", None)]
    told = PolicyAudit(found(), own, [], same).to_json()["verdict"][-1]
    assert ("A cheaper alternative: fixed sensor, heart, without bound" in told) == (words is not None)
    assert words is None or words in told


def test_a_claim_that_nothing_could_be_checked_of():
    claimed = found(
        people=4, limit=0.6, claimed=True, attacks=[replace(found().strongest, over=estimate(0.0, 0.0, 0.1))]
    )
    assert claimed.passed is None
    assert not claimed.checkable
    assert any(sentence.startswith("The claim that no belief reaches 0.6 could not") for sentence in claimed.verdict)
    assert not found(people=4).checkable
    assert found().checkable
    assert replace(claimed, checks=[Check("x", True, "So.")]).checkable


def test_titles_say_what_was_learned_from_and_seen():
    numbers = STRONG, WEAK
    assert title(Attack("Bayes", "model", *numbers)) == "Bayes"
    assert title(Attack("LSTM", RANDOM, *numbers)) == "LSTM (random traces)"
    less = Attack("LSTM", OWN, *numbers, None, "sensor choices only", 2500)
    assert title(less) == "LSTM (the policy's own traces, 2,500 episodes, observing sensor choices only)"


def ordered(count=3000, seed=0):
    """Noise of eight symbols; the secret says in which order two sensors speak, wherever in the episode that is."""
    rng = np.random.default_rng(seed)
    secret, start = rng.integers(2, size=count), rng.integers(2, size=count)
    honest = np.where(rng.random(count) < 0.85, secret, 1 - secret)
    sensor = (np.arange(4)[None] * (1 + 2 * honest[:, None]) + start[:, None]) % 4
    names = Names(tuple("abcd"), tuple("01234567"), ("0", "1"), ("u", "v"))
    symbol = rng.integers(8, size=(count, 4))
    people, useful = np.arange(count), rng.integers(2, size=count)
    return Traces(sensor, symbol, None, np.ones(count, bool), people, secret, useful, names)


def test_the_headline_is_the_maximum_over_attackers_and_observers():
    # Naive Bayes sees no order at all; who sees only which sensors spoke finds it more easily than who sees all.
    audit = audit_traces(ordered(1200))
    tried = [*audit.attacks, *audit.observers, *audit.by_sensor, *audit.by_step]
    assert audit.headline.value == max(each.secret.balanced.value for each in tried)
    assert audit.strongest.observer == "sensor choices only"
    assert max(each.secret.balanced.value for each in audit.attacks) < audit.headline.value
    assert "observing sensor choices only) names" in audit.verdict[0].replace("), names", ") names")
    assert audit.verdict[1].startswith("Where: ")
    assert "an observer of sensor choices only names the secret correctly in" in audit.verdict[1]
    # Four standard errors of 600 judged episodes are .06.
    assert audit.headline.value == pytest.approx(0.85, abs=0.06)


def test_the_release_that_carries_the_leak_is_named():
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=1000)
    symbol = rng.integers(2, size=(1000, 3))
    symbol[:, 1] = np.where(rng.random(1000) < 0.8, secret, 1 - secret)
    names = Names(("x",), ("0", "1"), ("a", "b"), ("u", "v"))
    traces = Traces(
        np.zeros((1000, 3), int), symbol, None, np.ones(1000, bool), np.arange(1000), secret,
        rng.integers(2, size=1000), names,
    )  # fmt: skip
    audit = audit_traces(traces)
    assert audit.verdict[1].startswith("Where: an observer of release 2 only names the secret correctly in ")
    assert {attack.observer for attack in audit.observers} > {EVERYTHING, "stopping time only"}


def test_a_claim_is_refuted_by_accuracy_alone():
    audit = audit_traces(ordered(1200), claimed=0.6)
    assert [(check.name, check.passed) for check in audit.checks] == [(NOT_REFUTED, False)]
    assert audit.outcome == Outcome.LEAKS
    [failed] = [sentence for sentence in audit.verdict if sentence.startswith("Check failed: ")]
    assert failed.startswith("Check failed: The bound 0.6 does not hold: ")
    # Nobody is right in 97 %, and nobody is that sure and right.
    assert audit_traces(ordered(1200), claimed=0.97).passed


def test_a_claim_is_refuted_by_the_episodes_where_an_attacker_is_sure():
    # One episode in five tells everything, the others nothing: right in 60 % of all, in 100 % of those.
    rng = np.random.default_rng(0)
    secret, tells = rng.integers(2, size=2000), rng.random(2000) < 0.2
    names = Names(("x",), ("0", "1", "2"), ("a", "b"), ("u", "v"))
    traces = Traces(
        np.zeros((2000, 1), int), np.where(tells, secret, 2)[:, None], None, np.ones(2000, bool), np.arange(2000),
        secret, rng.integers(2, size=2000), names,
    )  # fmt: skip
    audit = audit_traces(traces, claimed=0.9)
    assert audit.headline.high < 0.9
    assert [check.passed for check in audit.checks] == [False]
    assert "those where it believes 0.9 or more" in audit.checks[0].sentence
