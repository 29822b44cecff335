"""Daily and Sports Activities (UCI 256): body-worn units (Altun, Barshan, Tuncel, Pattern Recognition 43, 2010)."""

import re
from collections import Counter
from pathlib import Path

import polars as pl

from reticent.data.archive import find_archive
from reticent.data.csv import read_csv
from reticent.data.recordings import Recordings, recordings
from reticent.errors import InputError

WHERE_FROM = (
    "Get daily+and+sports+activities.zip from https://archive.ics.uci.edu/dataset/256 and put it into the data folder."
)
RATE, SEGMENT_SECONDS = 25, 5
UNITS = ("torso", "right arm", "left arm", "right leg", "left leg")
MEASURED = ("accelerometer", "gyroscope", "magnetometer")
LINEAR = "linear accelerometer"
STILL, MOVING, OUTSIDE, INSIDE = "still", "moving", "no elevator", "elevator"
# Activity code to (secret, useful): standing and walking, each in an elevator and elsewhere.
LABELS = {"a02": (OUTSIDE, STILL), "a07": (INSIDE, STILL), "a08": (INSIDE, MOVING), "a09": (OUTSIDE, MOVING)}
# What gravity is, as far as a device can tell while it happens: a running mean that forgets half in this time.
GRAVITY_HALF_LIFE_SECONDS = 0.5
FILE = re.compile(r"(?:^|/)(a\d\d)/p(\d+)/s(\d+)\.txt$")


def load_dsa(folder: Path, unit: str = "right arm") -> Recordings:
    """U is still or moving, S whether in an elevator; one body unit. Each person and activity is one recording."""
    if unit not in UNITS:
        raise InputError(f"The unit of DSA is one of {list(UNITS)}, not {unit!r}.")
    name = "daily+and+sports+activities"
    archive = find_archive(folder, (f"{name}.zip", name, "data"), WHERE_FROM)
    files = {name: found for name in archive.names if (found := FILE.search(name))}
    used = [name for name, found in files.items() if found[1] in LABELS]
    if not used:
        raise InputError(f"{str(archive.path)!r} holds no aXX/pY/sZZ.txt of the activities {list(LABELS)}.")
    others = Counter(found[1] for found in files.values() if found[1] not in LABELS)
    notes = [f"{count} files of the activity {name!r} are not used." for name, count in sorted(others.items())]
    parts = [_segment(name, content, unit, *files[name].groups()) for name, content in archive.read(used)]
    samples = pl.concat(parts).sort("session", "person", "time")
    return recordings(
        samples.with_columns(_linear()), (*MEASURED, LINEAR), (OUTSIDE, INSIDE), (STILL, MOVING), tuple(notes)
    )


def _segment(name: str, content: bytes, unit: str, activity: str, person: str, segment: str) -> pl.DataFrame:
    columns = [f"{u}/{sensor}.{axis}" for u in UNITS for sensor in MEASURED for axis in "xyz"]
    samples = read_csv(content, name, columns, header=False)
    if len(samples) != RATE * SEGMENT_SECONDS:
        raise InputError(f"{name!r} has {len(samples)} lines where {RATE * SEGMENT_SECONDS} are expected: truncated?")
    secret, useful = LABELS[activity]
    own = [column for column in columns if column.startswith(f"{unit}/")]
    return samples.select(
        pl.lit(activity).alias("session"),
        pl.lit(person).alias("person"),
        ((int(segment) - 1) * SEGMENT_SECONDS + pl.int_range(pl.len()) / RATE).alias("time"),
        pl.lit(secret).alias("secret"),
        pl.lit(useful).alias("useful"),
        *(pl.col(column).alias(column.removeprefix(f"{unit}/")) for column in own),
    )


def _linear() -> list[pl.Expr]:
    """Acceleration without gravity, from the past only: a live device could compute the same."""
    gravity = {
        axis: pl.col(f"accelerometer.{axis}").ewm_mean(half_life=GRAVITY_HALF_LIFE_SECONDS * RATE, adjust=False)
        for axis in "xyz"
    }
    return [
        (pl.col(f"accelerometer.{axis}") - gravity[axis].over("session", "person")).alias(f"{LINEAR}.{axis}")
        for axis in "xyz"
    ]
