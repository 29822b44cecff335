"""Dwell times: how long labels stay what they are while somebody is recorded."""

from typing import Literal, NamedTuple, get_args

import polars as pl

from reticent.data.changes import duration
from reticent.data.recordings import Recordings

Label = Literal["secret", "useful"]


class Dwell(NamedTuple):
    """The time that one value of a label was recorded for, and how many of its stays were seen to end.

    A stay that a pause or the end of the recording cuts off counts its time and no end, so that `mean_seconds` is the
    maximum-likelihood mean of memoryless stays. It is None where no stay ended.
    """

    label: Label
    value: str
    seconds: float
    ends: int

    @property
    def mean_seconds(self) -> float | None:
        return self.seconds / self.ends if self.ends else None

    def __str__(self) -> str:
        if self.mean_seconds is None:
            return f"{self.value} was never seen to end in {duration(self.seconds)}"
        return f"{self.value} {duration(self.mean_seconds)} ({self.ends:,} ends in {duration(self.seconds)})"


def dwells(recorded: Recordings) -> list[Dwell]:
    """Those of every value of both labels."""
    following = recorded.table.select(
        pl.col("secret", "useful"),
        pl.col("secret", "useful").shift(-1).name.prefix("next_"),
        seconds=pl.col("time").diff().shift(-1),
        unbroken=pl.col("stretch") == pl.col("stretch").shift(-1),
    ).filter("unbroken")
    found = []
    for label, names in zip(get_args(Label), (recorded.secrets, recorded.useful), strict=True):
        sums = following.group_by(label).agg(
            pl.col("seconds").sum(), ends=(pl.col(label) != pl.col(f"next_{label}")).sum()
        )
        by_value = {value: (float(seconds), int(ends)) for value, seconds, ends in sums.rows()}
        found += [Dwell(label, name, *by_value.get(name, (0.0, 0))) for name in names]
    return found
