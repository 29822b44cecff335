"""Labelled multi-sensor streams, and their summary: people, rates, pairs of labels, irregularities."""

from dataclasses import dataclass, replace

import polars as pl

from reticent.data.changes import LabelChanges
from reticent.data.windows import LONGEST_PAUSE
from reticent.errors import InputError

# Intervals that miss the usual one by more than half of it are irregular; a few do not matter.
IRREGULAR_SHARE = 0.05
LABELS = ["secret", "useful"]


@dataclass(frozen=True, eq=False)
class Recordings:
    """Streams of labelled samples.

    `table` has one row per sample: `stream`, `stretch`, `person`, `time` in seconds, `secret`, `useful`, then one
    column per axis, named "sensor.axis". A stretch is an unbroken recording of one person; a stream is the part of it
    with one secret and one useful label. The axes of a sensor that was not there are null. `notes` say in sentences
    what was left out and what looks odd: nothing is dropped silently. `changes` says how often a stream ended because a
    label changed.
    """

    table: pl.DataFrame
    sensors: tuple[str, ...]
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    notes: tuple[str, ...] = ()
    changes: LabelChanges | None = None

    def axes(self, sensor: str) -> list[str]:
        """The columns of one sensor."""
        return _axes(self.table, sensor)

    @property
    def people(self) -> tuple[str, ...]:
        """Who was recorded, in the order of the table."""
        return tuple(self.table["person"].unique(maintain_order=True))

    @property
    def interval(self) -> float:
        """The usual time between two samples, in seconds."""
        return _usual(_intervals(self.table))


# Of loaders whose files were never at hand.
UNTRIED = "This loader was never run on the published files, only on made-up ones: compare the counts with the source."


def recordings(
    samples: pl.DataFrame,
    sensors: tuple[str, ...],
    secrets: tuple[str, ...],
    useful: tuple[str, ...],
    notes: tuple[str, ...] = (),
    may_lack: tuple[str, ...] = (),
) -> Recordings:
    """Recordings from samples with columns session, person, time, secret, useful and the sensors' axes.

    Samples with a value that is missing or not finite are left out, repeated times once only, both with a note. A
    sensor in `may_lack` is not there at such samples instead, which are kept. Streams end where the session, the person
    or a label changes, and at long pauses.
    """
    whole, left_out = _whole_samples(samples, sensors, may_lack)
    ordered, broken = _streams(whole)
    axes = [name for sensor in sensors for name in _axes(whole, sensor)]
    table = ordered.select(
        pl.col("stream", "stretch").cast(pl.Int64),
        "person",
        pl.col("time").cast(pl.Float64),
        *LABELS,
        pl.col(axes).cast(pl.Float32),
    )
    found = Recordings(table, sensors, secrets, useful, changes=_changes(table))
    return replace(found, notes=(*notes, *left_out, *broken, *_oddities(found)))


def _whole_samples(
    samples: pl.DataFrame, sensors: tuple[str, ...], may_lack: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str]]:
    """The samples that say of whom they are and lack nothing that must be there, and what was left out."""
    named = samples.filter(pl.col("person").is_not_null())
    notes = []
    if lost := len(samples) - len(named):
        notes.append(f"{lost:,} samples do not say of whom they are: left out.")
    always = [name for sensor in sensors if sensor not in may_lack for name in _axes(samples, sensor)]
    whole = named.filter(_whole(["time", *always]))
    if lost := len(named) - len(whole):
        notes.append(f"{lost:,} of {len(named):,} samples lack a value or hold one that is not finite: left out.")
    if whole.is_empty():
        raise InputError("The recordings hold no sample with a value for every axis and labels that are asked for.")
    for sensor in may_lack:
        own = _axes(whole, sensor)
        if absent := whole.select((~_whole(own)).sum()).item():
            notes.append(f"{absent:,} of {len(whole):,} samples are without {sensor}: that is a reading of its own.")
            whole = whole.with_columns(pl.when(_whole(own)).then(pl.col(own)))
    return whole, notes


