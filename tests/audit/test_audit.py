"""The audit as a whole: what it says of policies whose leak is known, and of traces that are not as they should be."""

import json
from dataclasses import replace
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from reticent.audit.attackers import Counting, Logistic
from reticent.audit.audit import audit_traces
from reticent.audit.comparison import Point, at_same_utility
from reticent.audit.findings import Attack, Audit
from reticent.audit.leakage import channel_leakage, policy_leakage
from reticent.audit.measures import Resampler, calibration, calibration_error, named
from reticent.audit.play import play
from reticent.audit.trace_files import read_traces, write_traces
from reticent.audit.traces import NOTHING, Names, Traces
from reticent.belief.information import secret_information_bits
from reticent.errors import InputError
from reticent.estimate import exact
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import NO_BOUND, ConfidenceBound
from reticent.problem.model import ReleaseModel
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.release import ReleaseProcess
from reticent.process.rollout import simulate_traced

MODEL = two_binary_sensors()
FREE = Task(MODEL, NO_BOUND, horizon=4)
KEPT = Task(MODEL, ConfidenceBound(0.8), enforce="withhold", horizon=4)


@pytest.fixture(autouse=True)
def quick_attackers(monkeypatch):
    """Those that learn in no time: the others have tests of their own."""
    monkeypatch.setattr("reticent.audit.audit._learned", lambda seed, tell: [Counting, lambda: Logistic(seed)])
    monkeypatch.setattr("reticent.audit.audit._quick", lambda seed: [Counting, lambda: Logistic(seed)])


def released(task, count=6000, seed=0, threshold=0.95):
    return play(task, ReleaseProcess(task), RandomSensor(jnp.asarray(threshold)), count, seed)[1]


def test_an_open_policy_is_found_open_and_bayes_is_honest():
    found = audit_traces(released(FREE), FREE)
    assert found.passed
    assert {check.name for check in found.checks} == {"exact Bayes is honest", "nobody beats exact Bayes"}
    best = found.strongest
    assert best.secret.balanced.low > 0.55
    exact = next(attack for attack in found.attacks if attack.fitted_on == "the model")
    # Accuracy and confidence of an exact belief are the same number, up to chance.
    assert abs(exact.secret.accuracy.value - exact.secret.confidence.value) < 0.03
    assert "names the secret correctly in" in found.verdict[0]
    assert json.loads(json.dumps(found.to_json()))["passed"] is True


def test_a_silent_policy_does_not_beat_guessing():
    found = audit_traces(released(FREE, threshold=0.0), FREE)
    assert found.strongest.secret.balanced.value == pytest.approx(0.5, abs=0.03)
    assert "which it does not clearly beat" in found.verdict[0]
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
    spoke = planted != NOTHING
    likelihood = np.where(spoke[:, :, None, None], MODEL.channel[planted, :, :, symbol], 1.0)
    found = audit_traces(replace(traces, sensor=planted, symbol=symbol, likelihood=likelihood), FREE)
    assert not found.passed
    assert found.verdict[0].startswith("Not as it must be")
    assert "more than the model and the public rule explain" in found.verdict[0]
    # What exact Bayes would call the leakage is not all that leaks.
    assert found.leakage is None
    metadata = next(each for each in found.observers if each.observer == "which sensors")
    silent = next(each for each in found.observers if each.observer == "when it stopped")
    assert metadata.secret.balanced.low > silent.secret.balanced.high + 0.1


@pytest.mark.slow
def test_the_bound_is_checked_under_a_guarantee():
    found = audit_traces(released(KEPT), KEPT)
    assert found.passed
    assert [check.name for check in found.checks][-1] == "the bound holds"
    # Nothing happened in 3,000 episodes: the interval says how often it may yet.
    assert any("reaches the bound 0.8 in 0.0 % [0.0, 0.1]" in sentence for sentence in found.verdict)
    # The same traces under a promise that was never made.
    broken = audit_traces(released(KEPT), replace(KEPT, bound=ConfidenceBound(0.6)))
    assert [check.passed for check in broken.checks if check.name == "the bound holds"] == [False]


class Spy(Counting):
    """Remembers whom it met, and whom it judged."""

    judged: ClassVar[list] = []

    def fit(self, traces):
        self.met = set(traces.person)
        super().fit(traces)

    def confidence(self, traces):
        assert not self.met & set(traces.person)
        Spy.judged += np.unique(traces.person).tolist()
        return super().confidence(traces)


