"""The report of a sweep: trade-off curves, and the settings that no other beats.

A setting is everything but the seed: problem, price of an error, bound, enforcement and method.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from reticent.report.figures import AXIS, POLICY_COLOURS, Figure
from reticent.report.page import render_page, save_figures

# Costs of different problems or prices are not to be compared: each pair has figures and fronts of its own.
APART = ("problem", "error_penalty")
SETTING = (*APART, "kind", "limit", "enforce", "method")
MEASURES = ("paid", "releases", "accuracy_useful", "accuracy_secret", "spent_bits", "violation_rate")
AXES = {**AXIS, "expected": "bound on information about S, on average (bits)"}
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
MORE_COLOURS = {"agent, paper": "#888888", "value kernels": "#7b1e12"}


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


def write_sweep_report(folder: Path) -> Path:
    """`report.html` and `figures/` from the results saved in the folder."""
    provenance = json.loads((folder / "provenance.json").read_text())
    about = provenance.pop("sweep")
    results = read_results(folder)
    drawn = {name: (figure, caption) for name, figure, caption in sweep_figures(results)}
    figures = {name: figure for name, (figure, _) in drawn.items()}
    save_figures(folder / "figures", figures)
    means = with_fronts(results)
    headings, rows = sweep_table(means)
    text = render_page(
        "sweep.html",
        provenance,
        figures,
        {name: caption for name, (_, caption) in drawn.items()},
        headings=headings,
        table=rows,
        fronts=FRONTS,
        seeds=_range(means["seeds"]),
        finished=len(results),
        cells=about["cells"],
        settings={
            **{name: _range(own["effort"]) for name, own in _learned(results).items() if len(own)},
            "episodes per evaluation": _range(results["episodes"]),
            "left out": " ".join(about["left_out"]) or "nothing",
        },
        spec=about["spec"],
    )
    page = folder / "report.html"
    page.write_text(text, encoding="utf-8")
    return page


def read_results(folder: Path) -> pl.DataFrame:
    """All rows there are, with the method in words and the cost that counts."""
    results = pl.read_parquet(folder / "results" / "*.parquet")
    method = pl.when(pl.col("recipe") == "default").then("policy").otherwise(pl.format("{}, {}", "policy", "recipe"))
    # What a multiplier charges is a means to an end: the plain cost is what is paid.
    paid = pl.when(pl.col("kind") == "expected").then("cost_without_penalty").otherwise("cost")
    return results.with_columns(method.alias("method"), paid.alias("paid")).sort(*SETTING, "seed")


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
        rows.append([_bound(row), row["enforce"], row["method"], *apart, *numbers, row["fronts"]])
    return headings, rows


def _bound(row: dict[str, Any]) -> str:
    word = {"confidence": "L_B {:g}", "information": "L_MI {:g}", "expected": "mean {:g}", "none": "none"}
    return word[row["kind"]].format(row["limit"])


def _learned(results: pl.DataFrame) -> dict[str, pl.DataFrame]:
    agent = pl.col("policy") == "agent"
    iterated = pl.col("policy").is_in(["value iteration", "value kernels"])
    return {
        "environment steps per agent": results.filter(agent),
        "rounds of value iteration, at most": results.filter(iterated),
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
        for kind in [kind for kind in AXES if kind in set(own["kind"])]:
            bounded = own.filter(pl.col("kind") == kind)
            for measure, name in (("paid", "cost"), ("accuracy_useful", "useful")):
                figure = over_bound(bounded, kind, measure)
                yield f"{name}_{kind}_{number}", figure, f"{where}Rings are seeds, lines their means."
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
    means = rows.group_by(SETTING).agg(pl.col(MEASURES).mean()).sort(SETTING)
    y = alt.Y(f"{measure}:Q", title=TITLES[measure], axis=_axis(measure)).scale(zero=False)
    tooltip = ["method", "enforce", *shown, measure]
    rings = alt.Chart(rows).mark_point(size=26, strokeWidth=1, opacity=0.8)
    line = alt.Chart(means).mark_line(point=alt.OverlayMarkDef(size=45))
    looks = {"color": _colour(rows), "shape": _enforcement(rows, alt.Shape, 0)}
    dashes = _enforcement(rows, alt.StrokeDash, 1)
    return [
        line.encode(x=x, y=y, order="limit:Q", detail="kind:N", tooltip=tooltip, strokeDash=dashes, **looks),
        rings.encode(x=x, y=y, tooltip=[*tooltip, "seed"], **looks),
    ]


def _colour(rows: pl.DataFrame) -> alt.Color:
    colours = {**POLICY_COLOURS, **MORE_COLOURS}
    methods = [method for method in colours if method in set(rows["method"])]
    legend = alt.Legend(orient="bottom", columns=3, symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=2)
    scale = alt.Scale(domain=methods, range=[colours[method] for method in methods])
    return alt.Color("method:N", title=None, scale=scale, legend=legend)


def _enforcement(rows: pl.DataFrame, channel: Any, look: int) -> Any:
    shown = {enforce: looks[look] for enforce, looks in ENFORCEMENTS.items() if enforce in set(rows["enforce"])}
    scale = alt.Scale(domain=list(shown), range=list(shown.values()))
    return channel("enforce:N", title=None, scale=scale, legend=alt.Legend(orient="bottom"))


def _axis(measure: str) -> alt.Axis:
    return alt.Axis(format="~%") if measure in SHARES else alt.Axis()


def _sized(chart: Figure, title: str) -> Figure:
    return chart.properties(width=360, height=230, title=title)
