"""Files of traces, not yet read: their columns, how long they are, and how many episodes there is room for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from reticent.errors import InputError

REQUIRED = ("episode", "step", "sensor", "secret", "useful")
OPTIONAL = ("person", "time")
JSON_LINES = (".jsonl", ".ndjson")
# Numbers that are held in memory, counting room for the longest episode in each, and at least so many per release.
MOST_NUMBERS, LEAST_WIDTH, FEWEST_EPISODES = 2**26, 16, 1000
# What can hold names; a column of nothing but empty cells has no other type.
NAMES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)


def scanned(path: Path) -> pl.LazyFrame:
    """The table of a file, not yet read: Parquet, or by its ending CSV or JSON lines."""
    if path.suffix.lower() in JSON_LINES:
        return pl.scan_ndjson(path, infer_schema_length=None)
    if path.suffix.lower() != ".csv":
        return pl.scan_parquet(path)
    names = pl.scan_csv(path, infer_schema_length=0).collect_schema().names()
    kinds = dict.fromkeys(("sensor", "symbol", "secret", "useful", "person"), pl.String)
    kinds |= dict.fromkeys(("episode", "step"), pl.Int64)
    table = pl.scan_csv(
        path,
        schema_overrides={name: kind for name, kind in kinds.items() if name in names},
        try_parse_dates=True,
        infer_schema_length=10_000,
    )
    schema = table.collect_schema()
    lists = [name for name in ("reading", "chances") if schema.get(name) == pl.String]
    return table.with_columns(pl.col(name).str.json_decode(pl.List(pl.Float64)) for name in lists)


def with_times(table: pl.LazyFrame) -> pl.LazyFrame:
    """Moments that are written as text, as in ISO 8601, as moments."""
    if table.collect_schema().get("time") != pl.String:
        return table
    return table.with_columns(pl.col("time").str.to_datetime(time_unit="us", time_zone="UTC"))


def check_columns(schema: Mapping[str, Any]) -> str:
    """Which column holds what was said, `symbol` or `reading`, if all is there."""
    if missing := [name for name in REQUIRED if name not in schema]:
        raise InputError(f"The columns {missing} are missing; there are {list(schema)}. See `reticent docs traces`.")
    said = [name for name in ("symbol", "reading") if name in schema]
    if len(said) != 1:
        raise InputError(
            f"One of the columns 'symbol' and 'reading' is needed, and not both; there are {list(schema)}."
        )
    for name in ("sensor", "secret", "useful", "symbol", "person"):
        kind = schema.get(name, pl.String())
        if not (kind.is_integer() or isinstance(kind, NAMES)):
            raise InputError(f"Column {name!r} must hold names or whole numbers, not {kind}.")
    for name in ("episode", "step"):
        if not schema[name].is_integer():
            raise InputError(f"Column {name!r} must hold whole numbers, not {schema[name]}.")
    kind = schema.get("time", pl.Int64())
    if not (kind.is_numeric() or kind.is_temporal()):
        raise InputError(f"Column 'time' must hold numbers, or dates with times as in ISO 8601, not {kind}.")
    kind = schema.get("reading")
    inner = kind.inner if isinstance(kind, pl.List | pl.Array) else kind
    if inner is not None and not (inner.is_float() or inner.is_integer()):  # type: ignore[union-attr]
        raise InputError(f"Column 'reading' must hold numbers, or lists of as many numbers each, not {kind}.")
    return said[0]


def counts_of(table: pl.LazyFrame, needed: list[str], path: Path) -> dict[str, int]:
    """Rows and episodes; none may lack what is needed."""
    found = table.select(
        pl.len().alias("rows"),
        pl.col("episode").n_unique().alias("episodes"),
        *(pl.col(name).null_count().alias(f"null {name}") for name in needed),
    )
    counts = found.collect(engine="streaming").row(0, named=True)
    for name in needed:
        if counts[f"null {name}"]:
            raise InputError(f"Column {name!r} has {counts[f'null {name}']:,} empty cells; every row needs it.")
    if not counts["rows"]:
        raise InputError(f"{str(path)!r} has no rows.")
    return counts


def room(table: pl.LazyFrame, schema: Mapping[str, Any], episodes: int, moving: bool) -> int:
    """So many episodes, or as many as there is room for, each as long as the longest. Lives are long, and few do."""
    longest, width = _longest(table), _width(table, schema)
    if not moving and longest * width * FEWEST_EPISODES > MOST_NUMBERS:
        most = MOST_NUMBERS // FEWEST_EPISODES // width
        wide = f" of {width:,} numbers each" if width > LEAST_WIDTH else ""
        raise InputError(
            f"The longest episode has {longest:,} steps{wide}. Cut episodes of more than {most:,} into several"
            + (", or sum readings up in fewer numbers." if wide else ".")
        )
    return max(1, min(episodes, MOST_NUMBERS // (longest * width)))


def _longest(table: pl.LazyFrame) -> int:
    """Rows of the longest episode."""
    lengths = table.group_by("episode").len().select(pl.col("len").max())
    return int(lengths.collect(engine="streaming").item())


def _width(table: pl.LazyFrame, schema: Mapping[str, Any]) -> int:
    """The most numbers of one release."""
    kinds = {name: schema[name] for name in ("reading", "chances") if name in schema}
    lists = [pl.col(name).list.len().max() for name, kind in kinds.items() if isinstance(kind, pl.List)]
    found = table.select(lists).collect(engine="streaming").row(0) if lists else ()
    arrays = [kind.size for kind in kinds.values() if isinstance(kind, pl.Array)]
    return max([LEAST_WIDTH, *arrays, *(length or 0 for length in found)])