def test_people_are_judged_by_attackers_who_have_not_met_them(monkeypatch):
    for place in ("_learned", "_quick"):
        monkeypatch.setattr(f"reticent.audit.audit.{place}", lambda *_: [Spy])
    traces = released(FREE, count=1200)
    traces = replace(traces, person=np.arange(1200) % 6, likelihood=None)
    random = replace(released(FREE, count=600, seed=1), person=np.arange(600) % 6, likelihood=None)
    found = audit_traces(traces, random=random)
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
    secret = (rng.random(6000) < 0.9).astype(int)
    symbol = (rng.random(6000) < np.where(secret, 0.3, 0.9)).astype(int)
    found = audit_traces(said(secret, symbol))
    # The likeliest secret is always the frequent one; telling both apart as well as can be is right in (.9 + .7) / 2.
    assert found.strongest.secret.balanced.value == pytest.approx(0.8, abs=0.05)
    assert found.strongest.secret.accuracy.value == pytest.approx(0.9, abs=0.02)
    assert "does not clearly beat" not in found.verdict[0]


def test_a_side_channel_about_a_rare_secret_is_caught():
    rng = np.random.default_rng(0)
    secret = (rng.random(6000) < 0.9).astype(int)
    sensor = (rng.random(6000) < np.where(secret, 0.3, 0.9)).astype(int)[:, None]
    prior = np.array([[0.05, 0.05], [0.45, 0.45]])
    model = ReleaseModel(prior, np.full((2, 2, 2, 2), 0.5), ("rare", "frequent"), ("u", "v"), ("x", "y"), ("0", "1"))
    likelihood = np.full((6000, 1, 2, 2), 0.5)
    traces = said(secret, rng.integers(2, size=6000), sensor=sensor, likelihood=likelihood)
    found = audit_traces(traces, Task(model, NO_BOUND))
    assert not found.passed
    assert "bits about the secret" in found.verdict[0]


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
    assert "all 50 episodes of a person" in told.verdict[2]
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


def test_the_verdict_allows_for_having_chosen_the_strongest():
    # Forty audits of noise: a claim in each twentieth would be two; four standard deviations more are eight.
    rng = np.random.default_rng(0)
    claims = 0
    for _ in range(40):
        found = audit_traces(said(rng.integers(2, size=600), rng.integers(2, size=600)))
        claims += "does not clearly beat" not in found.verdict[0]
        assert found.headline.low <= found.strongest.secret.balanced.low
    assert claims <= 7


def test_a_belief_that_is_always_wrong_is_not_honest():
    model = ReleaseModel(
        np.array([[0.5, 0.5], [0.0, 0.0]]), np.full((2, 2, 2, 2), 0.5), ("a", "b"), ("u", "v"), ("x", "y"), ("0", "1")
    )
    likelihood = np.full((400, 1, 2, 2), 0.5)
    traces = said(np.ones(400, int), np.zeros(400, int), likelihood=likelihood)
    traces = replace(traces, secret=np.where(np.arange(400) < 4, 0, 1))
    found = audit_traces(traces, Task(model, NO_BOUND))
    assert not next(check for check in found.checks if check.name == "exact Bayes is honest").passed


def test_the_end_of_the_longest_episodes_counts():
    secret = np.arange(600) % 2
    found = audit_traces(said(secret, np.zeros(600, int), stopped=secret == 1))
    ends = next(each for each in found.observers if each.observer == "when it stopped")
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


def test_what_there_is_nothing_to_find_in_is_refused():
    traces = released(FREE, count=300)
    with pytest.raises(InputError, match="same secret value"):
        audit_traces(traces.take(traces.secret == 0))
    with pytest.raises(InputError, match="one person"):
        audit_traces(replace(traces, person=np.zeros(300, int)))


def test_leakage_of_a_channel_by_hand():
    # A sensor that tells two secrets apart, with prior (.75, .25): .811 bits, one at most, log2(4/3) in guesses.
    model = ReleaseModel(
        np.array([[0.75], [0.25]]), np.eye(2).reshape(1, 2, 1, 2), ("a", "b"), ("u",), ("x",), ("0", "1")
    )
    [found] = channel_leakage(model)
    assert found.shannon_bits == pytest.approx(0.8112781)
    assert found.min_entropy_bits == pytest.approx(np.log2(4 / 3))
    assert found.maximal_bits == pytest.approx(1.0)


