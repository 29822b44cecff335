"""Simulated days of a problem that goes on, as traces and as a file of what was sent, silence included."""

import json
from pathlib import Path

import numpy as np
import polars as pl

from reticent.audit.moving_traces import MovingTraces
from reticent.audit.trace_files import FORMAT, HEADER, named
from reticent.audit.traces import PADDING, Names
from reticent.errors import InputError
from reticent.problem.monitoring import SILENT, Monitoring
from reticent.process.days import Day


def traces_of_days(task: Monitoring, days: Day) -> MovingTraces:
    """Each day is an episode, and of somebody else."""
    sent = days.sent.reshape(-1)
    episode = np.repeat(np.arange(len(days.cost)), days.cost.shape[1])
    return MovingTraces(
        sensor=np.where(sent, days.action.reshape(-1), PADDING),
        symbol=np.where(sent, days.symbol.reshape(-1), PADDING),
        episode=episode,
        person=episode,
        secret=days.secret.reshape(-1),
        useful=days.useful.reshape(-1),
        names=Names(task.model.sensors, symbols_sent(task), task.model.secrets, task.model.useful),
        likelihood=days.likelihood.reshape(-1, *task.model.prior.shape),
    )


def symbols_sent(task: Monitoring) -> tuple[str, ...]:
    """Names of all that a sensor can send: readings, then merged symbols."""
    return (*task.model.symbols, *task.enforcement.merged_symbols(task.model.useful))


def day_table(task: Monitoring, days: Day) -> pl.DataFrame:
    """Columns episode, step, sensor, symbol, chances, secret, useful: as in `trace_files`, with a row for each step.

    `sensor` is "silent" where nothing was sent; such a row has no symbol and no chances.
    """
    traces, model = traces_of_days(task, days), task.model
    readings = len(model.symbols)
    if days.chances is None:
        # Where nothing is merged, a symbol is its own reading for sure.
        chances = np.eye(readings)[np.maximum(traces.symbol, 0)]
    else:
        chances = days.chances.reshape(-1, readings)
    spoke = pl.Series(traces.sensor != PADDING)
    return pl.DataFrame(
        {
            "episode": traces.episode.astype(np.int64),
            "step": traces.step.astype(np.int32),
            "sensor": named(np.where(spoke, traces.sensor, len(model.sensors)), (*model.sensors, SILENT)),
            "symbol": named(np.maximum(traces.symbol, 0), traces.names.symbols),
            "chances": pl.Series(chances).cast(pl.Array(pl.Float64, readings)),
            "secret": named(traces.secret, model.secrets),
            "useful": named(traces.useful, model.useful),
        }
    ).with_columns(pl.when(spoke).then(pl.col("symbol", "chances")))


def write_days(path: Path, task: Monitoring, days: Day) -> None:
    """Write the table as Parquet; its metadata hold the task, so that the file speaks for itself."""
    header = json.dumps({"format": FORMAT, "task": task.to_json()})
    try:
        day_table(task, days).write_parquet(path, metadata={HEADER: header})
    except OSError as error:
        raise InputError(f"Cannot write {str(path)!r}: {error}.") from error
