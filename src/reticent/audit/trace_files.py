"""What was released, as a table: enough for an outsider to recompute the provider's belief, and for an audit.

One row per release and one per stop. With `chances` the belief needs nothing but the model:

    beta(s, u)  becomes proportional to  beta(s, u) sum_z chances[z] q(z | sensor, s, u)

Traces of other systems are read too: docs/traces.md says what their columns must be. Files are streamed: of more
episodes than asked for, a random part is read.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from reticent.audit.moving_rows import moves, moving_traces_of
from reticent.audit.moving_traces import MovingTraces
from reticent.audit.trace_rows import STOP, traces_of
from reticent.audit.trace_scan import (
    JSON_LINES,
    OPTIONAL,
    REQUIRED,
    check_columns,
    counts_of,
    room,
    scanned,
    with_times,
)
from reticent.audit.traces import Traces
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.problem.model import Model
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import Episode, Sent

HEADER = "reticent"
FORMAT = "reticent-traces-1"


def trace_table(
    task: Task, process: Process, records: Episode, sent: Sent, recorded: Readings | None = None
) -> pl.DataFrame:
    """Columns episode, step, sensor, symbol, chances, secret, useful; rows in order of episode and step. Where
    recordings are replayed, whose they are is in column person.

    `sensor` is "stop" for the stop, which has no symbol and no chances. `chances` is the public rule in force: the
    chance of each reading of that sensor to be sent as this symbol. `secret` and `useful` are the truth, which was
    not released: an audit needs them.
    """
    model = task.model
    merged = process.enforcement.merged_symbols(model.useful)
    order = np.lexsort((sent.step, sent.episode))
    columns = (sent.episode, sent.step, sent.action, sent.symbol, sent.stopped)
    episode, step, action, symbol, stopped = (np.asarray(column)[order] for column in columns)
    # Where nothing is merged, a symbol is its own reading for sure.
    chances = np.eye(len(model.symbols))[symbol] if sent.chances is None else np.asarray(sent.chances)[order]
    sensor_names, symbol_names = (*model.sensors, STOP), (*model.symbols, *merged)
    person = {} if recorded is None else {"person": named(recorded.person[records.row][episode], recorded.people)}
    return pl.DataFrame(
        {
            "episode": episode.astype(np.int64),
            "step": step.astype(np.int32),
            "sensor": named(action, sensor_names),
            "symbol": named(symbol, symbol_names),
            "chances": pl.Series(chances).cast(pl.Array(pl.Float64, len(model.symbols))),
            "secret": named(np.asarray(records.secret)[episode], model.secrets),
            "useful": named(np.asarray(records.useful)[episode], model.useful),
            **person,
        }
    ).with_columns(pl.when(pl.Series(~stopped)).then(pl.col("symbol", "chances")))


def write_traces(path: Path, task: Task, process: Process, records: Episode, sent: Sent) -> None:
    """Write the table as Parquet; its metadata hold the task, so that the file speaks for itself."""
    header = json.dumps({"format": FORMAT, "task": task.to_json()})
    try:
        trace_table(task, process, records, sent).write_parquet(path, metadata={HEADER: header})
    except OSError as error:
        raise InputError(f"Cannot write {str(path)!r}: {error}.") from error


def named(index: np.ndarray, names: tuple[str, ...]) -> pl.Series:
    """Names in place of indices."""
    return pl.Series(index).replace_strict(
        range(len(names)), names, default=None, return_dtype=pl.Enum(list(dict.fromkeys(names)))
    )


@dataclass(frozen=True, eq=False)
class TraceFile:
    """The traces of a file, the task they were released under if it says so, and what is worth knowing about them."""

    traces: Traces
    task: Task | None
    rows: int
    episodes: int
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class MovingTraceFile:
    """The same of a file whose labels change, with the model instead of a task."""

    traces: MovingTraces
    model: Model | None
    rows: int
    episodes: int
    notes: tuple[str, ...]


def read_traces(path: Path, episodes: int, model: Model | None = None, seed: int = 0) -> TraceFile:
    """About so many episodes of a file, or all of fewer. `model`, or that of the file itself, is for exact Bayes."""
    found = read_any_traces(path, episodes, model, seed)
    if isinstance(found, MovingTraceFile):
        raise InputError(f"In {str(path)!r} labels change within episodes; here they must stay. Audit it by itself.")
    return found


def read_any_traces(
    path: Path, episodes: int, model: Model | None = None, seed: int = 0
) -> TraceFile | MovingTraceFile:
    """The same of a file whose labels stay within an episode, or change."""
    try:
        return _read(path, episodes, model, seed)
    except (OSError, pl.exceptions.PolarsError) as error:
        kind = {".csv": "CSV", **dict.fromkeys(JSON_LINES, "JSON lines")}.get(path.suffix.lower(), "Parquet")
        raise InputError(f"Cannot read {str(path)!r} as {kind}: {error}. See `reticent docs traces`.") from error


def _read(path: Path, episodes: int, model: Model | None, seed: int) -> TraceFile | MovingTraceFile:
    table = with_times(scanned(path))
    schema = table.collect_schema()
    said = check_columns(schema)
    optional = [name for name in OPTIONAL if name in schema]
    counts = counts_of(table, [*REQUIRED, *optional], path)
    moving = moves(table)
    task, own = _described(path, moving)
    model = model or own
    if model is not None and said == "reading":
        raise InputError("A problem knows symbols, and this file holds readings: leave --problem out.")
    if moving and said == "reading":
        raise InputError("Where labels change within episodes, only symbols can be audited: sort readings into codes.")
    episodes, notes = room(table, schema, episodes, moving), []
    whole = table
    if counts["episodes"] > episodes:
        share = int(episodes / counts["episodes"] * 2**64)
        table = table.filter(pl.col("episode").hash(seed) < pl.lit(share, pl.UInt64))
        notes.append(f"About {episodes:,} of {counts['episodes']:,} episodes were drawn at random.")
    kept = [*REQUIRED, *optional, said, *(["chances"] if "chances" in schema else [])]
    rows = table.select(kept).collect(engine="streaming").sort("episode", "step")
    notes += _lost(whole, rows)
    if "person" not in schema:
        notes.append("There is no column person: attackers are judged on other episodes, perhaps of the same people.")
    size = counts["rows"], counts["episodes"], tuple(notes)
    if moving:
        return MovingTraceFile(moving_traces_of(rows, model), model, *size)
    return TraceFile(traces_of(rows, said, model), task, *size)


def _lost(table: pl.LazyFrame, rows: pl.DataFrame) -> Iterator[str]:
    """A sentence for each label with values of which no episode was drawn."""
    for name in ("secret", "useful"):
        values = table.select(pl.col(name).unique()).collect(engine="streaming")[name]
        if lost := sorted(map(str, set(values) - set(rows[name]))):
            yield f"No episode with the {name} {lost} was drawn, so rare are they: give --episodes a larger number."


def _described(path: Path, moving: bool) -> tuple[Task | None, Model | None]:
    """The task that the file describes, and its model; a task of a hidden pair that moves is no `Task`."""
    if path.suffix.lower() in (".csv", *JSON_LINES):
        return None, None
    header = pl.read_parquet_metadata(path).get(HEADER)
    if header is None:
        return None, None
    try:
        found = json.loads(header)["task"]
        if moving:
            return None, Model.from_json(found["problem"])
        task = Task.from_json(found)
        return task, task.model
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"The file's own description of its task cannot be read: {error}.") from error
