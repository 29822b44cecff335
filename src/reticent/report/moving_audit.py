"""The page of an audit of a hidden pair that moves: the verdict, then the evidence."""

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from reticent.report.audit_figures import attackers
from reticent.report.audit_tables import HEADINGS, attack_rows, attack_title, spaced
from reticent.report.figures import Figure
from reticent.report.page import render_page, save_figures

CAPTIONS = {
    "attackers": "Asked for every moment, with everything sent before and after it, of people not learned from. Bars: "
    "95 % intervals. Dashed: chance level.",
    "over_time_secret": "Balanced accuracy on the secret, by how late in its episode a moment is. Bars as before.",
    "over_time_useful": "Balanced accuracy on the useful value, by how late in its episode a moment is.",
}


def write_moving_audit_report(folder: Path, found: dict[str, Any]) -> Path:
    """`report.html` and `figures/` of what was found."""
    figures: dict[str, Any] = {"attackers": attackers(found)}
    if found["over_time"]:
        figures |= {f"over_time_{label}": over_time(found, label) for label in ("secret", "useful")}
    widths = {"attackers": 210}
    figures = {name: chart.properties(width=widths.get(name, 360), height=230) for name, chart in figures.items()}
    save_figures(folder / "figures", figures)
    text = render_page(
        "moving_audit.html",
        {"title": found["title"], **found["provenance"]},
        figures,
        CAPTIONS,
        found=found,
        headings=HEADINGS,
        table=attack_rows(found),
        over=[(attack_title(each), spaced(each["over"])) for each in found["attacks"] if each["over"]],
        settings={
            "what was audited": found["subject"],
            "its SHA-256": found["digest"],
            "seed": found["seed"],
            "judged on": f"{found['moments']:,} moments of {found['people']} people, each judged by attackers who had "
            "not met them",
            "splits": found["splits"],
        },
    )
    page = folder / "report.html"
    page.write_text(text, encoding="utf-8")
    return page


def over_time(found: dict[str, Any], label: str) -> Figure:
    """Balanced accuracy on a label by the last step of each part of an episode."""
    rows = [{"attacker": each["attacker"], "step": each["step"], **each[label]} for each in found["over_time"]]
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("step:Q", title="step of the episode, at most"),
        color=alt.Color("attacker:N", title=None, legend=alt.Legend(orient="bottom", columns=2)),
    )
    accuracy = alt.Y("value:Q", title="balanced accuracy", axis=alt.Axis(format="~%"), scale=alt.Scale(zero=False))
    guess = (
        alt.Chart(pl.DataFrame({"value": [found[f"guess_{label}"]]})).mark_rule(strokeDash=[4, 3]).encode(y="value:Q")
    )
    bars = base.mark_rule(opacity=0.5).encode(y="low:Q", y2="high:Q")
    return alt.layer(guess, bars, base.mark_line(point=True).encode(y=accuracy)).properties(
        title="The secret over time" if label == "secret" else "The useful value over time"
    )
