"""Audits of a hidden pair that moves: files, verdicts, and the largest confidence that is justified."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from scipy import stats

from reticent.audit.justified import justified
from reticent.audit.look_back import RefittedHmm, Smoother
from reticent.audit.measures import Resampler
from reticent.audit.moving_audit import HINDSIGHT, audit_moving
from reticent.audit.moving_traces import MovingTraces
from reticent.audit.trace_files import MovingTraceFile, read_any_traces, read_traces
from reticent.audit.traces import Names
from reticent.audit.trial import AuditOptions
from reticent.audit.verdict import NOT_REFUTED, Outcome
from reticent.errors import InputError
from reticent.policy.policy import NEVER, RandomSensor
from reticent.problem.bound import Confidence
from reticent.problem.monitoring import Monitoring
from reticent.process.days import play_days
from reticent.process.ongoing import OngoingProcess
from tests.lives import MODEL, played, table_of

QUICK = AuditOptions(quick=True)
TRACES = played(16, 150)


def checks(found):
    return {check.name: check.passed for check in found.checks}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few draws for intervals, and nobody who takes long to learn."""
    monkeypatch.setattr("reticent.audit.measures.MOST_DRAWS", 1000)
    monkeypatch.setattr("reticent.audit.moving_audit._panel", lambda options: [RefittedHmm])


def test_the_verdict_tells_hindsight_from_the_moment():
    smoother = Smoother(MODEL)
    early, late = (said(TRACES).secret.max() for said in (smoother.at_the_time, smoother.posterior))
    limit = float(early + late) / 2
    assert early < limit < late
    found = audit_moving(TRACES, MODEL, limit, QUICK)
    assert checks(found) == {HINDSIGHT: False, NOT_REFUTED: True}
    assert found.outcome == Outcome.LEAKS
    assert found.passed is False
    assert any(sentence.startswith("Check failed: With everything released, the belief") for sentence in found.verdict)
    assert f"is {late:.4f} at most; at the moment itself it was {early:.4f} at most" in found.verdict[2]


