"""A user's own recordings: any CSV or Parquet files, or a data frame, and a map that says which column is what."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from reticent.data.recordings import Recordings, recordings
from reticent.data.table_map import SECONDS, Labels, TableMap
from reticent.errors import InputError


def load_table(folder: Path, table_map: TableMap, notes: tuple[str, ...] = ()) -> Recordings:
    """Recordings from all files that the map names, in the folder or below it."""
    if not folder.is_dir():
        raise InputError(f"There is no data folder {str(folder)!r}.")
    if Path(table_map.files).is_absolute():
        raise InputError(f"files = {table_map.files!r} must be relative to the data folder.")
    paths = sorted(path for path in folder.glob(table_map.files) if path.is_file())
    if not paths:
        raise InputError(f"No file in {str(folder)!r} is called {table_map.files!r}.")
    frames = [_samples(_read(path, table_map.columns), path, table_map) for path in paths]
    return _recordings(pl.concat(frames), table_map, notes)


def frame_recordings(frame: pl.DataFrame, table_map: TableMap) -> Recordings:
    """Recordings from one data frame. The map names a column of people."""
    return _recordings(_samples(frame, Path("the table"), table_map), table_map, ())


def frame_of(table: Any) -> pl.DataFrame:
    """A data frame from Polars, from anything that speaks Arrow as pandas does, or from a CSV or Parquet file."""
    if isinstance(table, str | Path):
        if not Path(table).is_file():
            raise InputError(f"There is no file {str(table)!r}. Give a CSV or Parquet file, or a data frame.")
        return _read(Path(table), None)
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if isinstance(table, pl.DataFrame) or hasattr(table, "__arrow_c_stream__"):
        return pl.DataFrame(table)
    raise InputError(
        f"The recordings must be a data frame, or a CSV or Parquet file, but are a {type(table).__name__}. Of pandas "
        "take version 2.2 or later."
    )


def _recordings(samples: pl.DataFrame, table_map: TableMap, notes: tuple[str, ...]) -> Recordings:
    """Labels by their names; what the map leaves out is noted."""
    secret, secrets, left_secret = _labelled(samples["secret"], table_map.secret, "secret")
    useful, usefuls, left_useful = _labelled(samples["useful"], table_map.useful, "useful")
    samples = samples.with_columns(secret, useful).drop_nulls(["secret", "useful"])
    return recordings(samples, tuple(table_map.sensors), secrets, usefuls, (*notes, *left_secret, *left_useful))


def _samples(frame: pl.DataFrame, path: Path, table_map: TableMap) -> pl.DataFrame:
    """The samples of one table, with labels as they stand there."""
    # A dot parts sensor and axis, so there is none in the axis.
    axes = {
        f"{sensor}.{axis.replace('.', '_')}": axis for sensor, columns in table_map.sensors.items() for axis in columns
    }
    needed = [table_map.person, table_map.time, table_map.useful.column, table_map.secret.column, *axes.values()]
    if missing := sorted({name for name in needed if name is not None} - set(frame.columns)):
        raise InputError(f"There are no columns {missing} in {path.name!r}, which has {frame.columns}. Name others.")
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
