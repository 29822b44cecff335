"""A user's own recordings: any CSV or Parquet files, with a small TOML file that says which column is what."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from reticent.data.recordings import Recordings, recordings
from reticent.errors import InputError

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Labels:
    """A column of labels: what to call each value, and which values to leave out. Without names values are names."""

    column: str
    names: Mapping[str, str] | None = None
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableMap:
    """Which files, and which column is what.

    Without `person` each file is a person. `time` is a column of numbers in `time_unit` or of time stamps (ISO 8601);
    without it the samples of a file follow each other at `rate` per second. `columns` names the columns of CSV files
    that have no header.
    """

    files: str
    sensors: Mapping[str, tuple[str, ...]]
    useful: Labels
    secret: Labels
    person: str | None = None
    time: str | None = None
    time_unit: str = "s"
    rate: float | None = None
    columns: tuple[str, ...] | None = None


def load_table(folder: Path, table_map: TableMap, notes: tuple[str, ...] = ()) -> Recordings:
    """Recordings from all files that the map names, in the folder or below it."""
    if not folder.is_dir():
        raise InputError(f"There is no data folder {str(folder)!r}.")
    if Path(table_map.files).is_absolute():
        raise InputError(f"files = {table_map.files!r} must be relative to the data folder.")
    paths = sorted(path for path in folder.glob(table_map.files) if path.is_file())
    if not paths:
        raise InputError(f"No file in {str(folder)!r} is called {table_map.files!r}.")
    samples = pl.concat([_samples(path, table_map) for path in paths])
    secret, secrets, left_secret = _labelled(samples["secret"], table_map.secret, "secret")
    useful, usefuls, left_useful = _labelled(samples["useful"], table_map.useful, "useful")
    samples = samples.with_columns(secret, useful).drop_nulls(["secret", "useful"])
    return recordings(samples, tuple(table_map.sensors), secrets, usefuls, (*notes, *left_secret, *left_useful))


def read_map(path: Path) -> dict[str, Any]:
    """The contents of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read the map {str(path)!r}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The map {str(path)!r} is not TOML: {error}.") from error


def table_map_of(found: dict[str, Any], name: str) -> TableMap:
    """A map from the contents of a TOML file."""
    expected = {"files", "sensors", "useful", "secret", "person", "time", "time_unit", "rate", "columns"}
    check_fields(found, name, expected, ("files", "sensors", "useful", "secret"))
    return TableMap(
        files=text(found, "files", name),
        sensors=sensor_columns(found["sensors"], name),
        useful=_labels_of(found["useful"], f"{name}: useful"),
        secret=_labels_of(found["secret"], f"{name}: secret"),
        **timing(found, name),
    )