def test_a_bound_that_holds_and_who_tried(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr("reticent.audit.measures.MOST_DRAWS", 1000)
    above = audit_moving(played(12, 60), MODEL, 0.99, QUICK)
    assert checks(above) == {HINDSIGHT: True, NOT_REFUTED: True}
    assert [attack.attacker for attack in above.attacks] == [
        *("smoother with the model", "refitted HMM", "boosted trees on windows")
    ]
    assert above.justified.right.low <= above.justified.right.value < 0.99
    assert 0.25 < above.silent < 0.42
    record = json.loads(json.dumps(above.to_json()))
    assert f"{record['strongest']}, names the secret of a moment correctly in" in record["verdict"][0]
    assert record["passed"] is True


def test_a_secret_that_is_told_refutes_the_claim():
    told = replace(TRACES, sensor=np.zeros(len(TRACES), int), symbol=TRACES.secret, likelihood=None)
    found = audit_moving(told, None, 0.8, QUICK)
    assert checks(found) == {NOT_REFUTED: False}
    # What is never sent otherwise is taken for rare, not for impossible.
    assert found.justified.right.value > 0.99
    assert found.strongest.secret.balanced.value > 0.99
    assert "It leaks" in found.verdict[0]


def test_nothing_told_is_no_leak_and_few_people_are_too_few():
    silent = replace(TRACES, sensor=np.full(len(TRACES), -1), symbol=np.full(len(TRACES), -1), likelihood=None)
    found = audit_moving(silent, None, None, QUICK)
    assert found.outcome == Outcome.NONE_FOUND
    assert found.silent == 1.0
    few = audit_moving(TRACES.take(TRACES.person < 6), None, 0.8, QUICK)
    assert (few.outcome, few.passed, few.checkable) == (Outcome.CANNOT_TELL, None, False)
    assert "only 6 people were judged" in few.verdict[0]


def test_accuracy_is_told_over_time():
    # The secret is told in the first half of each day only.
    early = TRACES.step < 75
    told = replace(TRACES, sensor=np.where(early, 0, -1), symbol=np.where(early, TRACES.secret, -1), likelihood=None)
    found = audit_moving(told, None, None, QUICK)
    by_step = {each.step: each.secret.value for each in found.over_time if each.attacker == "refitted HMM"}
    assert list(by_step) == [19, 38, 57, 75, 94, 113, 132, 150]
    assert by_step[57] > 0.99
    assert by_step[150] < 0.8


def days_of(process: OngoingProcess, days: int) -> MovingTraces:
    """What was released on some days, each of another person; of symbols only the likelihoods."""
    day = play_days(process, RandomSensor(jnp.asarray(NEVER)).act, days, 0)
    sent, episode = day.sent.reshape(-1), np.repeat(np.arange(days), day.secret.shape[1])
    return MovingTraces(
        sensor=np.where(sent, day.action.reshape(-1), -1),
        symbol=np.where(sent, 0, -1),
        episode=episode,
        person=episode,
        secret=day.secret.reshape(-1),
        useful=day.useful.reshape(-1),
        names=Names(MODEL.sensors, ("something",), MODEL.secrets, MODEL.useful),
        likelihood=day.likelihood.reshape(-1, *MODEL.prior.shape),
    )


@pytest.mark.slow
def test_a_guard_of_the_present_alone_fails_in_hindsight_and_the_whole_one_does_not():
    task = Monitoring(MODEL, Confidence(0.7), horizon=200)
    whole = audit_moving(days_of(OngoingProcess(task), 40), MODEL, 0.7, QUICK)
    present = audit_moving(days_of(OngoingProcess.keeping_the_present_only(task), 40), MODEL, 0.7, QUICK)
    assert (checks(whole)[HINDSIGHT], checks(present)[HINDSIGHT]) == (True, False)
    # Of the guard of the present the belief at the time is below the bound all the same.
    sentence = next(check.sentence for check in present.checks if check.name == HINDSIGHT)
    assert float(sentence.partition("it was ")[2].partition(" at most")[0]) < 0.7


def test_one_label_value_or_one_person_is_refused():
    with pytest.raises(InputError, match="All moments have the same useful value, 'u0'"):
        audit_moving(replace(TRACES, useful=np.zeros(len(TRACES), int)))
    with pytest.raises(InputError, match="All moments are of one person"):
        audit_moving(TRACES.take(TRACES.person == 0))


def test_a_justified_confidence_by_hand():
    # Ten people whose secret stays: an attacker is sure of half of the moments of each, and always right there.
    count, people = 40, 10
    person = np.repeat(np.arange(people), count)
    secret = person % 2
    traces = replace(played(people, count), secret=secret)
    sure = np.tile(np.arange(count) < count // 2, people)
    belief = np.where(sure, 0.9, 0.6)[:, None] * np.eye(2)[np.where(sure, secret, 1 - secret)]
    belief = np.where(belief == 0, 1 - belief.sum(1, keepdims=True), belief)
    found = justified({"somebody": belief}, traces, Resampler(person))
    assert (found.attacker, found.threshold, found.share, found.right.value) == ("somebody", 0.9, 0.5, 1.0)
    # As sure as ten independent stays, at a level for five sets: not as 200 moments.
    assert found.right.low == pytest.approx(stats.beta.ppf(0.005, 10, 1))


def test_files_are_read_alike_and_silence_is_a_row(tmp_path):
    table = table_of(TRACES)
    table.write_parquet(tmp_path / "t.parquet")
    table.write_csv(tmp_path / "t.csv")
    table.write_ndjson(tmp_path / "t.jsonl")
    for ending in ("parquet", "csv", "jsonl"):
        file = read_any_traces(tmp_path / f"t.{ending}", 100, MODEL)
        assert isinstance(file, MovingTraceFile)
        assert (file.rows, file.episodes, file.notes) == (len(TRACES), 16, ())
        for name in ("sensor", "symbol", "episode", "person", "secret", "useful", "likelihood"):
            assert np.array_equal(getattr(file.traces, name), getattr(TRACES, name)), name
    assert read_any_traces(tmp_path / "t.csv", 100).traces.likelihood is None
    with pytest.raises(InputError, match="labels change within episodes"):
        read_traces(tmp_path / "t.csv", 100)


def test_the_model_of_the_file_and_the_public_rule_are_used(tmp_path):
    # Everything is sent as one symbol with chances: it tells what the rule says.
    table = table_of(TRACES).with_columns(symbol=pl.when(pl.col("sensor") != "silent").then(pl.lit("merged: u0")))
    rule = pl.Series([[0.2, 0.9]] * len(table)).cast(pl.Array(pl.Float64, 2))
    table = table.with_columns(pl.when(pl.col("sensor") != "silent").then(rule).alias("chances"))
    header = json.dumps({"task": {"problem": MODEL.to_json()}})
    table.write_parquet(tmp_path / "t.parquet", metadata={"reticent": header})
    file = read_any_traces(tmp_path / "t.parquet", 100)
    assert isinstance(file, MovingTraceFile)
    found, spoke = file.traces.likelihood, TRACES.sensor >= 0
    assert found is not None
    expected = np.einsum("asuz,z->asu", MODEL.channel, [0.2, 0.9])[TRACES.sensor[spoke]]
    assert np.allclose(found[spoke], expected)
    assert (found[~spoke] == 1).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.filter(pl.col("step") != 7), "Before step 8 of episode 0 one is missing"),
        (lambda t: pl.concat([t, t.head(1)]), "or it comes twice"),
        (
            lambda t: t.with_columns(
                sensor=pl.when(pl.col("step") == 149).then(pl.lit("stop")).otherwise("sensor"),
                symbol=pl.when(pl.col("step") < 149).then("symbol"),
            ),
            "'secret' changes within 16 episodes; .* there are 16 stops",
        ),
        (lambda t: t.with_columns(person=pl.col("step").cast(pl.String)), "'person' changes within 16 episodes"),
        (lambda t: t.drop("symbol").with_columns(reading=pl.lit(0.5)), "sort readings into codes"),
        (lambda t: t.with_columns(symbol=pl.lit(None, pl.String)), "releases have no symbol"),
    ],
)
def test_what_is_no_row_a_step_is_refused(tmp_path, change, sentence):
    change(table_of(TRACES)).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=sentence):
        read_any_traces(tmp_path / "t.parquet", 100)


def test_long_lives_are_few(tmp_path, monkeypatch):
    monkeypatch.setattr("reticent.audit.trace_scan.MOST_NUMBERS", 150 * 16 * 8)
    table_of(TRACES).write_parquet(tmp_path / "t.parquet")
    file = read_any_traces(tmp_path / "t.parquet", 100)
    assert "About 8 of 16 episodes were drawn at random." in file.notes
