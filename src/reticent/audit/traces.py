"""What was released, as a table: enough for an outsider to recompute the provider's belief.

One row per release and one per stop. With `chances` the belief needs nothing but the model:

    beta(s, u)  becomes proportional to  beta(s, u) sum_z chances[z] q(z | sensor, s, u)
"""

import json
from pathlib import Path

import numpy as np
import polars as pl

from reticent.errors import InputError
from reticent.problem.task import Task
from reticent.process.release import ReleaseProcess
from reticent.process.rollout import Episode, Sent

STOP = "stop"
HEADER = "reticent"
FORMAT = "reticent-traces-1"


def trace_table(task: Task, process: ReleaseProcess, records: Episode, sent: Sent) -> pl.DataFrame:
    """Columns episode, step, sensor, symbol, chances, secret, useful; rows in order of episode and step.

    `sensor` is "stop" for the stop, which has no symbol and no chances. `chances` is the public rule in force: the
    chance of each reading of that sensor to be sent as this symbol. `secret` and `useful` are the truth, which was
    not released: an audit needs them.
    """
    model = task.model
    merged = [] if process.rule is None else process.rule.merged(model.useful)
    order = np.lexsort((sent.step, sent.episode))
    episode, step, action, symbol = (np.asarray(x)[order] for x in (sent.episode, sent.step, sent.action, sent.symbol))
    if sent.chances is not None:
        chances = np.asarray(sent.chances)[order]
    else:  # Nothing is merged: a symbol is its own reading for sure.
        chances = np.eye(len(model.symbols))[np.maximum(symbol, 0)]
    sensor_names, symbol_names = (*model.sensors, STOP), (*model.symbols, *merged)
    return pl.DataFrame(
        {
            "episode": episode.astype(np.int64),
            "step": step.astype(np.int32),
            "sensor": _named(action, sensor_names),
            "symbol": _named(symbol, symbol_names),
            "chances": pl.Series(chances).cast(pl.Array(pl.Float64, len(model.symbols))),
            "secret": _named(np.asarray(records.secret)[episode], model.secrets),
            "useful": _named(np.asarray(records.useful)[episode], model.useful),
        }
    ).with_columns(pl.when(pl.Series(symbol >= 0)).then(pl.col("symbol", "chances")))


def write_traces(path: Path, task: Task, process: ReleaseProcess, records: Episode, sent: Sent) -> None:
    """Write the table as Parquet; its metadata hold the task, so that the file speaks for itself."""
    header = json.dumps({"format": FORMAT, "task": task.to_json()})
    try:
        trace_table(task, process, records, sent).write_parquet(path, metadata={HEADER: header})
    except OSError as error:
        raise InputError(f"Cannot write {str(path)!r}: {error}.") from error


def _named(index: np.ndarray, names: tuple[str, ...]) -> pl.Series:
    """Names in place of indices; -1 has none."""
    return pl.Series(index).replace_strict(
        range(len(names)), names, default=None, return_dtype=pl.Enum(list(dict.fromkeys(names)))
    )
