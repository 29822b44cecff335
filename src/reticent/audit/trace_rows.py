"""Rows of a table, one per release and one per stop, as traces."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from reticent.audit.traces import PADDING, Names, Traces, padded_rows
from reticent.errors import InputError
from reticent.problem.model import Model

STOP = "stop"
# More different symbols than this are measurements, and belong into `reading`.
MOST_SYMBOLS, MOST_LABELS = 1000, 50
ROWS_AT_ONCE = 2**16
# Squares of larger numbers overflow.
LARGEST_READING = 1e100


def traces_of(rows: pl.DataFrame, said: str, model: Model | None) -> Traces:
    """The traces that a table of this form holds, sorted by episode and step."""
    symbols = symbols_of(rows, model) if said == "symbol" else ()
    rows = rows.with_columns(pl.col("sensor", "secret", "useful", *(["symbol"] if said == "symbol" else [])).cast(str))
    _check_episodes(rows)
    releases = rows.filter(pl.col("sensor") != STOP)
    first = rows.group_by("episode", maintain_order=True).agg(
        pl.col("secret", "useful", *(["person"] if "person" in rows.columns else [])).first(),
        stopped=(pl.col("sensor") == STOP).any(),
    )
    place = {name: i for i, name in enumerate(first["episode"])}
    episode = releases["episode"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
    step = np.arange(len(episode)) - np.searchsorted(episode, episode)
    names = names_of(rows, releases, symbols, model)
    shape = len(first), int(step.max(initial=0)) + 1
    sensor = index_of(releases["sensor"], names.sensors, "sensor")
    clocks, waits = _waits(rows, place, shape)
    traces = Traces(
        sensor=padded_rows(episode, step, sensor, shape, PADDING),
        symbol=None,
        reading=None,
        stopped=first["stopped"].to_numpy(),
        person=numbered(first["person"]) if "person" in first.columns else np.arange(len(first)),
        secret=index_of(first["secret"], names.secrets, "secret"),
        useful=index_of(first["useful"], names.useful, "useful"),
        names=replace(names, clocks=clocks),
        waits=waits,
    )
    if said == "reading":
        readings = _readings(releases["reading"], sensor)
        return replace(traces, reading=padded_rows(episode, step, readings, shape, 0.0))
    symbol = index_of(releases["symbol"], names.symbols, "symbol")
    likelihood = None
    if model is not None:
        chances = chances_of(releases["chances"], model) if "chances" in releases.columns else None
        likelihood = padded_rows(episode, step, likelihoods(model, sensor, symbol, chances), shape, 1.0)
    return replace(traces, symbol=padded_rows(episode, step, symbol, shape, PADDING), likelihood=likelihood)


def names_of(rows: pl.DataFrame, releases: pl.DataFrame, symbols: tuple[str, ...], model: Model | None) -> Names:
    """The names of the model, or those that the rows hold."""
    names = Names(
        sensors=model.sensors if model else values_of(releases["sensor"]) or ("none",),
        symbols=symbols,
        secrets=model.secrets if model else values_of(rows["secret"]),
        useful=model.useful if model else values_of(rows["useful"]),
    )
    for name in ("secrets", "useful"):
        if len(getattr(names, name)) > MOST_LABELS:
            raise InputError(f"There are {len(getattr(names, name))} different {name}: too many to be classes.")
    return names


def _waits(
    rows: pl.DataFrame, place: dict[Any, int], shape: tuple[int, int]
) -> tuple[tuple[str, ...], Float[np.ndarray, "N T1 W"] | None]:
    """How long each row came after the one before, in units of what is usual, by each clock that does not tick evenly:
    the step, and the time where there is one.

    The first row of an episode counts from the earliest first row, unless first rows lie further apart than any
    episode is long: then the clock does not start with the episode, and its beginning says nothing about it.
    """
    episode = rows["episode"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
    begins = np.searchsorted(episode, episode)
    row = np.arange(len(episode))
    found = {}
    for clock in (name for name in ("step", "time") if name in rows.columns):
        moment = _moments(rows[clock])
        first = moment[begins]
        late = first - first.min()
        if late.max() > (moment - first).max():
            late = np.zeros_like(late)
        wait = np.where(row > begins, moment - moment[np.maximum(row - 1, 0)], late)
        if (wait < 0).any():
            where = int((wait < 0).argmax())
            raise InputError(
                f"Column {clock!r} goes back in episode {rows['episode'][where]}, at step {rows['step'][where]}: it "
                "must not fall from step to step."
            )
        later = wait[row > begins]
        if len(later) and (np.ptp(later) > 1e-9 * later.max() or late.any()):
            found[clock] = wait / (np.median(later[later > 0]) if (later > 0).any() else 1.0)
    if not found:
        return (), None
    waits = np.stack(list(found.values()), axis=1).astype(np.float32)
    return tuple(found), padded_rows(episode, row - begins, waits, (shape[0], shape[1] + 1), 0.0)


def _moments(column: pl.Series) -> Float[np.ndarray, " R"]:
    """As numbers that grow with time, from the first one on."""
    numbers = column.to_physical() if column.dtype.is_temporal() else column
    moments = (numbers - numbers.min()).cast(pl.Float64).to_numpy()
    if not np.isfinite(moments).all():
        raise InputError(f"Column {column.name!r} has numbers that are not finite.")
    return moments


def numbered(people: pl.Series) -> Int[np.ndarray, " N"]:
    """A number for each person: the place in the list of all, where the column has one, so that tables agree."""
    numbers = people.to_physical() if isinstance(people.dtype, pl.Enum) else people.rank("dense") - 1
    return numbers.cast(pl.Int64).to_numpy()


def likelihoods(
    model: Model,
    sensor: Int[np.ndarray, " R"],
    symbol: Int[np.ndarray, " R"],
    chances: Float[np.ndarray, "R Z"] | None,
) -> Float[np.ndarray, "R S U"]:
    """P(what was sent | sensor, s, u) of each release, under the public rule in force; without one, each symbol is
    its own reading."""
    found = np.empty((len(sensor), *model.prior.shape))
    for start in range(0, len(sensor), ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        if chances is None:
            found[piece] = model.channel[sensor[piece], :, :, symbol[piece]]
        else:
            for a in range(len(model.sensors)):
                own = np.flatnonzero(sensor[piece] == a) + start
                found[own] = np.einsum("rz,suz->rsu", chances[own], model.channel[a], optimize=True)
    if (impossible := (found * model.prior).sum((1, 2)) <= 0).any():
        where = int(impossible.argmax())
        raise InputError(
            f"Sensor {model.sensors[sensor[where]]!r} sent symbol number {symbol[where]}, which is impossible under "
            "the model: it is not the model of these traces."
        )
    return found


def _check_episodes(rows: pl.DataFrame) -> None:
    """One secret and one useful value (and one person) per episode, no step twice, nothing after the stop."""
    if (twice := rows.select("episode", "step").is_duplicated()).any():
        row = rows.row(int(twice.arg_max() or 0), named=True)
        raise InputError(f"Episode {row['episode']} has step {row['step']} more than once.")
    constant = ["secret", "useful", *(["person"] if "person" in rows.columns else [])]
    per = rows.group_by("episode", maintain_order=True).agg(
        pl.col(constant).n_unique(), late=(pl.col("sensor") == STOP).shift(1, fill_value=False).any()
    )
    for name in constant:
        if (many := per.filter(pl.col(name) > 1)).height:
            raise InputError(f"Column {name!r} changes within {many.height:,} episodes, the first is {many[0, 0]}.")
    if (late := per.filter("late")).height:
        raise InputError(f"Episode {late[0, 0]} goes on after its stop, and {late.height - 1:,} others do.")


def values_of(column: pl.Series) -> tuple[str, ...]:
    """The different names of a column, in order."""
    return tuple(column.unique().sort().to_list())


def symbols_of(rows: pl.DataFrame, model: Model | None) -> tuple[str, ...]:
    """Those of the model first; those that the table says it may hold, or does hold, after them."""
    spoken = rows.filter(pl.col("sensor").cast(str) != STOP)["symbol"]
    if spoken.null_count():
        raise InputError(f"{spoken.null_count():,} releases have no symbol; only a stop may have none.")
    kind = spoken.dtype
    found = tuple(kind.categories) if isinstance(kind, pl.Enum) else values_of(spoken.cast(str))
    # Somebody who never says anything has one symbol that never comes.
    found = found or ("nothing",)
    if len(found) > MOST_SYMBOLS:
        raise InputError(f"There are {len(found):,} different symbols: put measurements into a column `reading`.")
    if model is None:
        return found
    others = tuple(name for name in found if name not in set(model.symbols))
    if others and "chances" not in rows.columns:
        raise InputError(
            f"The model does not know the symbols {list(others[:5])}: add the column `chances`, or leave the model out."
        )
    return (*model.symbols, *others)


def chances_of(column: pl.Series, model: Model) -> Float[np.ndarray, "R Z"]:
    """The public rule of each release: a chance for every symbol of the model."""
    chances = _lists(column, "chances", len(model.symbols)).astype(np.float64)
    if (chances < 0).any() or (chances > 1 + 1e-9).any():
        raise InputError("Column 'chances' holds numbers that are no chances, below 0 or above 1.")
    return chances


def _readings(column: pl.Series, sensor: Int[np.ndarray, " R"]) -> Float[np.ndarray, "R D"]:
    """In units of what is usual of each sensor, before they are rounded to 32 bits: small differences of large numbers
    may tell everything."""
    readings = _lists(column, "reading", None).astype(np.float64)
    if (np.abs(readings) > LARGEST_READING).any():
        raise InputError(f"Column 'reading' has numbers beyond {LARGEST_READING:g}: give it in other units.")
    for own in (sensor == each for each in np.unique(sensor)):
        spread = readings[own].std(0)
        readings[own] = (readings[own] - readings[own].mean(0)) / np.where(spread > 0, spread, 1.0)
    return readings.astype(np.float32)


def _lists(column: pl.Series, name: str, width: int | None) -> np.ndarray:
    """One line of numbers per row, all finite, all of one width."""
    if column.null_count():
        raise InputError(f"Column {name!r} has {column.null_count():,} empty cells at releases.")
    if isinstance(column.dtype, pl.List):
        widths = column.list.len().unique().to_list()
        if len(widths) > 1:
            raise InputError(f"Column {name!r} must hold lists of as many numbers each; there are some of {widths}.")
        column = column.list.to_array(widths[0] if widths else width or 1)
    values = column.to_numpy()
    values = values.reshape(len(values), -1) if len(values) else values.reshape(0, width or 1)
    if values.shape[1] == 0 or not np.isfinite(values).all():
        raise InputError(f"Column {name!r} has lists without numbers, or numbers that are not finite.")
    if width is not None and values.shape[1] != width:
        raise InputError(f"Column {name!r} holds {values.shape[1]} numbers a row; the model has {width} symbols.")
    return values


def index_of(column: pl.Series, names: Sequence[str], what: str) -> Int[np.ndarray, " R"]:
    """The place of each name among the names that are known."""
    place = {name: i for i, name in enumerate(names)}
    found = column.replace_strict(place, default=None, return_dtype=pl.Int64)
    if found.null_count():
        unknown = column.filter(found.is_null()).unique().sort().to_list()
        raise InputError(f"The model does not know the {what} {unknown[:5]}; it knows {list(names)}.")
    return found.to_numpy()
