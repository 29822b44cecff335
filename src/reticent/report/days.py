"""The page about simulated days of a policy for a problem that goes on, from days.json."""

import json
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from reticent.report.audit_tables import spaced
from reticent.report.figures import SECRET, TIME, USEFUL, Figure
from reticent.report.page import render_page, save_figures

CAPTIONS = {
    "silence": "Share of steps in which nothing is sent, and of those in which nothing may be sent (locked), by time "
    "of the day. Estimates.",
    "useful": "How often the provider's best guess of the useful value of the moment is right, by time of the day. "
    "Estimates.",
    "bits": "Information about the secret of its own moment that a step says, by time of the day. Estimates.",
}
SHARES = ("accuracy_useful", "accuracy_secret", "accuracy_secret_hindsight", "releases", "locked")
KNOWN = {
    "highest_filter": "of the secret of the present",
    "highest_smoother": "of any moment, once everything has been sent",
    "highest_prediction": "of up to 60 steps ahead",
}


def write_days_report(folder: Path) -> Path:
    """`report.html` and `figures/` from `days.json` in the folder."""
    found = json.loads((folder / "days.json").read_text())
    figures = {name: chart.properties(width=360, height=230) for name, chart in day_figures(found["course"]).items()}
    save_figures(folder / "figures", figures)
    settings = {
        "simulated": f"{found['days']:,} days of {found['steps']:,} steps",
        "seed": found["seed"],
        **{key: value for key, value in found["made"].items() if key == "method"},
    }
    text = render_page(
        "days.html",
        {"title": found["title"], **found["provenance"]},
        figures,
        CAPTIONS,
        found=found,
        numbers=_numbers(found),
        known=[(words, f"{100 * found[name]:.2f} %") for name, words in KNOWN.items()],
        course=[_part(part) for part in found["course"]],
        settings=settings,
    )
    page = folder / "report.html"
    page.write_text(text, encoding="utf-8")
    return page


def day_figures(course: list[dict[str, Any]]) -> dict[str, Figure]:
    """Silence, utility and information by time of the day."""
    return {
        "silence": _curves(course, {"silent": ("nothing is sent", "#7b8794"), "locked": ("locked", SECRET)}, "~%"),
        "useful": _curves(course, {"accuracy_useful": ("useful value right", USEFUL)}, "~%"),
        "bits": _curves(course, {"bits": ("bits about the secret per step", TIME)}, "~g"),
    }


def _curves(course: list[dict[str, Any]], lines: dict[str, tuple[str, str]], form: str) -> Figure:
    table = pl.DataFrame(
        [
            {"step": part["step"], "value": part[name], "line": words}
            for name, (words, _) in lines.items()
            for part in course
        ]
    )
    domain, colours = zip(*lines.values(), strict=True)
    base = alt.Chart(table).encode(
        x=alt.X("step:Q", title="step of the day at which the part begins"),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format=form), scale=alt.Scale(domainMin=0)),
        color=alt.Color(
            "line:N",
            scale=alt.Scale(domain=list(domain), range=list(colours)),
            legend=alt.Legend(title=None, orient="top"),
        ),
    )
    return alt.layer(base.mark_line(interpolate="step-after"), base.mark_point(filled=True))


def _numbers(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Estimates with their intervals, in words."""
    rows = [("cost per step", _plain(found["cost"]))]
    rows += [(f"{name.replace('_', ' ')} (%)", spaced(found[name])) for name in SHARES]
    rows.append(("bits about the secret of the moment, per step", _plain(found["spent_bits"])))
    if found["directed_bits"]:
        rows.append(("bits about all secrets so far, per step", _plain(found["directed_bits"])))
    return rows


def _plain(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.4g} [{estimate['low']:.4g}, {estimate['high']:.4g}]"


def _part(part: dict[str, Any]) -> list[str]:
    shares = [f"{100 * part[name]:.1f}" for name in ("silent", "locked", "accuracy_useful")]
    return [str(part["step"]), *shares, f"{part['bits']:.4f}"]
