"""The table of the synthetic study, from its saved results."""

from typing import Any

import polars as pl

from reticent.report.words import BOUNDS, PPO, SETTING, bound_words, method_words

ACCURACIES = ("accuracy_useful", "accuracy_secret")
# Weakest promise first.
PROMISES = pl.Enum(["none", "in_expectation", "never"])


def summary(results: pl.DataFrame, error_penalty: float = 50.0) -> list[list[str]]:
    """One line per bound, enforcement and method, numbers as text; the mean over draws and seeds.

    Bound, kept by, method, cost, releases, accuracies, violations. The agent comes first, what is never crossed last.
    What a line has no number for is a dash.
    """
    numbers = pl.col("cost", "releases", *ACCURACIES, "violation_rate").mean()
    means = (
        results.filter(pl.col("error_penalty") == error_penalty)
        # Every draw of the problem counts alike, however many seeds it has.
        .group_by(*SETTING, "promise", "draw")
        .agg(numbers)
        .group_by(*SETTING, "promise")
        .agg(numbers)
        .with_columns(
            pl.col("promise").cast(PROMISES),
            pl.col("bound").cast(pl.Enum(list(BOUNDS))).alias("kind"),
            (pl.col("method") != PPO).alias("after"),
        )
        .sort("kind", "limit", "promise", "enforcement", "after", "cost", "method")
    )
    return [_line(row) for row in means.iter_rows(named=True)]


def _line(row: dict[str, Any]) -> list[str]:
    # Without a limit there is nothing to keep or to charge for, so that cost says nothing beside the others.
    bounded = row["limit"] is not None
    cost, over = (_fixed(row["cost"]), _percent(row["violation_rate"])) if bounded else ("-", "-")
    words = [bound_words(row), row["enforcement"] if bounded else "-", method_words(row["method"])]
    return [*words, cost, _fixed(row["releases"]), *(_percent(row[name]) for name in ACCURACIES), over]


def _fixed(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def _percent(number: float | None) -> str:
    return "-" if number is None else f"{100 * number:.1f}%"
