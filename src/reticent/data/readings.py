"""What a sensor would release at each moment: one sample as it is, or the summary of a short window."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from reticent.data.changes import LabelChanges
from reticent.data.recordings import Recordings
from reticent.data.windows import FULL_ENOUGH, LEAST_DEVIATION, TIME_TOLERANCE, ReadingKind, suggestion, usual_kind
from reticent.errors import InputError


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings of all sensors, moment after moment, stream after stream.

    `values` are filled up with zeros where a sensor has fewer features than `D`; `features` counts its own. Labels and
    people are indices into their names. The values of a sensor that was not there are not a number. `interval` is the
    usual time between two samples in seconds, `changes` how often labels change, `time` when each reading began, in
    seconds, and `stretch` which unbroken recording it is of, where known.
    """

    values: Float[np.ndarray, "N A D"]
    stream: Int[np.ndarray, " N"]
    person: Int[np.ndarray, " N"]
    secret: Int[np.ndarray, " N"]
    useful: Int[np.ndarray, " N"]
    features: tuple[int, ...]
    people: tuple[str, ...]
    sensors: tuple[str, ...]
    secrets: tuple[str, ...]
    useful_values: tuple[str, ...]
    kind: ReadingKind
    notes: tuple[str, ...] = ()
    interval: float | None = None
    changes: LabelChanges | None = None
    time: Float[np.ndarray, " N"] | None = None
    stretch: Int[np.ndarray, " N"] | None = None

    def of(self, people: "tuple[int, ...] | list[int]") -> "Readings":
        """Those of some people only; who is who stays as it was."""
        kept = np.isin(self.person, list(people))
        rows = {name: value[kept] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return Readings(**{**vars(self), **rows})

    @property
    def step(self) -> float:
        """Seconds from one reading to the next, where nothing is missing."""
        if self.kind.kind == "window":
            return self.kind.seconds
        if self.interval is None:
            raise InputError("These readings do not say how far apart they are. Give the seconds of a step.")
        return self.interval

    @property
    def left(self) -> Int[np.ndarray, " N"]:
        """How many readings there are from each moment to the end of its stream, itself included."""
        last = np.append(self.stream[1:] != self.stream[:-1], True)
        end = np.flatnonzero(last)[np.cumsum(last) - last]
        return end - np.arange(len(last)) + 1


def readings(recorded: Recordings, kind: ReadingKind | None = None) -> Readings:
    """The readings that the recordings hold; without a kind, the usual one for so many samples a second."""
    kind = usual_kind(recorded.interval) if kind is None else kind
    table, notes = recorded.table, recorded.notes
    if kind.kind == "window":
        table, left_out = _windows(recorded, kind)
        notes += left_out
    if table.is_empty():
        raise InputError(f"No stream is long enough for a reading of {kind.seconds:g} s. {_shorter(recorded)}")
    labels = {"person": recorded.people, "secret": recorded.secrets, "useful": recorded.useful}
    index = {name: table[name].cast(pl.Enum(values)).to_physical().to_numpy() for name, values in labels.items()}
    columns = [
        [name for name in table.columns if name.rpartition(".")[0].partition("|")[0] == s] for s in recorded.sensors
    ]
    values = np.zeros((len(table), len(columns), max(map(len, columns))), np.float32)
    for sensor, own in enumerate(columns):
        values[:, sensor, : len(own)] = table.select(own).to_numpy()
    return Readings(
        values=values,
        stream=table["stream"].to_numpy().astype(np.int64),
        **{name: each.astype(np.int64) for name, each in index.items()},
        features=tuple(map(len, columns)),
        people=recorded.people,
        sensors=recorded.sensors,
        secrets=recorded.secrets,
        useful_values=recorded.useful,
        kind=kind,
        notes=notes,
        interval=recorded.interval,
        changes=recorded.changes,
        time=table["time"].to_numpy(),
        stretch=table["stretch"].to_numpy(),
    )


def recorded_prior(recorded: Readings) -> Float[np.ndarray, "S U"]:
    """The share of each pair in what was recorded; every person counts alike, however long the recording."""
    shape = (len(recorded.secrets), len(recorded.useful_values))
    pair = recorded.secret * shape[1] + recorded.useful
    own = [pair[recorded.person == person] for person in np.unique(recorded.person)]
    return np.mean([np.bincount(pairs, minlength=shape[0] * shape[1]) / len(pairs) for pairs in own], 0).reshape(shape)


def uniform_prior(recorded: Readings) -> Float[np.ndarray, "S U"]:
    """The same for every pair that was recorded, zero for the others."""
    seen = np.zeros((len(recorded.secrets), len(recorded.useful_values)))
    seen[recorded.secret, recorded.useful] = 1.0
    return seen / seen.sum()


def _shorter(recorded: Recordings) -> str:
    """Which windows there are readings of."""
    lengths = recorded.table.group_by("stream").agg(pl.col("time").max() - pl.col("time").min())["time"]
    longest = float(lengths.max()) + recorded.interval  # type: ignore[arg-type]
    return f"The longest lasts {longest:.3g} s: take {suggestion(longest, recorded.interval)}."


def _windows(recorded: Recordings, kind: ReadingKind) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Mean and log deviation per axis of consecutive windows of each stream, and what was left out."""
    interval = recorded.interval
    expected = kind.expected(interval)
    axes = [axis for sensor in recorded.sensors for axis in recorded.axes(sensor)]
    place = ((pl.col("time") - pl.col("time").min().over("stream") + TIME_TOLERANCE * interval) / kind.seconds).floor()
    deviation = pl.col(axes).std(ddof=0).clip(LEAST_DEVIATION).log()
    windows = (
        recorded.table.with_columns(window=place)
        .group_by("stream", "window", maintain_order=True)
        .agg(
            pl.col("stretch", "person", "time", "secret", "useful").first(),
            pl.len().alias("samples"),
            pl.col(axes).mean(),
            deviation.name.map(lambda name: f"{name.rpartition('.')[0]}|deviation.{name.rpartition('.')[2]}"),
        )
    )
    full = windows.filter(pl.col("samples") >= FULL_ENOUGH * expected)
    if len(full) == len(windows):
        return full, ()
    lost = windows.filter(pl.col("samples") < FULL_ENOUGH * expected)["person"].value_counts(sort=True)
    by_person = ", ".join(f"{count:,} of {person!r}" for person, count in lost.rows())
    return full, (f"Windows with less than {FULL_ENOUGH:.0%} of their samples are left out: {by_person}.",)
