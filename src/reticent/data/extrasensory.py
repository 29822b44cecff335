"""ExtraSensory: phone and watch in everyday life, a row a minute for days (Vaizman, Ellis, Lanckriet, IEEE Pervasive
Computing 16(4), 2017). Labels are self-reported and change: the hidden pair really moves."""

import gzip
import re
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from jaxtyping import Bool, Float

from reticent.data.archive import find_archive
from reticent.data.csv import read_csv
from reticent.data.recordings import Recordings, recordings
from reticent.errors import InputError

WHERE_FROM = (
    "Get ExtraSensory.per_uuid_features_labels.zip from http://extrasensory.ucsd.edu/ and put it into the data folder."
)
FILE = re.compile(r"(?:^|/)([0-9A-F]{8})[0-9A-F-]*\.features_labels\.csv\.gz$")
# Sensor to the prefix of its published features.
SENSORS = {
    "phone accelerometer": "raw_acc",
    "gyroscope": "proc_gyro",
    "watch accelerometer": "watch_acceleration",
    "audio": "audio_naive",
}
# Useful value to the labels that mean it; a minute has it if no label of another is set.
POSTURES = {
    "lying": ("LYING_DOWN",),
    "sitting": ("SITTING",),
    "on feet": ("OR_standing", "FIX_walking"),
}
HOME, AWAY, AT_HOME = "home", "away", "label:LOC_home"
# The label comes from positions that flicker: shorter absences are at home, shorter visits are not.
MINUTE = 60.0
LONGEST_ABSENCE, SHORTEST_VISIT = 30 * MINUTE, 5 * MINUTE


def load_extrasensory(folder: Path) -> Recordings:
    """U is the posture, S whether at home. A sensor without all of its features in a minute was not there."""
    name = "ExtraSensory.per_uuid_features_labels"
    archive = find_archive(folder, (f"{name}.zip", name, "."), WHERE_FROM)
    files = {path: found[1] for path in archive.names if (found := FILE.search(path))}
    if not files:
        raise InputError(f"{str(archive.path)!r} holds no <UUID>.features_labels.csv.gz. {WHERE_FROM}")
    every = pl.concat([_minutes(path, content, files[path]) for path, content in archive.read(files)])
    known = every.drop_nulls(["secret", "useful"])
    notes = [
        *_lost(every.filter(pl.col("secret").is_null()), known, "do not say whether at home"),
        *_lost(every.filter(pl.col("secret").is_not_null(), pl.col("useful").is_null()), known, "have not one posture"),
    ]
    sensors = tuple(SENSORS)
    return recordings(known, sensors, (AWAY, HOME), tuple(POSTURES), tuple(notes), may_lack=sensors)


def _minutes(path: str, content: bytes, person: str) -> pl.DataFrame:
    """All minutes of one person; labels that are not known are null."""
    text = _unpacked(path, content)
    features = _features(path, text.partition(b"\n")[0].decode(errors="replace").strip().split(","))
    labels = [f"label:{label}" for labels in POSTURES.values() for label in labels]
    rows = read_csv(text, path, ["timestamp", *features, *labels, AT_HOME], header=True).sort("timestamp")
    postures = {posture: _set(labels) for posture, labels in POSTURES.items()}
    named = pl.coalesce(pl.when(own).then(pl.lit(posture)) for posture, own in postures.items())
    return rows.select(
        pl.lit(person).alias("session"),
        pl.lit(person).alias("person"),
        pl.col("timestamp").alias("time"),
        _secret(rows),
        pl.when(pl.sum_horizontal(*postures.values()) == 1).then(named).alias("useful"),
        *(pl.col(column).alias(name) for column, name in features.items()),
    )


def _features(path: str, header: list[str]) -> dict[str, str]:
    """The published columns of all sensors, with the names that they get here."""
    found = {}
    for sensor, prefix in SENSORS.items():
        own = [column for column in header if column.startswith(f"{prefix}:")]
        if not own:
            raise InputError(f"{path!r} has no columns {prefix}:*; it has {header[:3]} and {len(header) - 3} others.")
        found |= {column: f"{sensor}.{column.partition(':')[2].replace('.', '_')}" for column in own}
    return found


def _set(labels: tuple[str, ...]) -> pl.Expr:
    """Whether one of these labels is set; one that is missing is not."""
    return pl.any_horizontal((pl.col(f"label:{label}") == 1).fill_null(False) for label in labels)


def _secret(rows: pl.DataFrame) -> pl.Series:
    at_home = rows[AT_HOME].to_numpy()
    told = np.isfinite(at_home)
    settled = settled_at_home(rows["timestamp"].to_numpy()[told], at_home[told] == 1)
    names = np.full(len(rows), None)
    names[told] = np.where(settled, HOME, AWAY)
    return pl.Series("secret", names, dtype=pl.String)


def _lost(lost: pl.DataFrame, known: pl.DataFrame, why: str) -> list[str]:
    """How many minutes are left out, and whose are so altogether."""
    if lost.is_empty():
        return []
    whole = sorted(set(lost["person"]) - set(known["person"]))
    return [f"{len(lost):,} minutes {why}: left out{f', with all of {whole}' if whole else ''}."]


def _unpacked(path: str, content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path!r} is truncated or not compressed by gzip: {error}.") from error


def settled_at_home(time: Float[np.ndarray, " N"], at_home: Bool[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
    """Whether somebody is at home, without flicker: absences of up to half an hour are closed, then visits of under
    five minutes are dropped. A pause of more than half an hour parts what comes before from what comes after."""
    found = at_home.copy()
    for start, end in _runs(time, found):
        followed = end < len(time) and time[end] - time[end - 1] <= LONGEST_ABSENCE
        preceded = start > 0 and time[start] - time[start - 1] <= LONGEST_ABSENCE
        if not at_home[start] and preceded and followed and time[end] - time[start - 1] <= LONGEST_ABSENCE:
            found[start:end] = True
    for start, end in _runs(time, found):
        # A row stands for a minute.
        if found[start] and time[end - 1] - time[start] + MINUTE < SHORTEST_VISIT:
            found[start:end] = False
    return found


def _runs(time: Float[np.ndarray, " N"], label: Bool[np.ndarray, " N"]) -> list[tuple[int, int]]:
    """Where each run of one value begins, and where the next one does; pauses part runs."""
    new = (np.diff(label) != 0) | (np.diff(time) > LONGEST_ABSENCE)
    edges = [0, *(np.flatnonzero(new) + 1).tolist(), len(label)] if len(label) else []
    return list(pairwise(edges))
