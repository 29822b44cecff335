"""The part of the demo's page about labels that change: an hour, and what is known of each moment of it."""

from typing import Any

import altair as alt
import polars as pl

from reticent.report.figures import SECRET, Figure

GUARDS = {"none": "no protection", "present": "guard of the present alone", "whole": "the guarantee"}
COLOURS = ("#9aa4af", "#d98c1f", SECRET)
CAPTION = (
    "Belief in the elevator at each moment of one hour, in hindsight: with everything that was sent until the end. "
    "Shaded: in the elevator. Dashed: the bound on either value of the secret. Exact, for the model."
)


def moving_rows(moving: dict[str, Any]) -> list[dict[str, str]]:
    """What is known under each guard, in words."""
    return [
        {
            "kept": words,
            "useful": _percent(moving["rows"][name]["useful"]),
            "hindsight": _percent(moving["rows"][name]["hindsight"]),
            "highest_now": f"{100 * moving['rows'][name]['highest_now']:.2f} %",
            "highest": f"{100 * moving['rows'][name]['highest']:.2f} %",
        }
        for name, words in GUARDS.items()
    ]


def hour(moving: dict[str, Any]) -> Figure:
    """The belief in hindsight under each guard, over the truth."""
    minutes = moving["seconds_per_step"] / 60
    table = pl.DataFrame(
        [
            {"minute": minutes * step, "belief": 100 * belief, "guard": words}
            for name, words in GUARDS.items()
            for step, belief in enumerate(moving["hour"][name]["hindsight"])
        ]
    )
    colour = alt.Color(
        "guard:N",
        scale=alt.Scale(domain=list(GUARDS.values()), range=list(COLOURS)),
        legend=alt.Legend(title=None, orient="top"),
    )
    x = alt.X("minute:Q", title="minute", scale=alt.Scale(domain=(0, minutes * len(moving["hour"]["none"]["secret"]))))
    y = alt.Y("belief:Q", title="belief in the elevator, in hindsight (%)", scale=alt.Scale(domain=(0, 100)))
    limits = pl.DataFrame({"belief": [100 * moving["limit"], 100 - 100 * moving["limit"]]})
    return alt.layer(
        alt.Chart(_stays(moving["hour"]["none"]["secret"], minutes))
        .mark_rect(opacity=0.13, color=SECRET)
        .encode(x=alt.X("begin:Q", title="minute"), x2="end:Q"),
        alt.Chart(limits).mark_rule(strokeDash=[7, 4]).encode(y),
        alt.Chart(table).mark_line(strokeWidth=1.6).encode(x, y, colour),
    )


def _stays(secret: list[int], minutes: float) -> pl.DataFrame:
    """When the last value of the secret begins and ends."""
    inside = [value == max(secret) for value in secret]
    edges = [
        step
        for step in range(len(inside) + 1)
        if (step < len(inside) and inside[step]) != (step > 0 and inside[step - 1])
    ]
    return pl.DataFrame(
        {"begin": [minutes * step for step in edges[::2]], "end": [minutes * step for step in edges[1::2]]},
        schema={"begin": pl.Float64, "end": pl.Float64},
    )


def _percent(number: dict[str, Any]) -> str:
    value, low, high = (100 * number[end] for end in ("value", "low", "high"))
    return f"{value:.0f} % [{low:.0f}, {high:.0f}]"
