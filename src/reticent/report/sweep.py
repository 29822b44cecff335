"""The report of a sweep: trade-off curves, and the settings that no other beats.

A setting is everything but the seed: problem, price of an error, bound, enforcement and method.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from reticent.report.figures import Figure
from reticent.report.page import Content
from reticent.report.results import Results
from reticent.report.words import AXES, ITERATED, METHODS, bound_words, method_words
from reticent.report.words import SETTING as KEPT

# Costs of different problems or prices are not to be compared: each pair has figures and fronts of its own.
APART = ("problem", "error_penalty")
SETTING = (*APART, *KEPT)
MEASURES = ("paid", "releases", "accuracy_useful", "accuracy_secret", "spent_bits", "violation_rate")
TITLES = {
    "paid": "mean cost",
    "accuracy_useful": "accuracy on the useful U",
    "accuracy_secret": "accuracy on the secret S",
    "spent_bits": "information about S by the stop, on average (bits)",
}
SHARES = ("accuracy_useful", "accuracy_secret", "violation_rate")
# Shape and dashes, the same in every figure.
ENFORCEMENTS = {
    "penalty": ("circle", [1, 0]),
    "withhold": ("triangle-up", [8, 3]),
    "coarsen": ("square", [4, 2]),
    "answer": ("diamond", [2, 2]),
    "mask": ("triangle-down", [6, 2, 2, 2]),
    "lagrangian": ("triangle-right", [10, 4]),
    "paper": ("triangle-left", [1, 3]),
}


@dataclass(frozen=True)
class Front:
    """What is wanted (`worth`) and what is given away for it (`leak`)."""

    letter: str
    worth: str
    leak: str

    @property
    def words(self) -> str:
        """What it is the best of."""
        best = "least cost" if self.worth == "paid" else "highest accuracy on U"
        return f"{best} for its {'accuracy on S' if self.leak == 'accuracy_secret' else 'information about S'}"


FRONTS = (
    Front("a", "paid", "accuracy_secret"),
    Front("b", "paid", "spent_bits"),
    Front("c", "accuracy_useful", "accuracy_secret"),
    Front("d", "accuracy_useful", "spent_bits"),
)


def sweep_content(results: Results) -> Content:
    """Curves, trade-offs, and one line per setting."""
    rows, study = comparable(results), results.study
    drawn = {name: (figure, caption) for name, figure, caption in sweep_figures(rows)}
    means = with_fronts(rows)
    headings, table = sweep_table(means)
    fields = {
        "headings": headings,
        "table": table,
        "fronts": FRONTS,
        "seeds": _range(means["seeds"]),
        "finished": len(rows),
        "cells": study["cells"],
        "promises": results.promises,
        "settings": {
            **{name: _range(own["effort"]) for name, own in _learned(rows).items() if len(own)},
            "episodes per evaluation": _range(rows["episodes"]),
            "left out": " ".join(study["left_out"]) or "nothing",
        },
        "spec": study["spec"],
    }
    figures = {name: figure for name, (figure, _) in drawn.items()}
    captions = {name: caption for name, (_, caption) in drawn.items()}
    return Content("sweep.html", figures, captions, fields)


def comparable(results: Results) -> pl.DataFrame:
    """The rows in order, with the cost that counts."""
    # What a multiplier charges is a means to an end: the plain cost is what is paid.
    paid = pl.when(pl.col("promise") == "in_expectation").then("cost_without_penalty").otherwise("cost")
    return results.rows.with_columns(paid.alias("paid")).sort(*SETTING, "seed")


def with_fronts(results: pl.DataFrame) -> pl.DataFrame:
    """One row per setting: means over seeds, and the letters of the fronts that it is on."""
    means = results.group_by(SETTING).agg(pl.len().alias("seeds"), pl.col(MEASURES).mean()).sort(SETTING)
    parts = []
    for _, part in means.group_by(APART, maintain_order=True):
        on = [np.where(on_front(part, front), front.letter, "") for front in FRONTS]
        parts.append(part.with_columns(pl.Series("fronts", ["".join(letters) for letters in zip(*on, strict=True)])))
    return pl.concat(parts)


def on_front(settings: pl.DataFrame, front: Front) -> np.ndarray:
    """Which settings no other beats: none is at least as good in both, and better in one."""
    leak = settings[front.leak].to_numpy()
    # Least of both is best.
    worth = settings[front.worth].to_numpy() * (1 if front.worth == "paid" else -1)
    as_good = (leak[None] <= leak[:, None]) & (worth[None] <= worth[:, None])
    better = (leak[None] < leak[:, None]) | (worth[None] < worth[:, None])
    return np.logical_not((as_good & better).any(1))


def sweep_table(settings: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Headings and one line per setting, as text; problem and price only where there are several."""
    several = [column for column in APART if settings[column].n_unique() > 1]
    names = {"problem": "problem", "error_penalty": "λ"}
    headings = ["bound", "kept by", "method", *(names[column] for column in several)]
    headings += ["cost", "τ", "U", "S", "bits", "over", "front"]
    rows = []
    for row in settings.iter_rows(named=True):
        apart = [f"{row[c]:g}" if c == "error_penalty" else row[c] for c in several]
        numbers = [f"{row['paid']:.2f}", f"{row['releases']:.2f}"]
        numbers += [f"{100 * row[c]:.1f}" for c in SHARES[:2]] + [f"{row['spent_bits']:.3f}"]
        numbers += [f"{100 * row['violation_rate']:.2f}"]
        words = [bound_words(row), row["enforcement"], method_words(row["method"])]
        rows.append([*words, *apart, *numbers, row["fronts"]])
    return headings, rows


