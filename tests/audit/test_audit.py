"""The audit as a whole: what it says of policies whose leak is known, and of traces that are not as they should be."""

import json
from dataclasses import replace
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.audit import Context, audit_traces
from reticent.audit.comparison import Point, at_same_utility
from reticent.audit.naive_bayes import NaiveBayes
from reticent.audit.play import play
from reticent.audit.traces import PADDING, Names, Traces
from reticent.audit.verdict import NOT_REFUTED, Outcome
from reticent.errors import InputError
from reticent.evaluate.estimate import exact
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.enforcement import Withhold
from reticent.problem.model import Model
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process

MODEL = two_binary_sensors()
FREE = Task(MODEL, Unbounded(), horizon=4)
KEPT = Task(MODEL, Confidence(0.8), enforcement=Withhold(), horizon=4)
pytestmark = pytest.mark.usefixtures("quick_attackers")


def released(task, count=3000, seed=0, threshold=0.95):
    return play(task, Process.of(task), RandomSensor(jnp.asarray(threshold)), count, seed)[1]


def test_an_open_policy_is_found_open_and_bayes_is_honest():
    found = audit_traces(released(FREE), FREE)
    assert found.passed
    assert {check.name for check in found.checks} == {"exact Bayes is calibrated", "no attacker beats exact Bayes"}
    best = found.strongest
    assert best.secret.balanced.low > 0.55
    exact = next(attack for attack in found.attacks if attack.fitted_on == "model")
    # Accuracy and confidence of an exact belief are the same number, up to chance.
    assert abs(exact.secret.accuracy.value - exact.secret.confidence.value) < 0.03
    assert found.outcome == Outcome.LEAKS
    assert found.verdict[0].startswith("It leaks: the strongest of")
    assert json.loads(json.dumps(found.to_json()))["passed"] is True


def test_a_silent_policy_does_not_beat_guessing():
    found = audit_traces(released(FREE, threshold=0.0), FREE)
    assert found.strongest.secret.balanced.value == pytest.approx(0.5, abs=0.03)
    assert found.outcome == Outcome.NONE_FOUND
    assert found.verdict[0].startswith(f"No leak found, up to {100 * found.headline.high:.1f} %: ")
    assert found.leakage is not None
    assert found.leakage.shannon_bits.value == pytest.approx(0.0, abs=1e-9)
    assert found.leakage.maximal_bits.value == pytest.approx(0.0, abs=1e-9)


def test_a_planted_side_channel_is_caught():
    traces = released(FREE)
    # The sensor that speaks last is chosen by the secret; what it says is drawn from the model as ever.
    planted = traces.sensor.copy()
    last = np.maximum(traces.length - 1, 0)
    planted[np.arange(len(traces)), last] = traces.secret
    assert traces.symbol is not None
    rng = np.random.default_rng(0)
    one = rng.random(len(traces)) < MODEL.channel[traces.secret, traces.secret, traces.useful, 1]
    symbol = traces.symbol.copy()
    symbol[np.arange(len(traces)), last] = one
    spoke = planted != PADDING
    likelihood = np.where(spoke[:, :, None, None], MODEL.channel[planted, :, :, symbol], 1.0)
    found = audit_traces(replace(traces, sensor=planted, symbol=symbol, likelihood=likelihood), FREE)
    assert not found.passed
    assert found.outcome == Outcome.LEAKS
    [failed] = [sentence for sentence in found.verdict if sentence.startswith("Check failed: ")]
    assert "more than the model and the public rule explain" in failed
    # What exact Bayes would call the leakage is not all that leaks.
    assert found.leakage is None
    metadata = next(each for each in found.observers if each.observer == "sensor choices only")
    silent = next(each for each in found.observers if each.observer == "stopping time only")
    assert metadata.secret.balanced.low > silent.secret.balanced.high + 0.1


