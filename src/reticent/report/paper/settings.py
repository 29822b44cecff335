"""Settings of a study: what its cells say of each, over the units that it was repeated on.

A unit is a draw of the synthetic problem, or a rotation of people: what another study would draw anew. Seeds within a
unit are averaged first. Intervals are Student's, over units; of a single unit there is none.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import t

from reticent.report.words import PPO

Row = dict[str, Any]
SYNTHETIC = ("releases", "confidence_useful", "accuracy_useful", "accuracy_secret", "violation_rate")
SYNTHETIC += ("spent_bits", "averaged_bits", "averaged_violation_rate")
RECORDED = (*SYNTHETIC[:5], "balanced_useful", "balanced_secret", "retrained_useful", "retrained_secret")
CLASSES = ("accuracy_per_useful", "accuracy_per_secret", "per_useful", "per_secret")
KEYS = ("problem", "bound", "limit", "enforcement", "method")


def settings(rows: pl.DataFrame) -> list[Row]:
    """One row per setting, in the order of bound and limit: means, intervals, and the number of each unit."""
    recorded = "as_printed" in rows.columns
    unit, measures = ("seed", RECORDED) if recorded else ("draw", SYNTHETIC)
    # An accuracy of each value is a list of numbers.
    lists = [name for name in CLASSES if name in rows.columns]
    means = rows.group_by(*KEYS, unit).agg(pl.col(measures).mean(), pl.col(lists), pl.len().alias("seeds"))
    means = means.sort("problem", "bound", "limit", "enforcement", unit, nulls_last=True)
    return [_setting(own, measures) for _, own in means.group_by(*KEYS, maintain_order=True)]


def version(row: Row) -> str:
    """Which version of the paper's study a row is of; "beyond" is none of it."""
    if row["limit"] is None:
        return "letter, unprotected" if row["problem"].endswith("as printed") else "unprotected"
    if row["enforcement"] == "paper":
        return "letter"
    return "corrected" if row["method"] == PPO else "beyond"


def _setting(units: pl.DataFrame, measures: Sequence[str]) -> Row:
    first = units.row(0, named=True)
    row: Row = {"version": version(first), **{key: first[key] for key in KEYS}}
    row |= {"units": len(units), "seeds": int(units["seeds"].max())}  # type: ignore[arg-type]
    for name in measures:
        values = units[name].to_numpy().astype(float)
        if not np.isnan(values).any():
            row |= {**estimate(name, values), f"{name}_by_unit": values.tolist()}
    for name in set(CLASSES) & set(units.columns):
        lists = [own for unit in units[name].to_list() for own in unit if own is not None]
        if lists:
            row[name] = [_mean(each) for each in zip(*lists, strict=True)]
    return row


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that there are: a value that never occurred was never guessed."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def estimate(name: str, values: np.ndarray) -> Row:
    """The mean over units, and its interval where there are several."""
    low, high = interval(values)
    ends = {} if low is None else {f"{name}_low": low, f"{name}_high": high}
    return {name: float(values.mean()), **ends}


def interval(values: np.ndarray) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean of independent values."""
    if len(values) < 2:
        return None, None
    reach = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()) - reach, float(values.mean()) + reach