def test_leakage_of_channels_is_the_information_of_one_release():
    for each, bits in zip(
        channel_leakage(MODEL),
        secret_information_bits(jnp.asarray(MODEL.prior), jnp.asarray(MODEL.channel)),
        strict=True,
    ):
        assert each.shannon_bits == pytest.approx(float(bits), abs=1e-9)
        assert each.shannon_bits <= each.maximal_bits
        assert each.min_entropy_bits <= each.maximal_bits + 1e-12


def test_leakage_of_a_policy_over_all_its_traces():
    # Four beliefs, equally likely: the sums over them are exact.
    belief = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    found = policy_leakage(belief, np.array([0.5, 0.5]), Resampler(np.arange(4)))
    assert found.shannon_bits.value == pytest.approx(0.5)
    assert found.vulnerability.value == pytest.approx(0.75)
    assert found.min_entropy_bits.value == pytest.approx(np.log2(1.5))
    assert found.maximal_bits.value == pytest.approx(np.log2(1.5))


def test_measures_by_hand():
    belief = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    truth = np.array([0, 0, 1, 1])
    found = named(belief, belief.argmax(1), truth, Resampler(np.arange(4)))
    assert found.accuracy.value == 0.75
    assert found.balanced.value == 0.75
    assert [one.value for one in found.per_class if one] == [1.0, 0.5]
    assert found.highest_confidence == 0.9
    assert found.confidence.value == pytest.approx(0.75)
    assert found.bits.value == pytest.approx(1 + np.log2([0.9, 0.8, 0.7, 0.4]).mean())
    bins = calibration(belief, truth, Resampler(np.arange(4)))
    assert sum(each.episodes for each in bins) == 4
    assert calibration_error(bins) == pytest.approx((0.1 + 0.2 + 0.3 + 0.6) / 4)


def test_the_bootstrap_is_over_people():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(20), 500)
    # Whole people are right or wrong: 10,000 episodes are worth twenty.
    right = np.repeat(rng.random(20) < 0.5, 500).astype(float)
    by_person = Resampler(person).ratio(right)
    by_episode = Resampler(np.arange(10_000)).ratio(right)
    assert by_person.high - by_person.low > 10 * (by_episode.high - by_episode.low)
    # A binomial of twenty has a standard error of .11; Student's t goes 2.09 of them to each side.
    assert by_person.high - by_person.low == pytest.approx(2 * 2.09 * 0.112, rel=0.25)


def test_intervals_over_few_people_hold_what_they_say():
    # Six people, whose means are normal: the plain percentiles of draws hold the truth in 83 % of the cases.
    rng = np.random.default_rng(0)
    found = [Resampler(np.arange(6), seed).ratio(rng.normal(size=6)) for seed in range(400)]
    share = np.mean([each.low <= 0 <= each.high for each in found])
    # The standard error is .011.
    assert share == pytest.approx(0.95, abs=0.035)


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


