"""A live sensor gets the code that the same samples have in recordings."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.data.readings import ReadingKind, readings
from reticent.data.recordings import recordings
from reticent.errors import InputError
from reticent.fit.model import fit_model
from reticent.gateway.readings import Encoder, Window
from reticent.problem.codebook import Codebook
from reticent.problem.model import Model
from reticent.problem.synthetic import two_binary_sensors

SENSORS = {"arm": ("x", "y", "z"), "hip": ("x",)}


def recorded(seed, rate=20, seconds=30, irregular=False):
    """Three people with all pairs; `hip` has fewer axes than `arm`. Irregular: samples are lost, some in a row."""
    rng = np.random.default_rng(seed)
    tables = []
    for person in range(3):
        for pair in range(4):
            secret, useful = divmod(pair, 2)
            time = 1e5 * person + 100.0 * pair + np.arange(rate * seconds) / rate
            if irregular:
                lost = rng.random(len(time)) < 0.25
                lost[300:320] = True
                lost[460:500] = rng.random(40) < 0.8
                time = time[~lost] + rng.uniform(0, 0.2 / rate, (~lost).sum())
            axes = {
                f"{name}.{axis}": rng.normal(3 * secret, 1 + useful, len(time)) + 100 * (axis == "y")
                for name, own in SENSORS.items()
                for axis in own
            }
            labels = {"session": "one", "person": f"p{person}", "secret": f"s{secret}", "useful": f"u{useful}"}
            tables.append(pl.DataFrame({"time": time, **axes, **labels}))
    return recordings(pl.concat(tables), tuple(SENSORS), ("s0", "s1"), ("u0", "u1"))


def live(encoder, found, sensor):
    """Summaries and codes of every stream, sample by sample, and how many windows were dropped."""
    columns = found.axes(found.sensors[sensor])
    summaries, codes, dropped = [], [], 0
    for person in found.people:
        window = None
        table = found.table.filter(pl.col("person") == person)
        for stream in table["stream"].unique(maintain_order=True):
            for time, *sample in table.filter(pl.col("stream") == stream).select("time", *columns).rows():
                before, gathered = window, encoder.gather(window, sensor, time, sample)
                window = gathered.window
                dropped += gathered.dropped
                if gathered.reading is not None:
                    assert before is not None
                    assert gathered.time == before.last
                    summaries.append(before.summary())
                    codes.append(gathered.reading)
        # Somebody else's sample, much later, ends the last window.
        assert window is not None
        gathered = encoder.gather(window, sensor, window.last + 1e4, [0.0] * len(columns))
        dropped += gathered.dropped
        if gathered.reading is not None:
            summaries.append(window.summary())
            codes.append(gathered.reading)
    return np.array(summaries), codes, dropped


@pytest.mark.parametrize("irregular", [False, True])
def test_live_windows_are_those_of_recordings(irregular):
    found = recorded(0, irregular=irregular)
    summed = readings(found, ReadingKind("window", 2.0))
    model = fit_model(summed, codes=4)
    assert model.fitted is not None
    assert model.fitted["features"] == [6, 2]
    # Through the problem file, as the gateway gets it.
    encoder = Encoder.of(Model.from_json(model.to_json()))
    wanted = Codebook.of(model).codes(summed.values)
    left_out = sum(int(word) for note in summed.notes if "Windows" in note for word in note.split() if word.isdigit())
    assert (left_out > 0) == irregular
    for sensor, features in enumerate(summed.features):
        summaries, codes, dropped = live(encoder, found, sensor)
        assert codes == wanted[:, sensor].tolist()
        # Recordings sum up in 32 bits: 100 has about 1e-5 of rounding.
        assert np.allclose(summaries, summed.values[:, sensor, :features], atol=2e-5)
        assert dropped == left_out


def test_a_sample_can_be_a_reading():
    summed = readings(recorded(1, seconds=4), ReadingKind("sample"))
    model = fit_model(summed, codes=4)
    encoder = Encoder.of(model)
    wanted = Codebook.of(model).codes(summed.values)
    for row in range(0, len(wanted), 7):
        gathered = encoder.gather(None, 0, float(row), summed.values[row, 0].tolist())
        assert (gathered.window, gathered.reading) == (None, wanted[row, 0])
        assert encoder.coded(1, summed.values[row, 1, :1].tolist()) == wanted[row, 1]


def test_names_are_readings_of_every_model():
    model = two_binary_sensors()
    encoder = Encoder.of(model)
    assert [encoder.named(name) for name in model.symbols] == [0, 1]
    with pytest.raises(InputError, match="no symbol 'hot'"):
        encoder.named("hot")
    for asked in (lambda: encoder.coded(0, [1.0]), lambda: encoder.gather(None, 0, 0.0, [1.0])):
        with pytest.raises(InputError, match="knows symbols only"):
            asked()


@pytest.fixture(scope="module")
def encoder():
    return Encoder.of(fit_model(readings(recorded(2), ReadingKind("window", 1.0)), codes=3))


@pytest.mark.parametrize("sample", [[1.0], [1.0] * 4, [1.0, math.nan, 0.0], [math.inf, 0.0, 0.0], [1e39, 0.0, 0.0], []])
def test_what_is_no_sample_is_refused(encoder, sample):
    with pytest.raises(InputError, match="'arm' gives 3 finite numbers"):
        encoder.gather(None, 0, 0.0, sample)
    with pytest.raises(InputError, match="'arm' gives 6 finite numbers"):
        encoder.coded(0, sample)


def test_samples_come_in_order(encoder):
    window = encoder.gather(None, 1, 5.0, [0.0]).window
    for time in (5.0, 4.0, math.nan):
        with pytest.raises(InputError, match="does not come after"):
            encoder.gather(window, 1, time, [0.0])


def test_a_model_that_does_not_know_its_rate_gathers_nothing(encoder):
    model = fit_model(readings(recorded(2), ReadingKind("window", 1.0)), codes=3).to_json()
    del model["fitted"]["interval"], model["fitted"]["features"]
    older = Encoder.of(Model.from_json(model))
    with pytest.raises(InputError, match="how often its sensors were sampled"):
        older.gather(None, 0, 0.0, [1.0, 2.0, 3.0])
    assert older.coded(0, [1.0] * 6) == encoder.coded(0, [1.0] * 6)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=60), st.floats(-1e3, 1e3))
def test_a_window_sums_up_what_was_in_it(encoder, values, start):
    # At 20 samples per second 60 fit into three seconds: the last window is checked.
    window, kept = None, []
    for number, value in enumerate(values):
        gathered = encoder.gather(window, 1, start + number / 20, [value])
        kept = [*kept, value] if window is not None and gathered.window.place == window.place else [value]
        window = gathered.window
    assert isinstance(window, Window)
    assert window.count == len(kept)
    mean, deviation = window.summary()
    assert mean == pytest.approx(np.mean(kept), rel=1e-9, abs=1e-6)
    assert math.exp(deviation) == pytest.approx(max(np.std(kept), 1e-4), rel=1e-6, abs=1e-6)
