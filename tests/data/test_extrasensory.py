"""The loader of ExtraSensory: its published layout, missing sensors, and a home that flickers."""

import gzip
import os
import time
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reticent.data.dwell import dwells
from reticent.data.extrasensory import load_extrasensory, settled_at_home
from reticent.data.readings import readings
from reticent.errors import InputError
from reticent.fit.model import fit_model
from reticent.fit.transition import mean_stays

DATA = Path(os.environ.get("RETICENT_DATA") or Path(__file__).parents[3] / "shared" / "data")
FIRST, SECOND = "0A986513-7828-4D53-AA1F-E02D6DF9561B", "CDA3BBF7-6631-45E8-85BA-EEB416B32A3C"
FEATURES = [
    *("raw_acc:magnitude_stats:mean", "raw_acc:3d:mean_x", "proc_gyro:3d:mean_x"),
    *("watch_acceleration:3d:mean_x", "audio_naive:mfcc0:mean", "location:num_valid_updates"),
]
LABELS = ["LYING_DOWN", "SITTING", "FIX_walking", "LOC_home", "OR_standing", "SLEEPING"]


def write_person(folder: Path, uuid: str, changes: dict | None = None) -> pl.DataFrame:
    """Forty minutes: lies, sits, walks and stands for ten each; at home in the first half."""
    minutes = 40
    rng, turn = np.random.default_rng(0), np.arange(minutes) // 10 % 4
    table = pl.DataFrame({"timestamp": 1444079161 + 60 * np.arange(minutes)})
    table = table.with_columns(**{name: pl.Series(rng.normal(size=minutes)) for name in FEATURES})
    set_at = {"LYING_DOWN": turn == 0, "SITTING": turn == 1, "FIX_walking": turn == 2, "OR_standing": turn == 3}
    set_at |= {"LOC_home": np.arange(minutes) < minutes // 2, "SLEEPING": turn == 0}
    table = table.with_columns(**{f"label:{name}": pl.Series(set_at[name] * 1.0) for name in LABELS})
    table = table.with_columns(label_source=pl.lit(2), **(changes or {}))
    text = table.write_csv(line_terminator="\r\n", null_value="nan")
    (folder / f"{uuid}.features_labels.csv.gz").write_bytes(gzip.compress(text.encode()))
    return table


def test_the_published_layout(tmp_path):
    table = write_person(tmp_path, FIRST)
    recorded = load_extrasensory(tmp_path)
    assert recorded.people == ("0A986513",)
    assert recorded.sensors == ("phone accelerometer", "gyroscope", "watch accelerometer", "audio")
    assert recorded.axes("phone accelerometer") == [
        *("phone accelerometer.magnitude_stats:mean", "phone accelerometer.3d:mean_x")
    ]
    assert recorded.interval == 60.0
    assert recorded.table["secret"].to_list() == ["home"] * 20 + ["away"] * 20
    assert recorded.table["useful"].to_list() == ["lying"] * 10 + ["sitting"] * 10 + ["on feet"] * 20
    # One unbroken recording, in which both labels change.
    assert recorded.table["stretch"].n_unique() == 1
    assert recorded.table["stream"].n_unique() == 3
    assert np.allclose(recorded.table["audio.mfcc0:mean"], table["audio_naive:mfcc0:mean"], atol=1e-6)
    assert dwells(recorded)[1].mean_seconds == 20 * 60.0


def test_archive_and_folder_are_read_alike(tmp_path):
    for uuid in (FIRST, SECOND):
        write_person(tmp_path, uuid)
    (tmp_path / "zipped").mkdir()
    with zipfile.ZipFile(tmp_path / "zipped" / "ExtraSensory.per_uuid_features_labels.zip", "w") as archive:
        for path in sorted(tmp_path.glob("*.gz")):
            archive.write(path, path.name)
    assert load_extrasensory(tmp_path / "zipped").table.equals(load_extrasensory(tmp_path).table)


def test_a_sensor_that_is_not_there_is_a_reading(tmp_path):
    minute = pl.int_range(pl.len())
    watch = pl.when(minute >= 15).then(pl.col("watch_acceleration:3d:mean_x"))
    # One feature of the phone lacks once: it is as if the sensor was not there.
    phone = pl.when(minute != 3).then(pl.col("raw_acc:3d:mean_x"))
    write_person(tmp_path, FIRST, {"watch_acceleration:3d:mean_x": watch, "raw_acc:3d:mean_x": phone})
    recorded = load_extrasensory(tmp_path)
    assert len(recorded.table) == 40
    assert "15 of 40 samples are without watch accelerometer: that is a reading of its own." in recorded.notes
    found = readings(recorded)
    assert np.isnan(found.values[:, 2, 0]).tolist() == [True] * 15 + [False] * 25
    assert np.isnan(found.values[:, 0]).any(1).tolist() == [number == 3 for number in range(40)]


def test_minutes_without_one_posture_or_a_home_are_told(tmp_path):
    minute = pl.int_range(pl.len())
    both = pl.when(minute < 12).then(1.0).otherwise(pl.col("label:SITTING"))
    write_person(tmp_path, FIRST, {"label:SITTING": both})
    write_person(tmp_path, SECOND, {"label:LOC_home": pl.lit(None, pl.Float64)})
    recorded = load_extrasensory(tmp_path)
    assert recorded.people == ("0A986513",)
    assert "10 minutes have not one posture: left out." in recorded.notes
    assert "40 minutes do not say whether at home: left out, with all of ['CDA3BBF7']." in recorded.notes
    assert len(recorded.table) == 30


@pytest.mark.parametrize(
    ("at_home", "settled"),
    [
        # Absences of up to half an hour are closed, a longer one is not.
        ([1] * 9 + [0] * 29 + [1] * 9, [1] * 47),
        ([1] * 9 + [0] * 30 + [1] * 9, None),
        # A visit of under five minutes is dropped, alone or before somebody leaves for long.
        ([0] * 40 + [1] * 4 + [0] * 40, [0] * 84),
        ([0] * 40 + [1] * 5 + [0] * 40, None),
        # Flickers that make up a longer stay are one.
        ([0] * 40 + [1, 0] * 3 + [1] + [0] * 40, [0] * 40 + [1] * 7 + [0] * 40),
        # What began before or ends after the recording is no absence.
        ([0] * 3 + [1] * 5 + [0] * 3, None),
    ],
)
def test_home_without_flicker(at_home, settled):
    label = np.array(at_home, bool)
    expected = label if settled is None else np.array(settled, bool)
    assert settled_at_home(60.0 * np.arange(len(label)), label).tolist() == expected.tolist()


def test_a_long_pause_parts_visits():
    # Two minutes at home before a pause of hours, two after: neither is a visit.
    times = 60.0 * np.array([*range(10), *range(300, 310)])
    label = np.isin(np.arange(20), [8, 9, 10, 11])
    assert not settled_at_home(times, label).any()
    assert settled_at_home(60.0 * np.arange(0), np.zeros(0, bool)).tolist() == []


def test_what_does_not_fit_is_said(tmp_path):
    with pytest.raises(InputError, match=r"holds no <UUID>.features_labels.csv.gz. Get ExtraSensory"):
        load_extrasensory(tmp_path)
    path = tmp_path / f"{FIRST}.features_labels.csv.gz"
    path.write_bytes(b"no gzip")
    with pytest.raises(InputError, match="truncated or not compressed by gzip"):
        load_extrasensory(tmp_path)
    write_person(tmp_path, FIRST)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="truncated or not compressed by gzip"):
        load_extrasensory(tmp_path)
    path.write_bytes(gzip.compress(b"timestamp,raw_acc:3d:mean_x\r\n1,2\r\n"))
    with pytest.raises(InputError, match=r"no columns proc_gyro:\*"):
        load_extrasensory(tmp_path)


real = pytest.mark.skipif(not DATA.is_dir(), reason=f"no recordings in {DATA}; RETICENT_DATA says where they are")


@real
@pytest.mark.slow
def test_everyday_life():
    began = time.perf_counter()
    recorded = load_extrasensory(DATA)
    assert (len(recorded.people), len(recorded.table), recorded.interval) == (21, 71_424, 60.0)
    minutes = {each.value: (each.mean_seconds or 0.0) / 60 for each in dwells(recorded)}
    assert {name: round(each) for name, each in minutes.items()} == {
        **{"away": 344, "home": 401},
        **{"lying": 271, "sitting": 79, "on feet": 31},
    }
    found = readings(recorded)
    assert np.isnan(found.values[:, 2, 0]).mean() == pytest.approx(0.4418, abs=1e-4)
    model = fit_model(found)
    assert model.symbols[-1] == "not there"
    # The watch is worn at home and away for different shares of the time.
    assert np.ptp(model.channel[2, :, :, -1]) > 0.01
    assert model.transition is not None
    stays = np.concatenate(mean_stays(model.transition, model.prior))
    # Every person counts alike here, every hour above: the same but for this.
    assert np.allclose(stays, list(minutes.values()), rtol=0.15)
    assert time.perf_counter() - began < 300
