"""Tables of a study, from its saved results."""

import polars as pl

AGENT = "agent"
# Enforcements that send something in place of readings.
REPLACING = ("withhold", "coarsen", "answer")
PERCENT = ("accuracy_useful", "accuracy_secret", "violation_rate")


def summary(results: pl.DataFrame, error_penalty: float = 50.0) -> pl.DataFrame:
    """One line per bound, enforcement and policy, numbers as text; the mean over seeds where there are several.

    The agent comes first, what sends something in place of readings last. What a line has no number for is a dash.
    """
    kinds = pl.Enum(["confidence", "information", "expected", "none"])
    means = (
        results.filter(pl.col("error_penalty") == error_penalty)
        .group_by("kind", "limit", "enforce", "policy")
        .agg(pl.col("cost", "releases", *PERCENT).mean())
        .with_columns(
            pl.col("kind").cast(kinds),
            pl.col("enforce").is_in(REPLACING).alias("replacing"),
            (pl.col("policy") != AGENT).alias("after"),
        )
        .sort("kind", "limit", "replacing", "after", "cost", "policy")
    )
    # Without protection there is no bound to charge for, so its cost says nothing beside the others.
    bounded = pl.col("kind") != "none"
    return means.select(
        pl.when(pl.col("kind") == "confidence")
        .then(pl.format("L_B {}", "limit"))
        .when(pl.col("kind") == "information")
        .then(pl.format("L_MI {}", "limit"))
        .when(pl.col("kind") == "expected")
        .then(pl.format("{} bits on average", "limit"))
        .otherwise(pl.lit("none"))
        .alias("bound"),
        pl.when(bounded).then("enforce").otherwise(pl.lit("-")).alias("enforce"),
        "policy",
        pl.when(bounded).then(_fixed("cost", 2)).otherwise(pl.lit("-")).alias("cost"),
        _fixed("releases", 2),
        *(_percent(name, 1) for name in PERCENT[:2]),
        pl.when(bounded).then(_percent("violation_rate", 1)).otherwise(pl.lit("-")).alias("violation_rate"),
    ).with_columns(pl.all().fill_null("-"))


def _fixed(column: str, digits: int) -> pl.Expr:
    return pl.col(column).map_elements(lambda x: f"{x:.{digits}f}", return_dtype=pl.String)


def _percent(column: str, digits: int) -> pl.Expr:
    return pl.col(column).map_elements(lambda x: f"{100 * x:.{digits}f}%", return_dtype=pl.String)