@pytest.mark.slow
def test_the_bound_is_checked_under_a_guarantee():
    found = audit_traces(released(KEPT), KEPT)
    assert found.passed
    assert [check.name for check in found.checks][-2:] == ["the bound holds", NOT_REFUTED]
    # Nothing happened in 1,500 judged episodes: the interval says how often it may yet.
    assert any("reaches the bound 0.8 in 0.0 % [0.0, 0.2]" in sentence for sentence in found.verdict)
    # The same traces under a promise that was never made.
    broken = audit_traces(released(KEPT), replace(KEPT, bound=Confidence(0.6)))
    assert [check.passed for check in broken.checks if check.name == "the bound holds"] == [False]


def test_what_others_claim_is_checked():
    traces = released(FREE)
    found = audit_traces(traces, FREE, claimed=0.7)
    assert [check.passed for check in found.checks if check.name == "the bound holds"] == [False]
    with pytest.raises(InputError, match="reached before anything is sent"):
        audit_traces(traces, claimed=0.5)
    # Without a model nobody's belief proves anything, but attackers' beliefs are counted, and accuracy may refute.
    unknown = audit_traces(replace(traces, likelihood=None), claimed=0.9)
    assert [(check.name, check.passed) for check in unknown.checks] == [(NOT_REFUTED, True)]
    assert all(attack.over is not None for attack in unknown.attacks)
    assert any("reaches the bound 0.9 in" in sentence for sentence in unknown.verdict)
    assert any("is not refuted by accuracy" in sentence for sentence in unknown.verdict)


def test_every_number_says_what_it_is():
    found = audit_traces(released(FREE, 1000), FREE).to_json()
    told = {name.strip() for key in found["kinds"] for name in key.split(":")[0].split(",")}
    counts = {"episodes", "people", "splits", "contenders"}
    words = {"outcome", "verdict", "how_to_read", "passed", "checkable", "claimed", "kinds", "secrets", "useful"}
    words |= {"enforce", "calibrated", "checks", "notes"}
    assert found.keys() - counts - words <= told


class Spy(NaiveBayes):
    """Remembers whom it met, and whom it judged."""

    judged: ClassVar[list] = []

    def fit(self, traces):
        self.met = set(traces.person)
        super().fit(traces)

    def posterior(self, traces):
        assert not self.met & set(traces.person)
        Spy.judged += np.unique(traces.person).tolist()
        return super().posterior(traces)


def test_people_are_judged_by_attackers_who_have_not_met_them(monkeypatch):
    for place in ("full_panel", "quick_panel", "part_panel"):
        monkeypatch.setattr(f"reticent.audit.panel.{place}", lambda *_: [Spy])
    traces = released(FREE, count=1200)
    traces = replace(traces, person=np.arange(1200) % 6, likelihood=None)
    random = replace(released(FREE, count=600, seed=1), person=np.arange(600) % 6, likelihood=None)
    found = audit_traces(traces, context=Context(random))
    assert found.people == 6
    assert found.splits == 5
    assert not found.checks
    assert set(Spy.judged) == set(range(6))


def said(secret, symbol, **changed):
    """Episodes of one release by one sensor."""
    count = len(secret)
    names = Names(("x", "y"), ("0", "1"), ("rare", "frequent"), ("u", "v"))
    fields = {"sensor": np.zeros((count, 1), int), "symbol": np.asarray(symbol)[:, None], "reading": None}
    fields |= {"stopped": np.ones(count, bool), "person": np.arange(count), "secret": np.asarray(secret)}
    return Traces(**{**fields, "useful": np.arange(count) % 2, "names": names, **changed})


def test_a_rare_secret_is_found_out():
    rng = np.random.default_rng(0)
    secret = (rng.random(3000) < 0.9).astype(int)
    symbol = (rng.random(3000) < np.where(secret, 0.3, 0.9)).astype(int)
    found = audit_traces(said(secret, symbol))
    # The likeliest secret is always the frequent one; telling both apart as well as can be is right in (.9 + .7) / 2.
    assert found.strongest.secret.balanced.value == pytest.approx(0.8, abs=0.05)
    assert found.strongest.secret.accuracy.value == pytest.approx(0.9, abs=0.02)
    assert found.outcome == Outcome.LEAKS


