"""Traces from files, of this system or of another."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from reticent.audit.audit import audit_traces
from reticent.audit.trace_files import read_traces, write_traces
from reticent.errors import InputError
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Confidence
from reticent.problem.enforcement import Withhold
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate_traced

MODEL = two_binary_sensors()
KEPT = Task(MODEL, Confidence(0.8), enforcement=Withhold(), horizon=4)
pytestmark = pytest.mark.usefixtures("quick_attackers")


@pytest.fixture
def written(tmp_path):
    process = Process.of(KEPT)
    records, sent = simulate_traced(process, RandomSensor(jnp.asarray(0.95)).act, 500, 0)
    write_traces(tmp_path / "t.parquet", KEPT, process, records, sent)
    return tmp_path / "t.parquet", records


def test_our_own_are_read_back_with_their_task_and_exact_beliefs(written):
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


def test_of_too_many_episodes_a_random_part_is_read(written):
    path, _ = written
    file = read_traces(path, 100)
    assert 60 < len(file.traces) < 140
    assert file.episodes == 500
    assert "drawn at random" in file.notes[0]


def test_others_with_readings_and_people(tmp_path):
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


def test_people_have_the_same_number_in_tables_that_lack_some(tmp_path):
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
def test_what_is_wrong_is_said(tmp_path, change, sentence):
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


def test_the_public_rule_may_be_lists_but_must_be_chances(written, tmp_path):
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


def test_small_differences_of_large_readings_count(tmp_path):
    rng, secret = np.random.default_rng(0), np.arange(600) % 2
    base = {"episode": np.arange(600), "step": np.zeros(600, int), "sensor": ["clock"] * 600}
    base |= {"secret": secret, "useful": np.arange(600) // 2 % 2}
    path = tmp_path / "large.parquet"
    pl.DataFrame({**base, "reading": 1.7e9 + 30 * secret + 5 * rng.random(600)}).write_parquet(path)
    assert audit_traces(read_traces(path, 1000).traces).strongest.secret.balanced.value > 0.99
    with pytest.raises(InputError, match="leave --problem out"):
        read_traces(path, 1000, MODEL)


def test_labels_of_which_no_episode_was_drawn_are_told(tmp_path):
    count = 3000
    base = {"episode": np.arange(count), "step": np.zeros(count, int), "sensor": ["x"] * count}
    base |= {"symbol": ["0"] * count, "secret": np.where(np.arange(count) < 2, 2, np.arange(count) % 2)}
    path = tmp_path / "rare.parquet"
    pl.DataFrame({**base, "useful": np.arange(count) // 2 % 2}).write_parquet(path)
    assert "No episode with the secret ['2'] was drawn" in " ".join(read_traces(path, 100).notes)


def test_wide_readings_take_room_too(tmp_path, monkeypatch):
    monkeypatch.setattr("reticent.audit.trace_scan.MOST_NUMBERS", 2**16)
    monkeypatch.setattr("reticent.audit.trace_scan.FEWEST_EPISODES", 10)
    path, count = tmp_path / "wide.parquet", 1000

    def write(width, steps):
        base = {"episode": np.repeat(np.arange(count), steps), "step": np.tile(np.arange(steps), count)}
        base |= {"secret": base["episode"] % 2, "useful": base["episode"] // 2 % 2}
        reading = pl.Series(np.full((count * steps, width), 0.5))
        # What is not read takes no room.
        more = {"comment": pl.Series(["?" * 200] * count * steps)}
        pl.DataFrame({**base, "sensor": ["x"] * count * steps, "reading": reading, **more}).write_parquet(path)

    write(64, 2)
    # Room for 2**16 / (64 x 2) = 512 episodes: about so many are drawn.
    assert 400 < len(read_traces(path, 2000).traces) < 620
    write(64, 110)
    with pytest.raises(
        InputError, match=r"110 steps of 64 numbers each\. Cut episodes of more than 102 into several, or"
    ):
        read_traces(path, 2000)


def test_a_system_that_never_says_anything(tmp_path):
    path = tmp_path / "silent.parquet"
    base = {"episode": np.arange(400), "step": np.zeros(400, int), "sensor": ["stop"] * 400}
    base |= {"secret": np.arange(400) % 2, "useful": np.arange(400) // 2 % 2}
    for column in ({"symbol": [None] * 400}, {"reading": pl.Series([None] * 400, dtype=pl.Float64)}):
        pl.DataFrame({**base, **column}).write_parquet(path)
        found = audit_traces(read_traces(path, 1000).traces)
        assert found.strongest.secret.balanced.value == pytest.approx(0.5, abs=0.01)


def test_a_model_that_is_not_of_these_traces_is_refused(written, tmp_path):
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


def test_csv_and_json_lines_are_read_like_parquet(tmp_path):
    start = datetime(2026, 3, 1, 8)
    table = pl.DataFrame(
        {
            "episode": [0, 0, 1, 1],
            "step": [0, 1, 0, 1],
            "sensor": ["x", "stop", "x", "x"],
            "reading": [[1.0, 2.0], None, [3.0, 4.5], [5.0, 6.0]],
            "secret": ["01", "01", "1", "1"],
            "useful": [True, True, False, False],
            "time": [start, start + timedelta(seconds=2), start, start + timedelta(seconds=9)],
        }
    )
    table.write_parquet(tmp_path / "t.parquet")
    text = table.with_columns(pl.col("time").dt.to_string("%Y-%m-%dT%H:%M:%SZ"))
    text.write_ndjson(tmp_path / "t.jsonl")
    lists = pl.col("reading").map_elements(lambda x: json.dumps(x.to_list()), pl.String)
    text.with_columns(lists).write_csv(tmp_path / "t.csv")
    first, *others = (read_traces(tmp_path / f"t.{ending}", 10).traces for ending in ("parquet", "csv", "jsonl"))
    assert first.waits is not None
    assert first.waits.shape == (2, 3, 1)
    for other in others:
        assert np.array_equal(other.sensor, first.sensor)
        assert np.array_equal(other.reading, first.reading)  # type: ignore[arg-type]
        assert np.array_equal(other.waits, first.waits)  # type: ignore[arg-type]
        assert other.names.secrets == ("01", "1")
        assert other.stopped.tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("t.csv", "episode,step,sensor,symbol,secret,useful\nzero,0,x,1,a,u\n", "as CSV: .*episode"),
        ("t.csv", "episode,step,sensor,symbol,secret\n0,0,x,1,a\n", r"\['useful'\] are missing"),
        ("t.csv", "episode,step,sensor,symbol,secret,useful,time\n0,0,x,1,a,u,soon\n", "as CSV: "),
        ("t.csv", "", "as CSV: "),
        ("t.jsonl", '{"episode": 0,\n', "as JSON lines: "),
    ],
)
def test_text_that_is_no_table_is_refused(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_traces(tmp_path / name, 10)


def test_a_clock_that_goes_back_is_refused(tmp_path):
    table = pl.DataFrame({"episode": [0, 0, 1], "step": [0, 1, 0], "sensor": ["x"] * 3, "symbol": ["0"] * 3})
    table = table.with_columns(secret=pl.lit("a"), useful=pl.lit("u"), time=pl.Series([5.0, 4.0, 0.0]))
    table.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'time' goes back in episode 0, at step 1"):
        read_traces(tmp_path / "t.parquet", 10)
