"""A ledger as a table for others, JSON lines or Parquet: streamed, with the columns of docs/traces.md that apply."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reticent.errors import InputError
from reticent.gateway.entry import Entry
from reticent.gateway.ledger import NO_HEAD, Head, Ledger

ENDINGS = (".parquet", ".jsonl")
ROWS_AT_ONCE = 2**16


def write_export(ledger: Ledger, path: Path, subject: str | None = None) -> int:
    """Write all entries, or those of one subject; returns how many. Whole or not at all, readable by the owner only."""
    lines, table = (path.with_name(path.name + ending) for ending in (".lines", ".writing"))
    with contextlib.ExitStack() as stack:
        for neighbour in (lines, table):
            neighbour.unlink(missing_ok=True)
            os.close(os.open(neighbour, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            stack.callback(neighbour.unlink, missing_ok=True)
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
    try:
        for subject, number, digest in _places(path):
            heads[subject] = max(heads.get(subject, NO_HEAD), (number, digest))
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it holds something else"
        raise InputError(f"{str(path)!r} cannot be read as an export of a ledger: {why}.") from error
    if not heads:
        raise InputError(f"The export {str(path)!r} holds no entries.")
    return heads


def _write_lines(ledger: Ledger, path: Path, subject: str | None) -> int:
    written, episode, before = 0, -1, None
    with path.open("w", encoding="utf-8") as file:
        for entry in ledger.entries(subject):
            episode += (entry.subject, entry.session) != before
            before = entry.subject, entry.session
            file.write(json.dumps(_row(entry, episode)) + "\n")
            written += 1
    return written


def _row(entry: Entry, episode: int) -> dict[str, Any]:
    return {
        "episode": episode,
        "step": entry.step,
        "sensor": entry.sensor,
        "symbol": entry.symbol,
        "subject": entry.subject,
        "session": entry.session,
        "number": entry.number,
        "time": entry.time,
        "confidence": entry.confidence,
        "spent_bits": entry.spent_bits,
        "policy": entry.policy,
        "hash": entry.hash,
    }


def _write_parquet(lines: Path, path: Path) -> None:
    import polars as pl

    whole, number = ("episode", "step", "session", "number"), ("time", "confidence", "spent_bits")
    names = ("episode", "step", "sensor", "symbol", "subject", *whole[2:], *number, "policy", "hash")
    kinds = dict.fromkeys(whole, pl.Int64()) | dict.fromkeys(number, pl.Float64())
    schema = {name: kinds.get(name, pl.String()) for name in names}
    pl.scan_ndjson(lines, schema=schema).sink_parquet(path)


def _places(path: Path) -> Iterator[tuple[str, int, str]]:
    if path.suffix.lower() == ".parquet":
        yield from _places_of_parquet(path)
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield row["subject"], int(row["number"]), row["hash"]


def _places_of_parquet(path: Path) -> Iterator[tuple[str, int, str]]:
    import polars as pl

    try:
        table = pl.scan_parquet(path).select("subject", pl.col("number").cast(int), "hash")
        rows = table.select(pl.len()).collect().item()
        for start in range(0, rows, ROWS_AT_ONCE):
            yield from table.slice(start, ROWS_AT_ONCE).collect().iter_rows()
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