class TestFiles:
    """Traces from Parquet files, of this system or of another."""

    @pytest.fixture
    def written(self, tmp_path):
        process = ReleaseProcess(KEPT)
        records, sent = simulate_traced(process, RandomSensor(jnp.asarray(0.95)).act, 500, 0)
        write_traces(tmp_path / "t.parquet", KEPT, process, records, sent)
        return tmp_path / "t.parquet", records

    def test_our_own_are_read_back_with_their_task_and_exact_beliefs(self, written):
        path, records = written
        file = read_traces(path, 1000)
        assert file.task is not None
        assert file.task.bound == KEPT.bound
        assert (file.traces.length == np.asarray(records.releases)).all()
        assert (file.traces.secret == np.asarray(records.secret)).all()
        belief = file.traces.likelihood
        assert belief is not None
        belief = MODEL.prior * belief.prod(1)
        assert np.allclose(belief / belief.sum((1, 2), keepdims=True), records.belief)

    def test_of_too_many_episodes_a_random_part_is_read(self, written):
        path, _ = written
        file = read_traces(path, 100)
        assert 60 < len(file.traces) < 140
        assert file.episodes == 500
        assert "drawn at random" in file.notes[0]

    def test_others_with_readings_and_people(self, tmp_path):
        rng = np.random.default_rng(0)
        rows = [
            {"episode": 7 * e, "step": t, "sensor": "heart", "reading": [float(rng.normal()), 1.0 * t]}
            | {"secret": e % 2, "useful": "sit" if e % 3 else "walk", "person": f"p{e % 4}"}
            for e in range(40)
            for t in range(1 + e % 3)
        ]
        rng.shuffle(rows)
        path = tmp_path / "other.parquet"
        pl.DataFrame(rows).write_parquet(path)
        file = read_traces(path, 1000)
        assert file.task is None
        assert file.traces.reading is not None
        assert file.traces.reading.shape == (40, 3, 2)
        assert (file.traces.length == 1 + np.arange(40) % 3).all()
        # In units of what is usual: 0, 1, 2 are equally far apart.
        assert np.diff(file.traces.reading[2, :, 1], 2) == pytest.approx([0], abs=1e-6)
        assert (np.diff(file.traces.reading[2, :, 1]) > 0).all()
        assert (file.traces.person == np.arange(40) % 4).all()
        assert not file.traces.stopped.any()
        assert file.traces.names.secrets == ("0", "1")

    def test_people_have_the_same_number_in_tables_that_lack_some(self, tmp_path):
        people = pl.Enum(["anna", "berta", "carla"])
        table = pl.DataFrame({"episode": [0, 1], "step": [0, 0], "sensor": ["x", "x"], "symbol": ["0", "1"]})
        table = table.with_columns(secret=pl.Series([0, 1]), useful=pl.Series([0, 1]))
        table.with_columns(person=pl.Series(["carla", "berta"], dtype=people)).write_parquet(tmp_path / "t.parquet")
        assert read_traces(tmp_path / "t.parquet", 10).traces.person.tolist() == [2, 1]

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (lambda t: t.drop("secret"), r"\['secret'\] are missing"),
            (lambda t: t.drop("symbol"), "One of the columns"),
            (lambda t: t.with_columns(sensor=None), "'sensor' has 4 empty cells"),
            (lambda t: t.with_columns(secret=pl.Series(["a", "b", "a", "b"])), "'secret' changes within"),
            (lambda t: t.with_columns(step=pl.lit(0)), "step 0 more than once"),
            (lambda t: t.with_columns(sensor=pl.Series(["stop", "x", "x", "stop"])), "goes on after its stop"),
            (lambda t: t.with_columns(symbol=pl.Series(["1", None, "1", "1"])), "1 releases have no symbol"),
            (lambda t: t.with_columns(step=pl.Series([0.5, 1, 0, 1])), "whole numbers"),
            (lambda t: t.with_columns(secret=pl.Series([[1], [1], [2], [2]])), "'secret' must hold names"),
            (lambda t: t.with_columns(useful=pl.Series([0.5, 0.5, 1, 1])), "'useful' must hold names"),
            (lambda t: t.with_columns(sensor=pl.Series([["x"]] * 4)), "'sensor' must hold names"),
            (
                lambda t: t.drop("symbol").with_columns(reading=pl.Series([1, 2, 3, 4]).cast(pl.Decimal(10, 2))),
                "must hold numbers",
            ),
            (lambda t: t.drop("symbol").with_columns(reading=pl.Series([1e300, 2, 3, 4])), "in other units"),
            (lambda t: t.rename({"symbol": "reading"}), "must hold numbers"),
            (lambda t: t.clear(), "no rows"),
            (lambda t: t.with_columns(person=pl.Series(["p", "p", "q", None])), "'person' has 1 empty cells"),
            (lambda t: t.drop("symbol").with_columns(reading=pl.Series([[1.0], [1.0, 2.0], [1.0], None])), "as many"),
            (
                lambda t: t.drop("symbol").with_columns(reading=pl.Series([[], [], [], []], dtype=pl.List(float))),
                "without",
            ),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, change, sentence):
        table = pl.DataFrame(
            {
                "episode": [0, 0, 1, 1],
                "step": [0, 1, 0, 1],
                "sensor": ["x", "x", "x", "stop"],
                "symbol": ["1", "0", "1", None],
                "secret": ["a", "a", "b", "b"],
                "useful": ["u", "u", "v", "v"],
            }
        )
        path = tmp_path / "t.parquet"
        table.write_parquet(path)
        assert len(read_traces(path, 10).traces) == 2
        change(table).write_parquet(path)
        with pytest.raises(InputError, match=sentence):
            read_traces(path, 10)

    def test_the_public_rule_may_be_lists_but_must_be_chances(self, written, tmp_path):
        path, _ = written
        table, header = pl.read_parquet(path), pl.read_parquet_metadata(path)["reticent"]
        other = tmp_path / "other.parquet"

        def read(chances):
            table.with_columns(chances).write_parquet(other, metadata={"reticent": header})
            return read_traces(other, 1000).traces

        column = pl.col("chances")
        as_lists, as_arrays = read(column.arr.to_list()), read_traces(path, 1000).traces
        assert np.array_equal(as_lists.likelihood, as_arrays.likelihood)  # type: ignore[arg-type]
        for wrong, sentence in (
            (column.arr.to_list().list.head(1), "the model has 2 symbols"),
            (column.arr.to_list().list.eval(5 * pl.element()), "no chances"),
            (pl.lit(None, column_type(table)).alias("chances"), "empty cells at releases"),
        ):
            with pytest.raises(InputError, match=sentence):
                read(wrong)

    def test_small_differences_of_large_readings_count(self, tmp_path):
        rng, secret = np.random.default_rng(0), np.arange(600) % 2
        base = {"episode": np.arange(600), "step": np.zeros(600, int), "sensor": ["clock"] * 600}
        base |= {"secret": secret, "useful": np.arange(600) // 2 % 2}
        path = tmp_path / "large.parquet"
        pl.DataFrame({**base, "reading": 1.7e9 + 30 * secret + 5 * rng.random(600)}).write_parquet(path)
        assert audit_traces(read_traces(path, 1000).traces).strongest.secret.balanced.value > 0.99
        with pytest.raises(InputError, match="leave --problem out"):
            read_traces(path, 1000, MODEL)

    def test_what_attackers_cannot_see_is_said(self, tmp_path):
        count = 3000
        base = {"episode": np.repeat(np.arange(count), 2), "step": np.tile([0, 5], count), "sensor": ["x"] * 2 * count}
        secret = np.repeat(np.where(np.arange(count) < 2, 2, np.arange(count) % 2), 2)
        base |= {"symbol": ["0"] * 2 * count, "secret": secret, "useful": np.repeat(np.arange(count) // 2 % 2, 2)}
        path = tmp_path / "gaps.parquet"
        pl.DataFrame(base).write_parquet(path)
        notes = " ".join(read_traces(path, 100).notes)
        assert "No episode with the secret ['2'] was drawn" in notes
        assert "have gaps" in notes

    def test_a_system_that_never_says_anything(self, tmp_path):
        path = tmp_path / "silent.parquet"
        base = {"episode": np.arange(400), "step": np.zeros(400, int), "sensor": ["stop"] * 400}
        base |= {"secret": np.arange(400) % 2, "useful": np.arange(400) // 2 % 2}
        for column in ({"symbol": [None] * 400}, {"reading": pl.Series([None] * 400, dtype=pl.Float64)}):
            pl.DataFrame({**base, **column}).write_parquet(path)
            found = audit_traces(read_traces(path, 1000).traces)
            assert found.strongest.secret.balanced.value == pytest.approx(0.5, abs=0.01)

    def test_a_model_that_is_not_of_these_traces_is_refused(self, written, tmp_path):
        with pytest.raises(InputError, match="Cannot read"):
            read_traces(tmp_path / "nothing.parquet", 10)
        (tmp_path / "text.parquet").write_text("no parquet")
        with pytest.raises(InputError, match="Cannot read"):
            read_traces(tmp_path / "text.parquet", 10)
        other = replace(MODEL, sensors=("left", "right"))
        with pytest.raises(InputError, match="does not know the sensor"):
            read_traces(written[0], 1000, other)


def column_type(table):
    return table.schema["chances"]


def test_an_audit_says_who_is_strongest():
    numbers = named(np.eye(2), np.arange(2), np.arange(2), Resampler(np.arange(2)))
    weak = named(np.full((2, 2), 0.5), np.zeros(2, int), np.arange(2), Resampler(np.arange(2)))
    attacks = [
        Attack("weak", "random traces", weak, numbers, None),
        Attack("strong", "the policy's own traces", numbers, weak, None),
    ]
    about = {"episodes": 2, "people": None, "splits": 1, "secrets": ("a", "b"), "useful": ("u", "v"), "limit": None}
    about |= {"guess_secret": 0.5, "guess_useful": 0.5, "enforce": None, "headline": numbers.balanced, "linked": None}
    about |= {"over_time": [], "learning": [], "observers": [], "calibration": [], "calibration_error": 0.0}
    found = Audit(**about, attacks=attacks, calibrated="", channels=[], leakage=None, checks=[])
    assert found.strongest.attacker == "strong"
    assert "strong (the policy's own traces), names the secret correctly in 100.0 %" in found.verdict[0]
    assert "(weak (random traces))" in found.verdict[1]
