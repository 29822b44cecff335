"""Rows of a table, one per step and silence included, as traces of a hidden pair that moves."""

import numpy as np
import polars as pl

from reticent.audit.moving_traces import MovingTraces
from reticent.audit.trace_rows import STOP, chances_of, index_of, likelihoods, names_of, numbered, symbols_of
from reticent.audit.traces import PADDING
from reticent.errors import InputError
from reticent.problem.model import Model
from reticent.problem.monitoring import SILENT

SEE = "See `reticent docs traces`."


def moves(table: pl.LazyFrame) -> bool:
    """Whether the rows are steps of a hidden pair that moves: a label changes within an episode, or one is silent."""
    changes = (pl.col(label).min() != pl.col(label).max() for label in ("secret", "useful"))
    found = (
        table.with_columns(pl.col("secret", "useful").cast(pl.String))
        .group_by("episode")
        .agg((pl.any_horizontal(*changes) | (pl.col("sensor").cast(pl.String) == SILENT).any()).alias("moves"))
    )
    return bool(found.select(pl.col("moves").any()).collect(engine="streaming").item())


def moving_traces_of(rows: pl.DataFrame, model: Model | None) -> MovingTraces:
    """The traces that a table of this form holds, sorted by episode and step."""
    rows = rows.with_columns(pl.col("sensor", "secret", "useful", "symbol").cast(pl.String))
    _check_steps(rows)
    spoke = (rows["sensor"] != SILENT).to_numpy()
    releases = rows.filter(pl.Series(spoke))
    names = names_of(rows, releases, symbols_of(releases, model), model)
    sensor, symbol = np.full(len(rows), PADDING), np.full(len(rows), PADDING)
    sensor[spoke] = index_of(releases["sensor"], names.sensors, "sensor")
    symbol[spoke] = index_of(releases["symbol"], names.symbols, "symbol")
    episode = (rows["episode"].rank("dense") - 1).cast(pl.Int64).to_numpy()
    likelihood = None
    if model is not None:
        chances = chances_of(releases["chances"], model) if "chances" in rows.columns else None
        likelihood = np.ones((len(rows), *model.prior.shape))
        likelihood[spoke] = likelihoods(model, sensor[spoke], symbol[spoke], chances)
    return MovingTraces(
        sensor=sensor,
        symbol=symbol,
        episode=episode,
        person=numbered(rows["person"]) if "person" in rows.columns else episode,
        secret=index_of(rows["secret"], names.secrets, "secret"),
        useful=index_of(rows["useful"], names.useful, "useful"),
        names=names,
        likelihood=likelihood,
    )


def _check_steps(rows: pl.DataFrame) -> None:
    """Every step of an episode has one row, it has one person, and nothing stops."""
    if stops := int((rows["sensor"] == STOP).sum()):
        changing = rows.group_by("episode").agg(pl.col("secret", "useful").n_unique() > 1)
        often = {label: int(changing[label].sum()) for label in ("secret", "useful") if changing[label].any()}
        which = [f"Column {label!r} changes within {count:,} episodes" for label, count in often.items()]
        raise InputError(
            f"{'; '.join(which) or 'Some steps are silent'}, and there are {stops:,} stops. Where labels change an "
            f"episode has a row for every step, {SILENT!r} where nothing is sent, and no stop. {SEE}"
        )
    same = pl.col("episode") == pl.col("episode").shift()
    if (broken := rows.filter(same & (pl.col("step").diff() != 1))).height:
        raise InputError(
            f"Before step {broken[0, 'step']} of episode {broken[0, 'episode']} one is missing, or it comes twice. "
            f"Where labels change every step has one row, {SILENT!r} where nothing is sent. {SEE}"
        )
    if "person" in rows.columns:
        many = rows.group_by("episode").agg(pl.col("person").n_unique()).filter(pl.col("person") > 1)
        if many.height:
            raise InputError(f"Column 'person' changes within {many.height:,} episodes, the first is {many[0, 0]}.")
