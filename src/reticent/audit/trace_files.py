"""What was released, as a table: enough for an outsider to recompute the provider's belief, and for an audit.

One row per release and one per stop. With `chances` the belief needs nothing but the model:

    beta(s, u)  becomes proportional to  beta(s, u) sum_z chances[z] q(z | sensor, s, u)

Traces of other systems are read too: docs/traces.md says what their columns must be. Files are streamed: of more
episodes than asked for, a random part is read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from reticent.audit.traces import NOTHING, Names, Traces, padded_rows
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.problem.model import ReleaseModel
from reticent.problem.task import Task
from reticent.process.release import ReleaseProcess
from reticent.process.rollout import Episode, Sent

STOP = "stop"
HEADER = "reticent"
FORMAT = "reticent-traces-1"
REQUIRED = ("episode", "step", "sensor", "secret", "useful")
# More different symbols than this are measurements, and belong into `reading`.
MOST_SYMBOLS, MOST_LABELS = 1000, 50
# Numbers that are held in memory, counting room for the longest episode in each, and at least so many per release.
MOST_NUMBERS, LEAST_WIDTH, FEWEST_EPISODES = 2**26, 16, 1000
ROWS_AT_ONCE = 2**16
# Squares of larger numbers overflow.
LARGEST_READING = 1e100
# What can hold names; a column of nothing but empty cells has no other type.
NAMES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)


def trace_table(
    task: Task, process: ReleaseProcess, records: Episode, sent: Sent, recorded: Readings | None = None
) -> pl.DataFrame:
    """Columns episode, step, sensor, symbol, chances, secret, useful; rows in order of episode and step. Where
    recordings are replayed, whose they are is in column person.

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
    person = {} if recorded is None else {"person": _named(recorded.person[records.row][episode], recorded.people)}
    return pl.DataFrame(
        {
            "episode": episode.astype(np.int64),
            "step": step.astype(np.int32),
            "sensor": _named(action, sensor_names),
            "symbol": _named(symbol, symbol_names),
            "chances": pl.Series(chances).cast(pl.Array(pl.Float64, len(model.symbols))),
            "secret": _named(np.asarray(records.secret)[episode], model.secrets),
            "useful": _named(np.asarray(records.useful)[episode], model.useful),
            **person,
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


@dataclass(frozen=True, eq=False)
class TraceFile:
    """The traces of a file, the task they were released under if it says so, and what is worth knowing about them."""

    traces: Traces
    task: Task | None
    rows: int
    episodes: int
    notes: tuple[str, ...]


def read_traces(path: Path, episodes: int, model: ReleaseModel | None = None, seed: int = 0) -> TraceFile:
    """About so many episodes of a file, or all of fewer. `model`, or that of the file itself, is for exact Bayes."""
    try:
        table = pl.scan_parquet(path)
        schema = table.collect_schema()
        task = _task(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"Cannot read {str(path)!r} as Parquet: {error}.") from error
    said = _check_columns(schema)
    if model is not None and said == "reading":
        raise InputError("A problem knows symbols, and this file holds readings: leave --problem out.")
    needed = [*REQUIRED, *(["person"] if "person" in schema else [])]
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
    notes = []
    longest, width = _longest(table), _width(table, schema)
    if longest * width * FEWEST_EPISODES > MOST_NUMBERS:
        most = MOST_NUMBERS // FEWEST_EPISODES // width
        wide = f" of {width:,} numbers each" if width > LEAST_WIDTH else ""
        raise InputError(
            f"The longest episode has {longest:,} steps{wide}. Cut episodes of more than {most:,} into several"
            + (", or sum readings up in fewer numbers." if wide else ".")
        )
    episodes = min(episodes, MOST_NUMBERS // (longest * width))
    whole = table
    if counts["episodes"] > episodes:
        share = int(episodes / counts["episodes"] * 2**64)
        table = table.filter(pl.col("episode").hash(seed) < pl.lit(share, pl.UInt64))
        notes.append(f"About {episodes:,} of {counts['episodes']:,} episodes were drawn at random.")
    kept = [*REQUIRED, said, *(name for name in ("person", "chances") if name in schema)]
    rows = table.select(kept).collect(engine="streaming").sort("episode", "step")
    notes += [*_lost(whole, rows), *_gaps(rows)]
    if "person" not in schema:
        notes.append("There is no column person: attackers are judged on other episodes, perhaps of the same people.")
    traces = traces_of(rows, said, model or (task.model if task else None))
    return TraceFile(traces, task, counts["rows"], counts["episodes"], tuple(notes))


def _lost(table: pl.LazyFrame, rows: pl.DataFrame) -> Iterator[str]:
    """A sentence for each label with values of which no episode was drawn."""
    for name in ("secret", "useful"):
        values = table.select(pl.col(name).unique()).collect(engine="streaming")[name]
        if lost := sorted(map(str, set(values) - set(rows[name]))):
            yield f"No episode with the {name} {lost} was drawn, so rare are they: give --episodes a larger number."


def _gaps(rows: pl.DataFrame) -> Iterator[str]:
    """A sentence if steps are left out: they may tell something that no attacker here looks at."""
    each = rows.group_by("episode").agg(gap=pl.col("step").max() - pl.col("step").min() >= pl.len())
    if gaps := int(each["gap"].sum()):
        yield f"The steps of {gaps:,} episodes have gaps. Attackers see the order of releases, not these gaps."


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


def _task(path: Path) -> Task | None:
    header = pl.read_parquet_metadata(path).get(HEADER)
    if header is None:
        return None
    try:
        return Task.from_json(json.loads(header)["task"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"The file's own description of its task cannot be read: {error}.") from error


def _check_columns(schema: Mapping[str, Any]) -> str:
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
    kind = schema.get("reading")
    inner = kind.inner if isinstance(kind, pl.List | pl.Array) else kind
    if inner is not None and not (inner.is_float() or inner.is_integer()):  # type: ignore[union-attr]
        raise InputError(f"Column 'reading' must hold numbers, or lists of as many numbers each, not {kind}.")
    return said[0]


def traces_of(rows: pl.DataFrame, said: str, model: ReleaseModel | None) -> Traces:
    """The traces that a table of this form holds, sorted by episode and step."""
    symbols = _symbols(rows, model) if said == "symbol" else ()
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
    names = Names(
        sensors=model.sensors if model else _values(releases["sensor"]) or ("none",),
        symbols=symbols,
        secrets=model.secrets if model else _values(first["secret"]),
        useful=model.useful if model else _values(first["useful"]),
    )
    for name in ("secrets", "useful"):
        if len(getattr(names, name)) > MOST_LABELS:
            raise InputError(f"There are {len(getattr(names, name))} different {name}: too many to be classes.")
    shape = len(first), int(step.max(initial=0)) + 1
    sensor = _index(releases["sensor"], names.sensors, "sensor")
    traces = Traces(
        sensor=padded_rows(episode, step, sensor, shape, NOTHING),
        symbol=None,
        reading=None,
        stopped=first["stopped"].to_numpy(),
        person=_numbered(first["person"]) if "person" in first.columns else np.arange(len(first)),
        secret=_index(first["secret"], names.secrets, "secret"),
        useful=_index(first["useful"], names.useful, "useful"),
        names=names,
    )
    if said == "reading":
        readings = _readings(releases["reading"], sensor)
        return _with(traces, reading=padded_rows(episode, step, readings, shape, 0.0))
    symbol = _index(releases["symbol"], names.symbols, "symbol")
    likelihood = None
    if model is not None:
        chances = _chances(releases["chances"], model) if "chances" in releases.columns else None
        likelihood = padded_rows(episode, step, likelihoods(model, sensor, symbol, chances), shape, 1.0)
    return _with(traces, symbol=padded_rows(episode, step, symbol, shape, NOTHING), likelihood=likelihood)


def _numbered(people: pl.Series) -> Int[np.ndarray, " N"]:
    """A number for each person: the place in the list of all, where the column has one, so that tables agree."""
    numbers = people.to_physical() if isinstance(people.dtype, pl.Enum) else people.rank("dense") - 1
    return numbers.cast(pl.Int64).to_numpy()


def likelihoods(
    model: ReleaseModel,
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


def _values(column: pl.Series) -> tuple[str, ...]:
    return tuple(column.unique().sort().to_list())


def _symbols(rows: pl.DataFrame, model: ReleaseModel | None) -> tuple[str, ...]:
    """Those of the model first; those that the table says it may hold, or does hold, after them."""
    spoken = rows.filter(pl.col("sensor").cast(str) != STOP)["symbol"]
    if spoken.null_count():
        raise InputError(f"{spoken.null_count():,} releases have no symbol; only a stop may have none.")
    kind = spoken.dtype
    found = tuple(kind.categories) if isinstance(kind, pl.Enum) else _values(spoken.cast(str))
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


def _chances(column: pl.Series, model: ReleaseModel) -> Float[np.ndarray, "R Z"]:
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


def _index(column: pl.Series, names: Sequence[str], what: str) -> Int[np.ndarray, " R"]:
    place = {name: i for i, name in enumerate(names)}
    found = column.replace_strict(place, default=None, return_dtype=pl.Int64)
    if found.null_count():
        unknown = column.filter(found.is_null()).unique().sort().to_list()
        raise InputError(f"The model does not know the {what} {unknown[:5]}; it knows {list(names)}.")
    return found.to_numpy()


def _with(traces: Traces, **changed: Any) -> Traces:
    return Traces(**{**vars(traces), **changed})
