"""The report of a study on recordings: the paper's table and figures, and who learns how much of what."""

import json
from pathlib import Path

import altair as alt
import polars as pl

from reticent.report.figures import AGENT, Figure, accuracy, time_and_belief
from reticent.report.page import render_page, save_figures

BELIEF, INFORMATION, NO_PROTECTION, GUARANTEE = "belief-PDRP", "MI-PDRP", "no protection", "guarantee"
COLOURS = {BELIEF: "#111111", INFORMATION: "#2563a8", GUARANTEE: "#c0392b", NO_PROTECTION: "#8c6d46"}
CAPTIONS = {
    "learned": "Each point is a bound. Right means that S leaks, up that U is learned. The attackers were trained on "
    "the policy's own traces.",
    "confidence_time": "belief-PDRP: releases before the stop, and its own belief about U then.",
    "confidence_accuracy": "belief-PDRP, by the fixed adversary as in the paper.",
    "information_time": "MI-PDRP, with an estimated ledger.",
    "information_accuracy": "MI-PDRP, by the fixed adversary as in the paper.",
}
HEADINGS = ("policy", "bound", "τ", "U retrained", "S retrained", "gap", "over", "max β(u)")
HEADINGS += ("U", "U balanced", "U per class", "S", "S balanced", "S per class")


def write_recordings_report(folder: Path) -> Path:
    """`report.html` and `figures/` from the results saved in the folder."""
    results = pl.read_parquet(folder / "results.parquet")
    provenance = json.loads((folder / "provenance.json").read_text())
    about = provenance.pop("about")
    figures = recordings_figures(results)
    save_figures(folder / "figures", figures)
    page = folder / "report.html"
    rotations = results["rotation"].n_unique()
    text = render_page(
        "recordings.html",
        provenance,
        figures,
        CAPTIONS,
        headings=HEADINGS,
        table=recordings_table(results),
        rotations=rotations,
        settings=about["settings"],
        notes=about["notes"],
        readings=about["readings"],
        entropy=f"{about['entropy']:.3g}",
    )
    page.write_text(text, encoding="utf-8")
    return page


def recordings_table(results: pl.DataFrame) -> list[list[str]]:
    """One line per policy and bound, as text: no protection, then the paper's policies, then the guarantee."""
    order = [NO_PROTECTION, BELIEF, INFORMATION, GUARANTEE]
    rows = []
    for policy in order:
        own = results.filter(pl.col("policy") == policy)
        for limit in own["limit"].unique().sort():
            rows.append(_line(policy, limit, own.filter(pl.col("limit") == limit)))
    return rows


def _line(policy: str, limit: float, rows: pl.DataFrame) -> list[str]:
    unit = " bits" if policy == INFORMATION else ""
    retrained = [rows[f"retrained_{label}"] for label in ("useful", "secret")]
    over = "-" if policy == NO_PROTECTION else _percent(rows["violation_rate"])
    cells = [policy, "-" if policy == NO_PROTECTION else f"{limit:g}{unit}", f"{rows['releases'].mean():.2f}"]
    gap = retrained[0] - retrained[1]
    shown = zip(("retrained_useful", "retrained_secret", "gap"), (*retrained, gap), strict=True)
    cells += [*(_with_interval(values, rows, name) for name, values in shown), over]
    cells.append(_percent(rows["confidence_useful"]))
    for label in ("useful", "secret"):
        kinds = (rows[f"{kind}_{label}"] for kind in ("accuracy", "balanced"))
        cells += [*(_percent(values) for values in kinds), _classes(rows[f"per_{label}"])]
    return cells


def _with_interval(values: pl.Series, rows: pl.DataFrame, name: str) -> str:
    """The mean over rotations, and the interval over people where there are enough."""
    low, high = rows[f"{name}_low"][0], rows[f"{name}_high"][0]
    if low is None:
        return _percent(values)
    return f"{100 * values.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"  # type: ignore[operator]


def _percent(values: pl.Series) -> str:
    """The mean, and the spread over rotations where there are several."""
    mean, spread = f"{100 * values.mean():.1f}", values.std()  # type: ignore[operator]
    return f"{mean} ± {100 * spread:.1f}" if len(values) > 1 else mean  # type: ignore[operator]


def _classes(values: pl.Series) -> str:
    means = [sum(each) / len(each) for each in zip(*values.to_list(), strict=True)]
    return " / ".join(f"{100 * mean:.0f}" for mean in means)


def recordings_figures(results: pl.DataFrame) -> dict[str, Figure]:
    """All figures by file name, in the order of the page."""
    figures: dict[str, Figure] = {"learned": learned(results)}
    unprotected = _shaped(results.filter(pl.col("policy") == NO_PROTECTION))
    for kind, policy in (("confidence", BELIEF), ("information", INFORMATION)):
        own = results.filter(pl.col("policy") == policy)
        if own.is_empty():
            continue
        rows = _shaped(own).with_columns(pl.lit(AGENT).alias("policy"))
        figures[f"{kind}_time"] = time_and_belief(rows, kind)
        figures[f"{kind}_accuracy"] = accuracy(rows, unprotected, kind)
    return {name: chart.properties(width=360, height=230) for name, chart in figures.items()}


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    """In the columns of the synthetic study; one rotation has no band."""
    measures = ("releases", "confidence_useful", "accuracy_useful", "accuracy_secret")
    bands = [pl.col(measure).alias(f"{measure}_{end}") for measure in measures for end in ("low", "high")]
    return rows.with_columns(*bands, pl.lit(50.0).alias("error_penalty"))


def learned(results: pl.DataFrame) -> Figure:
    """What retrained attackers learn of S and of U, one point per policy and bound."""
    data = results.group_by("policy", "limit").agg(pl.col("retrained_useful", "retrained_secret").mean())
    data = data.sort("policy", "limit")
    shown = {policy: colour for policy, colour in COLOURS.items() if policy in set(data["policy"])}
    base = alt.Chart(data).encode(
        x=alt.X("retrained_secret:Q", title="balanced accuracy on the secret S").scale(zero=False),
        y=alt.Y("retrained_useful:Q", title="balanced accuracy on the useful U").scale(zero=False),
        color=alt.Color(
            "policy:N",
            title=None,
            scale=alt.Scale(domain=list(shown), range=list(shown.values())),
            legend=alt.Legend(orient="bottom", symbolOpacity=1),
        ),
        tooltip=["policy", "limit", "retrained_useful", "retrained_secret"],
    )
    text = base.transform_filter(f"datum.policy != '{NO_PROTECTION}'").mark_text(dy=-9, fontSize=8)
    line = base.mark_line(opacity=0.35).encode(order="limit:Q")
    return alt.layer(line, base.mark_point(filled=True, size=55), text.encode(text="limit:Q")).properties(
        title="What is learned of U and of S (labels: the bound)"
    )