def _streams(whole: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The samples in the order of their times, once each, with stream and stretch, and what breaks them."""
    notes = []
    ordered = whole.sort("person", "session", "time", maintain_order=True)
    once = ordered.unique(["person", "session", "time"], keep="first", maintain_order=True)
    if lost := len(ordered) - len(once):
        notes.append(f"{lost:,} samples repeat a time of the same session: the first of each is kept.")
    other, moved = (
        pl.any_horizontal(pl.col(names) != pl.col(names).shift()).fill_null(True)
        for names in (["person", "session"], LABELS)
    )
    interval = _usual(_intervals(once.with_columns(stream=(other | moved).cum_sum())))
    pause = pl.col("time").diff() > LONGEST_PAUSE * interval
    if pauses := once.select((pause & ~other & ~moved).sum()).item():
        notes.append(f"{pauses:,} pauses of more than {LONGEST_PAUSE * interval:.3g} s: a stream ends at each.")
    broken = other | pause.fill_null(False)
    return once.with_columns(stream=(broken | moved).cum_sum() - 1, stretch=broken.cum_sum() - 1), notes


def _axes(table: pl.DataFrame, sensor: str) -> list[str]:
    return [name for name in table.columns if name.rpartition(".")[0] == sensor]


def _whole(columns: list[str]) -> pl.Expr:
    return pl.all_horizontal(pl.col(columns).is_not_null() & pl.col(columns).is_finite())


def _changes(table: pl.DataFrame) -> LabelChanges:
    """How often labels change from one sample of a stretch to the next."""
    unbroken = table.select(
        "stretch", after=pl.col("time").diff(), **{label: pl.col(label) != pl.col(label).shift() for label in LABELS}
    ).filter(pl.col("stretch") == pl.col("stretch").shift())
    seconds = float(unbroken["after"].sum())
    return LabelChanges(*(float(unbroken[label].sum()) / seconds for label in LABELS))


def pairs(recorded: Recordings) -> pl.DataFrame:
    """One row per pair of labels, recorded or not: secret, useful, people, samples, minutes."""
    every = pl.DataFrame({"secret": recorded.secrets}).join(pl.DataFrame({"useful": recorded.useful}), how="cross")
    minutes = (pl.len() * recorded.interval / 60).alias("minutes")
    counts = recorded.table.group_by("secret", "useful").agg(
        pl.col("person").n_unique().alias("people"), pl.len().alias("samples"), minutes
    )
    joined = every.join(counts, on=["secret", "useful"], how="left", maintain_order="left")
    return joined.with_columns(
        pl.col("people", "samples").fill_null(0).cast(pl.Int64), pl.col("minutes").fill_null(0.0)
    )


def _usual(between: pl.Series) -> float:
    return float(between.median())  # type: ignore[arg-type]


def _intervals(table: pl.DataFrame) -> pl.Series:
    """The times between neighbours of a stream."""
    between = table.select(pl.col("time").diff().over("stream")).to_series().drop_nulls()
    if between.is_empty():
        raise InputError("No stream has two samples in a row, so there is no rate: are time and person what they say?")
    return between


def _oddities(recorded: Recordings) -> list[str]:
    """What a careful person would want to know before using the recordings."""
    notes = []
    between, usual = _intervals(recorded.table), recorded.interval
    irregular = float(((between - usual).abs() > usual / 2).mean())  # type: ignore[arg-type]
    if irregular > IRREGULAR_SHARE:
        notes.append(f"The rate is irregular: {irregular:.0%} of intervals miss the usual {usual:.4g} s by over half.")
    for secret, useful, people, *_ in pairs(recorded).rows():
        if people == 0:
            notes.append(f"Nothing was recorded of secret {secret!r} with useful {useful!r}: its prior is zero.")
        elif people == 1:
            notes.append(
                f"Only one person was recorded with secret {secret!r} and useful {useful!r}: what is learned of this "
                "pair cannot be tested on another person."
            )
    return notes
