"""Exports of a ledger as JSON lines or Parquet: streamed, with the columns of docs/traces.md that apply."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from reticent.errors import InputError
from reticent.gateway.entry import COLUMNS, NONSENSE, REALS, STEPS, Entry, entry_of, row_of
from reticent.gateway.ledger import Head, Ledger

ENDINGS = (".parquet", ".jsonl")
ROWS_AT_ONCE = 2**16


def write_export(ledger: Ledger, path: Path, subject: str | None = None) -> int:
    """Write all entries, or those of one subject; returns how many.

    The file is written to a temporary file, then renamed; only its owner may read it.
    """
    lines, table = (path.with_name(path.name + ending) for ending in (".lines", ".writing"))
    with contextlib.ExitStack() as stack:
        for temporary in (lines, table):
            temporary.unlink(missing_ok=True)
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            stack.callback(temporary.unlink, missing_ok=True)
        written = _write_lines(ledger, lines, subject)
        if path.suffix.lower() == ".parquet":
            _write_parquet(lines, table)
            os.replace(table, path)
        else:
            os.replace(lines, path)
    return written


def read_heads(path: Path) -> dict[str, Head]:
    """Number and hash of each subject's newest entry in an export."""
    heads: dict[str, Head] = {}
    with _explained(path):
        for subject, number, digest in _rows(path, ("subject", "number", "hash")):
            head = Head(int(number), _text(digest))
            heads[_text(subject)] = max(heads.get(subject, head), head)
    if not heads:
        raise InputError(f"The export {str(path)!r} holds no entries.")
    return heads


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of an export; raises if one does not match its hash."""
    with _explained(path):
        for row in _rows(path, COLUMNS):
            entry, stored = entry_of(row)
            if entry.hash != stored:
                raise ValueError("an entry does not match its hash")
            yield entry


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise what is wrong with an export as an `InputError`."""
    try:
        yield
    except (OSError, KeyError, *NONSENSE) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it holds something else"
        raise InputError(f"{str(path)!r} cannot be read as an export of a ledger: {why}.") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a string is expected")
    return value


def _write_lines(ledger: Ledger, path: Path, subject: str | None) -> int:
    written, sessions = 0, groupby(ledger.entries(subject), _episode)
    with path.open("w", encoding="utf-8") as file:
        for episode, (_, entries) in enumerate(sessions):
            for entry in entries:
                file.write(json.dumps(_row(entry, episode)) + "\n")
                written += 1
    return written


def _episode(entry: Entry) -> tuple[str, int]:
    """One session of one subject; where time has steps, all of a life."""
    return entry.subject, 0 if STEPS in entry.policy else entry.session


def _row(entry: Entry, episode: int) -> dict[str, Any]:
    """All columns of the ledger, so that the export alone can be verified, plus `episode` and `confidence`."""
    return {"episode": episode, **dict(zip(COLUMNS, row_of(entry), strict=True)), "confidence": entry.confidence}


def _write_parquet(lines: Path, path: Path) -> None:
    import polars as pl

    kinds: dict[str, pl.DataType] = dict.fromkeys(("episode", "number", "session", "step"), pl.Int64())
    kinds |= dict.fromkeys((*REALS, "confidence"), pl.Float64())
    schema = {name: kinds.get(name, pl.String()) for name in ("episode", *COLUMNS, "confidence")}
    pl.scan_ndjson(lines, schema=schema).sink_parquet(path)


def _rows(path: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """These columns of an export, row by row."""
    if path.suffix.lower() == ".parquet":
        yield from _rows_of_parquet(path, names)
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield tuple(row[name] for name in names)


def _rows_of_parquet(path: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    import polars as pl

    try:
        table = pl.scan_parquet(path).select(*names)
        rows = table.select(pl.len()).collect().item()
        for start in range(0, rows, ROWS_AT_ONCE):
            yield from table.slice(start, ROWS_AT_ONCE).collect().iter_rows()
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