def timing(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Who and when, and the columns of files without header."""
    given: dict[str, Any] = {
        field: text(found, field, name) for field in ("person", "time", "time_unit") if field in found
    }
    if given.get("time_unit", "s") not in SECONDS:
        raise InputError(f"{name}: time_unit is one of {list(SECONDS)}, not {given['time_unit']!r}.")
    rate = found.get("rate")
    if ("time" in given) == (rate is not None):
        raise InputError(f"{name}: give either time, a column, or rate, in samples per second.")
    if rate is not None and not (type(rate) in (int, float) and 0 < rate < math.inf):
        raise InputError(f"{name}: rate must be a number of samples per second above 0, but is {rate!r}.")
    if "columns" in found:
        given["columns"] = texts(found["columns"], f"{name}: columns")
    return {**given, "rate": None if rate is None else float(rate)}


def check_fields(found: dict[str, Any], name: str, expected: set[str], needed: tuple[str, ...]) -> None:
    """Refuse a map with fields that nobody reads, or without those that are needed."""
    if unknown := sorted(set(found) - expected):
        raise InputError(f"{name}: unknown fields {unknown}; it may have {sorted(expected)}.")
    if missing := [field for field in needed if field not in found]:
        raise InputError(f"{name}: lacks {missing}.")


def sensor_columns(found: Any, name: str) -> dict[str, tuple[str, ...]]:
    """Sensor to its columns, one per axis."""
    if not isinstance(found, dict) or not found:
        raise InputError(f"{name}: [sensors] must name at least one sensor and its columns.")
    if dotted := [sensor for sensor in found if "." in sensor or "|" in sensor]:
        raise InputError(f"{name}: a sensor's name may hold neither dot nor bar: {dotted}.")
    sensors = {sensor: texts(columns, f"{name}: sensor {sensor!r}") for sensor, columns in found.items()}
    if twice := [sensor for sensor, columns in sensors.items() if len(set(columns)) < len(columns)]:
        raise InputError(f"{name}: the sensors {twice} name a column twice.")
    return sensors


def text(found: dict[str, Any], field: str, name: str) -> str:
    """A field that must be text."""
    if not isinstance(found[field], str) or not found[field]:
        raise InputError(f"{name}: {field} must be text, but is {found[field]!r}.")
    return found[field]


def texts(found: Any, what: str) -> tuple[str, ...]:
    """A field that must be a list of names."""
    if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
        raise InputError(f"{what} must be a list of names, but is {found!r}.")
    return tuple(found)


def _labels_of(found: Any, what: str) -> Labels:
    if not isinstance(found, dict):
        raise InputError(f"{what} must be a table with column, and labels if they are to be renamed.")
    check_fields(found, what, {"column", "labels", "ignore"}, ("column",))
    names = found.get("labels")
    if names is not None and not (isinstance(names, dict) and all(isinstance(n, str) for n in names.values())):
        raise InputError(f"{what}: labels must map each value to a name, but is {names!r}.")
    ignore = texts(found["ignore"], f"{what}: ignore") if "ignore" in found else ()
    if both := sorted(set(names or {}) & set(ignore)):
        raise InputError(f"{what}: {both} are both in labels and in ignore.")
    return Labels(text(found, "column", what), names, ignore)


def _samples(path: Path, table_map: TableMap) -> pl.DataFrame:
    """The samples of one file, with labels as they stand there."""
    frame = _read(path, table_map.columns)
    # A dot parts sensor and axis, so there is none in the axis.
    axes = {
        f"{sensor}.{axis.replace('.', '_')}": axis for sensor, columns in table_map.sensors.items() for axis in columns
    }
    needed = [table_map.person, table_map.time, table_map.useful.column, table_map.secret.column, *axes.values()]
    if missing := sorted({name for name in needed if name is not None} - set(frame.columns)):
        raise InputError(f"The map names the columns {missing}, but {path.name!r} has {frame.columns}.")
    person = pl.lit(path.stem) if table_map.person is None else _as_text(frame, table_map.person)
    if table_map.time is None:
        assert table_map.rate is not None
        time = pl.int_range(pl.len()).cast(pl.Float64) / table_map.rate
    else:
        time = pl.lit(_seconds(frame[table_map.time], SECONDS[table_map.time_unit], path.name))
    try:
        return frame.select(
            pl.lit(str(path)).alias("session"),
            person.alias("person"),
            time.alias("time"),
            _as_text(frame, table_map.secret.column).alias("secret"),
            _as_text(frame, table_map.useful.column).alias("useful"),
            *(pl.col(column).cast(pl.Float64).alias(name) for name, column in axes.items()),
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{path.name!r} holds text where numbers are expected: {str(error).splitlines()[0]}."
        ) from error


def _seconds(times: pl.Series, unit: float, file: str) -> pl.Series:
    """Numbers in the map's unit, or points in time, as seconds. Text is read as ISO 8601, without offset as UTC."""
    if times.dtype.is_temporal():
        return times.dt.epoch("us").cast(pl.Float64) * SECONDS["us"]
    numbers = times.cast(pl.Float64, strict=False)
    if numbers.null_count() == times.null_count():
        return numbers * unit
    found = [None if time is None else _iso_seconds(time) for time in times]
    if bad := [time for time, parsed in zip(times, found, strict=True) if time is not None and parsed is None]:
        # Where numbers stand beside one word, the word is what is wrong.
        shown = next((time for time in bad if pl.Series([time]).cast(pl.Float64, strict=False)[0] is None), bad[0])
        raise InputError(
            f"The time column {times.name!r} of {file!r} holds {shown!r}. Times are all numbers, or all ISO 8601 time "
            "stamps such as 2026-01-31T12:00:05.250+01:00."
        )
    return pl.Series(found, dtype=pl.Float64)


def _iso_seconds(time: str) -> float | None:
    try:
        found = datetime.fromisoformat(time.strip())
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _as_text(frame: pl.DataFrame, column: str) -> pl.Expr:
    """Names and labels as text; 1.0 is 1, whatever else is in the column or in other files."""
    whole = frame.schema[column].is_float() and frame[column].drop_nulls().is_finite().all()
    if whole and (frame[column].drop_nulls() % 1 == 0).all():
        return pl.col(column).cast(pl.Int64).cast(pl.String)
    return pl.col(column).cast(pl.String)


def _read(path: Path, columns: tuple[str, ...] | None) -> pl.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        frame = pl.read_csv(path, has_header=columns is None, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{str(path)!r} cannot be read, it may be truncated: {str(error).splitlines()[0]}.") from error
    if columns is None:
        return frame
    if frame.width != len(columns):
        raise InputError(f"{path.name!r} has {frame.width} columns, but the map names {len(columns)}.")
    return frame.rename(dict(zip(frame.columns, columns, strict=True)))


def _labelled(found: pl.Series, labels: Labels, what: str) -> tuple[pl.Series, tuple[str, ...], list[str]]:
    """The labels by name, null where they are left out; all names; and what was left out."""
    counts = dict(found.drop_nulls().value_counts(sort=True).rows())
    names = labels.names or {value: value for value in sorted(counts) if value not in labels.ignore}
    if unknown := {value: n for value, n in counts.items() if value not in names and value not in labels.ignore}:
        listed = ", ".join(f"{value!r} ({n:,} samples)" for value, n in unknown.items())
        raise InputError(
            f"The {what} column {labels.column!r} holds labels that the map does not know: {listed}. It knows "
            f"{list(names)}; add the others to labels, or to ignore."
        )
    if absent := [value for value in names if value not in counts]:
        raise InputError(
            f"The {what} labels {absent} of the map are not in the column {labels.column!r}: {list(counts)}."
        )
    notes = [
        f"{counts[value]:,} samples with {what} {value!r} are not used." for value in labels.ignore if value in counts
    ]
    if found.null_count():
        notes.append(f"{found.null_count():,} samples have no {what} label: left out.")
    every = tuple(dict.fromkeys(names.values()))
    return found.replace_strict(names, default=None, return_dtype=pl.String).alias(found.name), every, notes
