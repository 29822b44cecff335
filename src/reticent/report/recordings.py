"""The report of a study on recordings: the paper's table and figures, and who learns how much of what."""

from typing import Any

import altair as alt
import polars as pl

from reticent.report.figures import Figure, accuracy, time_and_belief
from reticent.report.page import Content
from reticent.report.paper.studies import found
from reticent.report.results import Results
from reticent.report.words import A2C, LOOKAHEAD, PPO, SETTING, UNPROTECTED

GUARANTEE = ("confidence", "coarsen", LOOKAHEAD, False)
# Names and colours of the lines, by bound, enforcement, method and whether readings and belief are as printed in the
# paper; the paper's first.
POLICIES = {
    ("unbounded", "penalty", UNPROTECTED, True): ("letter: unprotected", "#cbb48f"),
    ("confidence", "paper", A2C, True): ("letter: belief-PDRP", "#888888"),
    ("information", "paper", A2C, True): ("letter: MI-PDRP", "#8fb8de"),
    ("unbounded", "penalty", UNPROTECTED, False): (UNPROTECTED, "#8c6d46"),
    ("confidence", "penalty", PPO, False): ("belief-PDRP", "#111111"),
    ("information", "mask", PPO, False): ("MI-PDRP", "#2563a8"),
    GUARANTEE: ("guarantee", "#c0392b"),
    ("confidence", "penalty", "randomised response", False): ("randomised response", "#b5651d"),
    ("confidence", "penalty", "privacy funnel", False): ("privacy funnel", "#6b8e23"),
}
CAPTIONS = {
    "learned": "Each point is a bound. Right means that S leaks, up that U is learned. The attackers were trained on "
    "the policy's own traces.",
    "confidence_time": "belief-PDRP: releases before the stop, and its own belief about U then.",
    "confidence_accuracy": "belief-PDRP, by the fixed adversary as in the paper.",
    "information_time": "MI-PDRP, with the information spent as estimated.",
    "information_accuracy": "MI-PDRP, by the fixed adversary as in the paper.",
    "letter_confidence_time": "belief-PDRP to the letter: the paper's agent, its printed cost, and its readings.",
    "letter_confidence_accuracy": "belief-PDRP to the letter, by the fixed adversary.",
    "letter_information_time": "MI-PDRP to the letter, with the information spent as estimated.",
    "letter_information_accuracy": "MI-PDRP to the letter, by the fixed adversary.",
}
INTERVALS = [f"{name}_{end}" for name in ("retrained_useful", "retrained_secret", "gap") for end in ("low", "high")]
HEADINGS = ("policy", "bound", "τ", "U retrained", "S retrained", "gap", "over", "max β(u)")
HEADINGS += ("U", "U balanced", "U per class", "S", "S balanced", "S per class")


def recordings_content(results: Results) -> Content:
    """Figures and the table, which is complete once everybody was measured."""
    rows, study = recordings_rows(results), results.study
    about = study["about"]
    fields = {
        "headings": HEADINGS,
        "table": recordings_table(rows),
        "marked": POLICIES[GUARANTEE][0],
        "rotations": rows["seed"].n_unique(),
        "settings": _settings(results),
        "verdicts": found(results.rows),
        "notes": about["notes"],
        "readings": about["readings"],
        "entropy": f"{about['entropy']:.3g}",
    }
    return Content("recordings.html", recordings_figures(rows), CAPTIONS, fields)


def recordings_rows(results: Results) -> pl.DataFrame:
    """The rows under the names of their policies, with the intervals over people, where they are computed already."""
    keys = [(*key, name) for key, (name, _) in POLICIES.items()]
    named = pl.DataFrame(keys, schema=["bound", "enforcement", "method", "as_printed", "policy"], orient="row")
    rows = results.rows.drop("policy").join(named, on=["bound", "enforcement", "method", "as_printed"])
    intervals = results.table("people")
    if intervals is None:
        return rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in INTERVALS)
    keys = ["problem", *SETTING]
    return rows.join(intervals.select(*keys, *INTERVALS), on=keys, how="left", nulls_equal=True)