def test_a_side_channel_about_a_rare_secret_is_caught():
    rng = np.random.default_rng(0)
    secret = (rng.random(3000) < 0.9).astype(int)
    sensor = (rng.random(3000) < np.where(secret, 0.3, 0.9)).astype(int)[:, None]
    prior = np.array([[0.05, 0.05], [0.45, 0.45]])
    model = Model(prior, np.full((2, 2, 2, 2), 0.5), ("rare", "frequent"), ("u", "v"), ("x", "y"), ("0", "1"))
    likelihood = np.full((3000, 1, 2, 2), 0.5)
    traces = said(secret, rng.integers(2, size=3000), sensor=sensor, likelihood=likelihood)
    found = audit_traces(traces, Task(model, Unbounded()))
    assert not found.passed
    assert any("bits about the secret" in check.sentence for check in found.checks if not check.passed)


@pytest.mark.parametrize("people", [4, 6, 10, 60])
def test_people_with_a_secret_for_good_are_dealt_out_fairly(people):
    rng = np.random.default_rng(0)
    person = np.arange(1200) % people
    silent = audit_traces(said(person % 2, np.zeros(1200, int), person=person))
    assert silent.strongest.secret.balanced.value == pytest.approx(0.5, abs=0.01)
    told = audit_traces(said(person % 2, (rng.random(1200) < 0.3 + 0.4 * (person % 2)).astype(int), person=person))
    # Four standard errors of 600 episodes are .08.
    assert told.strongest.secret.balanced.value == pytest.approx(0.7, abs=0.08)
    assert any("narrower than they should be" in note for note in told.notes) == (people < 10)
    with pytest.raises(InputError, match="Too few people have the secret"):
        audit_traces(said((person == 0).astype(int), np.zeros(1200, int), person=person))


def test_who_adds_up_episodes_finds_people_out():
    rng = np.random.default_rng(0)
    person = np.arange(3000) % 60
    told = audit_traces(said(person % 2, (rng.random(3000) < 0.4 + 0.2 * (person % 2)).astype(int), person=person))
    assert told.linked is not None
    assert (told.linked.people, told.linked.episodes_each) == (30, 50)
    # One episode is right in 60 %; the mean of fifty lies 1.4 deviations on the right side: right in 92 %.
    assert told.strongest.secret.balanced.value == pytest.approx(0.6, abs=0.06)
    assert told.linked.secret.value > 0.8
    assert any("all 50 episodes of a person" in sentence for sentence in told.verdict)
    changing = audit_traces(said(rng.integers(2, size=3000), np.zeros(3000, int), person=person))
    assert changing.linked is None


def test_guessing_is_among_the_classes_that_came():
    rng = np.random.default_rng(0)
    names = Names(("x", "y"), ("0", "1"), ("rare", "frequent", "never"), ("u", "v"))
    found = audit_traces(said(rng.integers(2, size=2000), rng.integers(2, size=2000), names=names))
    assert found.guess_secret == 0.5
    assert "guessing gives 50.0 %, which it does not clearly beat" in found.verdict[0]


def test_few_episodes_of_a_class_are_told_and_leave_room():
    rng = np.random.default_rng(0)
    secret = (rng.permutation(2000) >= 30).astype(int)
    found = audit_traces(said(secret, secret))
    [note] = found.notes
    assert "judged episodes have the secret value 'rare'" in note
    rare = found.strongest.secret.per_class[0]
    assert rare is not None
    assert rare.value == 1.0
    # All of some fifteen were named right: that many of others need not be.
    assert rare.low < 0.85
    assert found.strongest.secret.balanced.low < 0.93


