"""`python -m benchmarks.figures` draws docs/scale.png and docs/race.png from raw numbers, with their day and commit."""

import json
from typing import Any

import altair as alt
import polars as pl

from benchmarks.page import FOLDER, RESULTS

RATES = {
    "releases_per_second_penalty": "releases/s, penalty",
    "releases_per_second_coarsen": "releases/s, coarsen",
    "training_steps_per_second": "training steps/s",
}
Panel = alt.FacetChart | alt.LayerChart
COLOURS = ["#c0392b", "#7b1e12", "#5b7fb5", "#2563a8"]


def draw() -> None:
    for name, panels in (("scale", scale_panels), ("race", race_panels)):
        run = json.loads((RESULTS / f"{name}.json").read_text())
        stamp = f"measured {run['date'][:10]}, commit {run['commit']}"
        title = alt.TitleParams(stamp, fontSize=10, fontWeight="normal", anchor="end", orient="bottom")
        chart = alt.hconcat(*panels(run["numbers"])).properties(title=title)
        chart.save(FOLDER.parent / "docs" / f"{name}.png", scale_factor=2)


def scale_panels(rows: list[dict[str, Any]]) -> list[alt.Chart]:
    """One panel for each size that grows."""
    points = [
        {"grows": row["grows"], "size": row["size"], "what": what, "rate": row[field]}
        for row in rows
        for field, what in RATES.items()
        if field in row
    ]
    return [_sizes(axis, pl.DataFrame(points)) for axis in dict.fromkeys(point["grows"] for point in points)]


def _sizes(axis: str, points: pl.DataFrame) -> alt.Chart:
    here = points.filter(pl.col("grows") == axis)
    ticks = alt.Axis(values=here["size"].unique().to_list())
    return (
        alt.Chart(here)
        .mark_line(point=True)
        .encode(
            x=alt.X("size:Q", scale=alt.Scale(type="log", nice=False, padding=12), title=axis, axis=ticks),
            y=alt.Y("rate:Q", scale=alt.Scale(type="log"), title="per second", axis=alt.Axis(format="~s")),
            color=alt.Color("what:N", title=None, scale=alt.Scale(range=["#c0392b", "#2563a8", "#111111"])),
        )
        .properties(width=230, height=220)
    )


def race_panels(rows: list[dict[str, Any]]) -> list[Panel]:
    """One panel for each bound: cost against seconds, and the lower bound."""
    return [
        _costs(*bound, [row for row in rows if (row["bound"], row["limit"]) == bound])
        for bound in dict.fromkeys((row["bound"], row["limit"]) for row in rows)
    ]


def _costs(bound: str, limit: float, rows: list[dict[str, Any]]) -> Panel:
    points = [
        {"who": row["who"], "seconds": second, "cost": cost}
        for row in rows
        for second, cost in zip(row["seconds"], row["costs"], strict=True)
    ]
    lower, worst = rows[0]["lower_bound"], max(row["final_cost"] for row in rows)
    # From below the lower bound to above the worst that anybody ended with; first attempts may lie beyond.
    shown, who = [0.98 * lower, 1.08 * worst], [row["who"] for row in rows]
    lines = (
        alt.Chart(pl.DataFrame(points))
        .mark_line(point=True, clip=True)
        .encode(
            x=alt.X("seconds:Q", scale=alt.Scale(type="log", nice=False, padding=8), title="seconds of training"),
            y=alt.Y("cost:Q", scale=alt.Scale(domain=shown, nice=False), title="cost"),
            color=alt.Color("who:N", sort=who, title=None, scale=alt.Scale(range=COLOURS)),
        )
    )
    rule = alt.Chart(pl.DataFrame({"cost": [lower]})).mark_rule(strokeDash=[4, 3]).encode(y="cost:Q")
    return alt.layer(lines, rule).properties(
        title=f"{bound} {limit:g} (dashed: certified lower bound)", width=260, height=240
    )


if __name__ == "__main__":
    draw()