def _settings(results: Results) -> dict[str, str]:
    """How it was made, in words."""
    about, rows, learned = results.study["about"], results.rows, results.table("learned")
    settings = {
        "people": str(about["people"]),
        "rotations": str(rows["seed"].n_unique()),
        "a reading is": _ways(rows, "reading"),
        "environment steps per policy": f"{rows['effort'].max():,}",
        "episodes per evaluation": f"{rows['episodes'].max():,}",
        "prices": f"C_T {about['time_cost']:g}, lambda {rows['error_penalty'].max():g}, "
        f"C_B {rows['violation_cost'].max():g}",
        "learned belief sees": _ways(rows, "belief_sees"),
    }
    if learned is not None:
        tempered, plain = (learned[name].mean() for name in ("calibration_error", "plain_calibration_error"))
        error = f"{tempered:.3f} (plain Bayes {plain:.3f})"
        settings["calibration error of the finite model, on people left out"] = error
    return settings


def _ways(rows: pl.DataFrame, column: str) -> str:
    """What this is; to the letter, if it differs there."""
    found = dict(rows.select("as_printed", column).unique().rows())
    return "; ".join(found[printed] + (" (to the letter)" if printed else "") for printed in sorted(found))


def recordings_table(rows: pl.DataFrame) -> list[list[str]]:
    """One line per policy and bound, as text: no protection, then the paper's policies, then the guarantee."""
    order = pl.Enum([name for name, _ in POLICIES.values()])
    lines = rows.with_columns(pl.col("policy").cast(order)).sort("policy", "limit", "seed")
    return [_line(own) for _, own in lines.group_by("policy", *SETTING, maintain_order=True)]


def _line(rows: pl.DataFrame) -> list[str]:
    first = rows.row(0, named=True)
    retrained = [rows[f"retrained_{label}"] for label in ("useful", "secret")]
    over = "-" if first["limit"] is None else _percent(rows["violation_rate"])
    cells = [first["policy"], _limit(first), f"{rows['releases'].mean():.2f}"]
    gap = retrained[0] - retrained[1]
    shown = zip(("retrained_useful", "retrained_secret", "gap"), (*retrained, gap), strict=True)
    cells += [*(_with_interval(values, rows, name) for name, values in shown), over]
    cells.append(_percent(rows["confidence_useful"]))
    for label in ("useful", "secret"):
        kinds = (rows[f"{kind}_{label}"] for kind in ("accuracy", "balanced"))
        cells += [*(_percent(values) for values in kinds), _classes(rows[f"per_{label}"])]
    return cells


def _limit(row: dict[str, Any]) -> str:
    unit = " bits" if row["bound"] == "information" else ""
    return "-" if row["limit"] is None else f"{row['limit']:g}{unit}"


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


def recordings_figures(rows: pl.DataFrame) -> dict[str, Figure]:
    """All figures by file name, in the order of the page."""
    figures: dict[str, Figure] = {"learned": learned(rows)}
    for prefix, agent, printed in (("letter_", A2C, True), ("", PPO, False)):
        shaped = _shaped(rows.filter(pl.col("as_printed") == printed))
        unprotected = shaped.filter(pl.col("method") == UNPROTECTED)
        for kind in ("confidence", "information"):
            own = shaped.filter(pl.col("bound") == kind, pl.col("method") == agent)
            if len(own):
                figures[f"{prefix}{kind}_time"] = time_and_belief(own, kind)
                figures[f"{prefix}{kind}_accuracy"] = accuracy(own, unprotected, kind)
    return {name: chart.properties(width=360, height=230) for name, chart in figures.items()}


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    """In the columns of the synthetic study; one rotation has no band."""
    measures = ("releases", "confidence_useful", "accuracy_useful", "accuracy_secret")
    bands = [pl.col(measure).alias(f"{measure}_{end}") for measure in measures for end in ("low", "high")]
    return rows.with_columns(*bands)


def learned(rows: pl.DataFrame) -> Figure:
    """What retrained attackers learn of S and of U, one point per policy and bound."""
    data = rows.group_by("policy", "limit").agg(pl.col("retrained_useful", "retrained_secret").mean())
    data = data.sort("policy", "limit")
    present = set(data["policy"])
    shown = {name: colour for name, colour in POLICIES.values() if name in present}
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
    text = base.transform_filter("isValid(datum.limit)").mark_text(dy=-9, fontSize=8)
    line = base.mark_line(opacity=0.35).encode(order="limit:Q")
    return alt.layer(line, base.mark_point(filled=True, size=55), text.encode(text="limit:Q")).properties(
        title="What is learned of U and of S (labels: the bound)"
    )