def test_the_verdict_allows_for_having_chosen_the_strongest(monkeypatch):
    # Each of six attackers guesses at random, so that one of them is lucky: with 95 % intervals one in seven audits
    # would claim a leak. Thirty audits with intervals for all at once claim at most 1.5 in the mean; four standard
    # deviations more are six.
    monkeypatch.setattr("reticent.audit.panel.full_panel", lambda seed, progress: [NaiveBayes])
    monkeypatch.setattr("reticent.audit.panel.quick_panel", lambda seed: [NaiveBayes])
    monkeypatch.setattr("reticent.audit.trial.CURVE", ())
    monkeypatch.setattr("reticent.audit.measures.MOST_DRAWS", 400)
    rng = np.random.default_rng(0)
    claims = lucky = 0
    for _ in range(30):
        noise = rng.integers(3, size=(400, 5))
        names = Names(("x", "y"), ("0", "1", "2"), ("a", "b"), ("u", "v"))
        traces = said(rng.integers(2, size=400), noise[:, 0], names=names)
        found = audit_traces(replace(traces, symbol=noise, sensor=rng.integers(2, size=(400, 5))))
        claims += found.outcome == Outcome.LEAKS
        lucky += found.strongest.secret.balanced.low > 0.5
        assert found.headline.low <= found.strongest.secret.balanced.low
    assert claims <= 6
    assert lucky > claims


def test_a_belief_that_is_always_wrong_is_not_honest():
    model = Model(
        np.array([[0.5, 0.5], [0.0, 0.0]]), np.full((2, 2, 2, 2), 0.5), ("a", "b"), ("u", "v"), ("x", "y"), ("0", "1")
    )
    likelihood = np.full((400, 1, 2, 2), 0.5)
    traces = said(np.ones(400, int), np.zeros(400, int), likelihood=likelihood)
    traces = replace(traces, secret=np.where(np.arange(400) < 4, 0, 1))
    found = audit_traces(traces, Task(model, Unbounded()))
    assert not next(check for check in found.checks if check.name == "exact Bayes is calibrated").passed


def test_the_end_of_the_longest_episodes_counts():
    secret = np.arange(600) % 2
    found = audit_traces(said(secret, np.zeros(600, int), stopped=secret == 1))
    ends = next(each for each in found.observers if each.observer == "stopping time only")
    assert ends.secret.balanced.value == 1.0


def test_few_people_raise_no_false_alarm():
    traces = released(FREE, count=2000)
    # Of eight people seven have the same secret, by chance: all is drawn from the model.
    of_one = np.flatnonzero(traces.secret == 1)[:700]
    of_other = np.flatnonzero(traces.secret == 0)[:200]
    person = np.concatenate([np.arange(700) % 7, 7 + np.arange(200) % 2])
    found = audit_traces(replace(traces.take(np.concatenate([of_one, of_other])), person=person), FREE)
    assert found.passed is None
    assert not found.checks
    assert found.outcome == Outcome.CANNOT_TELL
    assert found.verdict[0].startswith("Cannot tell, because only 9 people were judged, and 10 are needed")


def test_what_there_is_nothing_to_find_in_is_refused():
    traces = released(FREE, count=300)
    with pytest.raises(InputError, match="same secret value"):
        audit_traces(traces.take(traces.secret == 0))
    with pytest.raises(InputError, match="one person"):
        audit_traces(replace(traces, person=np.zeros(300, int)))


def test_the_same_utility_is_read_off_the_curve():
    def point(policy, variant, useful, secret):
        return Point(policy, variant, 0.0, exact(useful), exact(secret), 1.0)

    points = [
        point("a", "one", 0.5, 0.5),
        point("a", "one", 0.9, 0.7),
        point("a", "two", 0.5, 0.6),
        point("a", "two", 0.9, 0.9),
        point("b", "", 0.8, 0.6),
    ]
    found = at_same_utility(points, 0.7)
    assert [(each.policy, each.variant) for each in found] == [("a", "one"), ("b", "")]
    assert found[0].secret is not None
    assert found[0].secret.value == pytest.approx(0.6)
    assert found[1].secret is None
