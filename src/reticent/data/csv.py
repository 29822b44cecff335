"""One CSV file of the published recordings, strictly: a file that was cut off is refused, not half read."""

import io

import polars as pl

from reticent.errors import InputError


def read_csv(content: bytes, name: str, columns: list[str], header: bool) -> pl.DataFrame:
    """The columns as 64-bit floats, in this order; missing values stay missing."""
    try:
        if not header:
            # The first line alone tells how many columns there are: what a schema does not name is not read.
            width = content.partition(b"\n")[0].count(b",") + 1
            if width != len(columns):
                raise InputError(f"{name!r} has {width} columns where {len(columns)} are expected.")
            found = pl.read_csv(io.BytesIO(content), has_header=False, schema=dict.fromkeys(columns, pl.Float64))
        else:
            found = pl.read_csv(io.BytesIO(content), schema_overrides=dict.fromkeys(columns, pl.Float64))
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise InputError(f"{name!r} is no table of numbers that can be read: {_first_line(error)}") from error
    if missing := [column for column in columns if column not in found.columns]:
        raise InputError(f"{name!r} lacks the columns {missing}; it has {found.columns}.")
    if not content.endswith(b"\n") and len(found) and found.row(-1)[-1] is None:
        raise InputError(f"{name!r} ends in the middle of a line: the file is truncated.")
    return found.select(columns)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip().rstrip(".") + "."