def _learned(rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {
        "environment steps per agent": rows.filter(pl.col("method").is_in(["ppo", "a2c"])),
        "rounds of value iteration, at most": rows.filter(pl.col("method").is_in(ITERATED)),
    }


def _range(values: pl.Series) -> str:
    low, high = values.min(), values.max()
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def sweep_figures(results: pl.DataFrame) -> Iterator[tuple[str, Figure, str]]:
    """Name, figure and caption: for each problem and price the curves over each bound, then the trade-offs."""
    several = results.select(APART).unique().height > 1
    pairs = results.select(APART).unique(maintain_order=True).rows()
    for number, (problem, price) in enumerate(pairs, 1):
        own = results.filter((pl.col("problem") == problem) & (pl.col("error_penalty") == price))
        where = f"{problem}, λ {price:g}. " if several else ""
        for kind in [kind for kind in AXES if kind in set(own["bound"])]:
            bounded = own.filter(pl.col("bound") == kind)
            for measure, name in (("paid", "cost"), ("accuracy_useful", "useful")):
                figure = over_bound(bounded, kind, measure)
                yield f"{name}_{kind.replace(' ', '-')}_{number}", figure, f"{where}Rings are seeds, lines their means."
        for front in FRONTS:
            better = "below" if front.worth == "paid" else "above"
            caption = f"{where}Each line goes through the bounds of one method; to the left and {better} is better. "
            caption += f"Grey: front {front.letter}, {front.words}."
            yield f"front_{front.letter}_{number}", trade_off(own, front), caption


def over_bound(rows: pl.DataFrame, kind: str, measure: str) -> Figure:
    """A measure against the bound, one line per method and enforcement."""
    limits = alt.Axis(values=rows["limit"].unique().sort().to_list(), labelOverlap="greedy")
    x = alt.X("limit:Q", title=AXES[kind], axis=limits).scale(zero=False, padding=12)
    title = {"paid": "Cost (lower is better)", "accuracy_useful": "Accuracy on U (higher is better)"}[measure]
    return _sized(alt.layer(*_seeds_and_means(rows, x, measure, ["limit"])), title)


def trade_off(rows: pl.DataFrame, front: Front) -> Figure:
    """What is wanted against what is given away, and the front."""
    x = alt.X(f"{front.leak}:Q", title=TITLES[front.leak], axis=_axis(front.leak)).scale(zero=False)
    means = rows.group_by(SETTING).agg(pl.col(MEASURES).mean())
    best = means.filter(pl.Series(on_front(means, front))).sort(front.leak)
    line = alt.Chart(best).mark_line(interpolate="step-after", color="#999999", strokeWidth=6, opacity=0.35)
    y = alt.Y(f"{front.worth}:Q", title=TITLES[front.worth], axis=_axis(front.worth)).scale(zero=False)
    layers = [line.encode(x=x, y=y), *_seeds_and_means(rows, x, front.worth, ["limit", front.leak])]
    return _sized(alt.layer(*layers), f"Front {front.letter}: {front.words}")


def _seeds_and_means(rows: pl.DataFrame, x: alt.X, measure: str, shown: list[str]) -> list[alt.Chart]:
    """A line through the means over seeds from bound to bound, and the seeds as small rings."""
    means = rows.group_by(*SETTING, "policy").agg(pl.col(MEASURES).mean()).sort(SETTING)
    y = alt.Y(f"{measure}:Q", title=TITLES[measure], axis=_axis(measure)).scale(zero=False)
    tooltip = ["policy", "enforcement", *shown, measure]
    rings = alt.Chart(rows).mark_point(size=26, strokeWidth=1, opacity=0.8)
    line = alt.Chart(means).mark_line(point=alt.OverlayMarkDef(size=45))
    looks = {"color": _colour(rows), "shape": _enforcement(rows, alt.Shape, 0)}
    dashes = _enforcement(rows, alt.StrokeDash, 1)
    return [
        line.encode(x=x, y=y, order="limit:Q", detail="bound:N", tooltip=tooltip, strokeDash=dashes, **looks),
        rings.encode(x=x, y=y, tooltip=[*tooltip, "seed"], **looks),
    ]


def _colour(rows: pl.DataFrame) -> alt.Color:
    present = set(rows["method"])
    looks = dict(look for method, look in METHODS.items() if method in present)
    legend = alt.Legend(orient="bottom", columns=3, symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=2)
    scale = alt.Scale(domain=list(looks), range=list(looks.values()))
    return alt.Color("policy:N", title=None, scale=scale, legend=legend)


def _enforcement(rows: pl.DataFrame, channel: Any, look: int) -> Any:
    shown = {name: looks[look] for name, looks in ENFORCEMENTS.items() if name in set(rows["enforcement"])}
    scale = alt.Scale(domain=list(shown), range=list(shown.values()))
    return channel("enforcement:N", title=None, scale=scale, legend=alt.Legend(orient="bottom"))


def _axis(measure: str) -> alt.Axis:
    return alt.Axis(format="~%") if measure in SHARES else alt.Axis()


def _sized(chart: Figure, title: str) -> Figure:
    return chart.properties(width=360, height=230, title=title)
