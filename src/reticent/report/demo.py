"""The page of the demo, drawn from its demo.json: accuracy against the bound, and sessions to step through."""

import json
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
from markupsafe import Markup

from reticent.report.demo_moving import CAPTION as HOUR_CAPTION
from reticent.report.demo_moving import hour, moving_rows
from reticent.report.figures import SECRET, USEFUL, Figure
from reticent.report.page import render_page, save_figures

FIGURE, HOUR = "accuracy", "hour"
LABELS = {"useful": "U: still or moving", "secret": "S: elevator or not"}
CAPTION = (
    "Accuracy of the strongest attacker, by the bound on the belief in S: estimates, with 95 % intervals over "
    "people. Dashed: ten readings without protection. The bound is on the belief of the fitted model and holds exactly "
    "there; accuracy on people whom the model fits badly may lie above it."
)


def write_demo_report(folder: Path) -> Path:
    """`report.html` and the figure from `demo.json` in the folder."""
    found = json.loads((folder / "demo.json").read_text())
    still, moving = found["still"], found["moving"]
    drawn = {FIGURE: accuracy(still), HOUR: hour(moving)}
    save_figures(folder / "figures", {name: each.properties(width=520, height=300) for name, each in drawn.items()})
    page, table = folder / "report.html", rows(still)
    # As wide as the page is.
    figures: dict[str, Figure] = {
        name: each.properties(width="container", height=height)
        for (name, each), height in zip(drawn.items(), (320, 260), strict=True)
    }
    text = render_page(
        "demo.html",
        {"title": "What a wrist sensor tells", **found["provenance"]},
        figures,
        {FIGURE: CAPTION, HOUR: HOUR_CAPTION},
        source=found["source"],
        still=still,
        moving=moving,
        moving_rows=moving_rows(moving),
        moving_limit=f"{100 * moving['limit']:g} %",
        shown=f"{100 * still['shown']:g} %",
        rows=table,
        unprotected=table[0],
        guarded=next(row for row in table if row["limit"] == still["shown"]),
        sessions=Markup(json.dumps(still["sessions"]).replace("<", "\\u003c")),
        names=Markup(json.dumps({"secret": still["secrets"], "useful": still["useful"]})),
        limit=still["shown"],
    )
    page.write_text(text, encoding="utf-8")
    return page


def rows(still: dict[str, Any]) -> list[dict[str, Any]]:
    """Every setting in words: no protection first, then by bound."""
    return [
        {
            "limit": row["limit"],
            "kept": "no protection" if row["limit"] is None else f"at most {100 * row['limit']:g} %",
            "readings": f"{row['releases']:.1f}",
            "useful": _percent(row["useful"]),
            "secret": _percent(row["secret"]),
            "highest": f"{100 * row['highest']:.2f} %",
        }
        for row in still["rows"]
    ]


def accuracy(still: dict[str, Any]) -> Figure:
    """What attackers name correctly, by bound; without protection as flat lines; and the bound itself."""
    table = pl.DataFrame(
        [
            {"bound": row["limit"] and 100 * row["limit"], "label": words, **_ends(row[label])}
            for row in still["rows"]
            for label, words in LABELS.items()
        ],
        schema_overrides={"bound": pl.Float64},
    )
    guarded, unprotected = table.drop_nulls("bound"), table.filter(pl.col("bound").is_null())
    colour = alt.Color(
        "label:N",
        scale=alt.Scale(domain=list(LABELS.values()), range=[USEFUL, SECRET]),
        legend=alt.Legend(title=None, orient="top"),
    )
    x = alt.X("bound:Q", title="bound on the provider's belief in S (%)", scale=alt.Scale(zero=False, padding=12))
    y = alt.Y("value:Q", title="named correctly (%)", scale=alt.Scale(domain=(45, 100)))
    points = alt.Chart(guarded).encode(x, y, colour)
    ends = alt.Chart(guarded).encode(x, colour, y=alt.Y("low:Q", title="named correctly (%)"), y2="high:Q")
    limits = (
        guarded.select("bound").unique().sort("bound").with_columns(value=pl.col("bound"), says=pl.lit("the bound"))
    )
    bound = alt.Chart(limits).encode(x, y)
    layers = (
        alt.Chart(unprotected).mark_rule(strokeDash=[7, 4], strokeWidth=2).encode(y, colour),
        alt.Chart(unprotected.with_columns(says=pl.lit("without protection")))
        .mark_text(align="right", baseline="bottom", dx=-4, dy=-3)
        .encode(y, colour, text="says:N", x=alt.value("width")),
        bound.mark_line(color="#808890", strokeWidth=1.5),
        bound.transform_filter(f"datum.bound == {limits['bound'].max()}")
        .mark_text(align="right", baseline="bottom", dx=-6, color="#808890")
        .encode(text="says:N"),
        ends.mark_rule(opacity=0.45, strokeWidth=2),
        points.mark_line(),
        points.mark_point(filled=True, size=70),
    )
    return alt.layer(*layers)


def _ends(number: dict[str, Any]) -> dict[str, float]:
    return {end: 100 * number[end] for end in ("value", "low", "high")}


def _percent(number: dict[str, Any]) -> str:
    value, low, high = _ends(number).values()
    return f"{value:.0f} % [{low:.0f}, {high:.0f}]"
