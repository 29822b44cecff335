"""Figures of the synthetic study, as Altair charts over its saved results."""

from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import polars as pl

from reticent.report.words import A2C, AXES, LOOKAHEAD, METHODS, PPO, UNPROTECTED

Figure = alt.LayerChart | alt.FacetChart
USEFUL, SECRET, TIME = "#c0392b", "#2563a8", "#3f7f5f"
ACCURACIES = {"accuracy_useful": "useful U", "accuracy_secret": "secret S"}
# How the bound is kept, by which method: one line each, in this order.
KEPT_BY = {
    ("penalty", PPO): ("penalty, PPO", "#111111"),
    ("withhold", LOOKAHEAD): ("withhold, lookahead", "#8fb8de"),
    ("withhold", "value-iteration"): ("withhold, value iteration", "#2563a8"),
    ("coarsen", LOOKAHEAD): ("coarsen, lookahead", "#e8a598"),
    ("coarsen", "value-iteration"): ("coarsen, value iteration", "#c0392b"),
    ("coarsen", "value-kernels"): ("coarsen, value kernels", "#7b1e12"),
    ("answer", "value-iteration"): ("answer instead of readings", "#2e8b57"),
}
# What is limited, by which method: one line each.
LIMITED = {
    ("mask", "value-iteration"): ("information on every path", "#2563a8"),
    ("lagrangian", "value-iteration"): ("information on average", "#7a5195"),
    ("penalty", "value-iteration"): ("confidence, by penalty", "#111111"),
    ("coarsen", "value-iteration"): ("confidence, by coarsening", "#c0392b"),
    ("answer", "value-iteration"): ("confidence, by an answer", "#2e8b57"),
}


def study_figures(results: pl.DataFrame, error_penalty: float = 50.0) -> dict[str, Figure]:
    """All figures by file name, in the order of the page."""
    here, figures = results.filter(pl.col("error_penalty") == error_penalty), {}
    # What a study has not run is left out.
    if {"withhold", "coarsen"} & set(here["enforcement"]):
        figures |= guarantee(here)
    for kind, enforcement in (("confidence", "paper"), ("information", "paper")):
        figures |= {f"letter_{name}": figure for name, figure in panels(here, kind, enforcement, A2C)}
    for kind, enforcement in (("confidence", "penalty"), ("information", "mask")):
        figures |= panels(here, kind, enforcement, PPO)
    if {"lagrangian", "mask"} <= set(here.filter(pl.col("method") == "value-iteration")["enforcement"]):
        figures["leakage"] = leakage(here)
    if results["error_penalty"].n_unique() > 1:
        figures["trade_off"] = trade_off(results)
    return {name: chart.properties(width=360, height=230) for name, chart in figures.items()}


def panels(results: pl.DataFrame, kind: str, enforcement: str, agent: str) -> Iterator[tuple[str, Figure]]:
    """Of one bound: the paper's two panels of an agent, its cost beside that of the baselines, and its violations."""
    rows = results.filter(pl.col("bound") == kind, pl.col("enforcement") == enforcement)
    own = rows.filter(pl.col("method") == agent)
    if len(own):
        yield f"{kind}_time", time_and_belief(own, kind)
        yield f"{kind}_accuracy", accuracy(own, results.filter(pl.col("method") == UNPROTECTED), kind)
        yield f"{kind}_cost", cost(rows, kind)
        yield f"{kind}_violations", violations(rows, kind, agent)


def overview(figures: dict[str, Figure], prefix: str = "") -> alt.VConcatChart:
    """The paper's four panels in one picture."""
    kinds, sides = ("confidence", "information"), ("time", "accuracy")
    pairs = [[figures[f"{prefix}{kind}_{what}"] for what in sides] for kind in kinds]
    # Independent colours keep each legend inside its own panel.
    rows = [alt.hconcat(*pair, spacing=40).resolve_scale(color="independent") for pair in pairs]
    return alt.vconcat(*rows, spacing=30).resolve_scale(color="independent")


def guarantee_overview(figures: dict[str, Figure]) -> alt.HConcatChart:
    """The guarantee beside the penalty in one picture."""
    return alt.hconcat(*(figures[f"guarantee_{what}"] for what in ("cost", "useful", "violations")), spacing=30)


def guarantee(rows: pl.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Cost, what is learned of U, and violations, by how the bound is kept."""
    rows = _named(rows.filter(pl.col("bound") == "confidence"), KEPT_BY)
    colours = _present(rows, KEPT_BY)
    for name, measure, title, axis, scale in (
        ("cost", "cost", "Cost (lower is better)", alt.Axis(), alt.Scale(zero=False)),
        ("useful", "accuracy_useful", "Accuracy on U (higher is better)", alt.Axis(), alt.Scale(zero=False)),
        ("violations", "violation_rate", "Episodes that crossed the bound", alt.Axis(format="~%"), alt.Scale()),
    ):
        base = _over_bound(over_seeds(rows, measure), "confidence").encode(color=_policy_colour(colours, columns=3))
        chart = _line_and_band(base, title, axis=axis, scale=scale)
        yield f"guarantee_{name}", chart.properties(title=title)


def over_seeds(rows: pl.DataFrame, *measures: str) -> pl.DataFrame:
    """Long table of measures: mean over draws and seeds, and a band: their spread or, of a single one, the interval.

    Every draw of the problem counts alike, however many seeds it has.
    """
    keys = ["policy", "limit", "error_penalty"]
    rows, frames = rows if "draw" in rows.columns else rows.with_columns(draw=pl.lit(0)), []
    for measure in measures:
        value = pl.col(measure)
        by_draw = rows.group_by(*keys, "draw").agg(
            value.mean().alias("mean"),
            value.min().alias("low"),
            value.max().alias("high"),
            pl.col(f"{measure}_low").first().alias("lower end"),
            pl.col(f"{measure}_high").first().alias("upper end"),
            pl.len().alias("seeds"),
        )
        one = pl.col("seeds").sum() == 1
        frames.append(
            by_draw.group_by(keys).agg(
                pl.lit(measure).alias("measure"),
                pl.col("mean").mean(),
                pl.when(one).then(pl.col("lower end").first()).otherwise(pl.col("low").min()).alias("low"),
                pl.when(one).then(pl.col("upper end").first()).otherwise(pl.col("high").max()).alias("high"),
                pl.col("seeds").sum(),
            )
        )
    return pl.concat(frames).sort("policy", "measure", "limit", "error_penalty")


def time_and_belief(rows: pl.DataFrame, kind: str) -> Figure:
    """Panels (a) and (c) of one agent: stopping time (left axis) and the provider's confidence in U (right axis)."""
    sides = []
    for measure, title, colour, scale in (
        ("releases", "stopping time τ (releases)", TIME, alt.Scale(domainMin=0, nice=True)),
        ("confidence_useful", "confidence in U, max β(u)", USEFUL, alt.Scale(domain=(0.3, 1))),
    ):
        axis = alt.Axis(titleColor=colour, labelColor=colour, grid=False)
        base = _over_bound(over_seeds(rows, measure), kind)
        sides.append(_line_and_band(base, title, axis=axis, scale=scale, colour=colour))
    title = f"({'a' if kind == 'confidence' else 'c'}) Stopping time and confidence in U"
    return alt.layer(*sides).resolve_scale(y="independent").properties(title=title)


def accuracy(rows: pl.DataFrame, unprotected: pl.DataFrame, kind: str) -> Figure:
    """Panels (b) and (d) of one agent: accuracy on U and on S, with the unprotected random policy as flat lines."""
    data, flat = (
        over_seeds(frame, *ACCURACIES).with_columns(pl.col("measure").replace(ACCURACIES))
        for frame in (rows, unprotected)
    )
    colour = _accuracy_colour()
    scale = alt.Scale(domain=(0.3, 1))
    curves = _line_and_band(_over_bound(data, kind).encode(color=colour), "accuracy", scale=scale)
    rule = (
        alt.Chart(flat)
        .mark_rule(strokeDash=[5, 4], size=1.6)
        .encode(y=alt.Y("mean:Q", title="accuracy", scale=scale), color=colour, tooltip=["policy", "measure", "mean"])
    )
    letter = "b" if kind == "confidence" else "d"
    title = alt.Title(f"({letter}) Provider's accuracy", subtitle="dashed: no protection, ten random readings")
    return alt.layer(curves, rule).properties(title=title)


def cost(rows: pl.DataFrame, kind: str) -> Figure:
    """Mean cost of the agent and of the tuned baselines, over the lower bound that no policy can go below."""
    base = _over_bound(over_seeds(rows, "cost"), kind).encode(color=_policy_colour(_present(rows, METHODS)))
    chart = _line_and_band(base, "mean cost", scale=alt.Scale(zero=False))
    return chart.properties(title="Cost: agent against tuned baselines (lower is better)")


def violations(rows: pl.DataFrame, kind: str, agent: str) -> Figure:
    """Share of episodes that ever crossed the bound."""
    rows = rows.filter(pl.col("method").is_in([agent, LOOKAHEAD]))
    shown = _present(rows, METHODS)
    data = over_seeds(rows, "violation_rate")
    base = _over_bound(data, kind).encode(color=_policy_colour(shown))
    top = max(0.01, float(data["high"].to_numpy().max(initial=0.0)))
    axis, scale = alt.Axis(format="~%"), alt.Scale(domain=(0, top))
    chart = _line_and_band(base, "episodes over the bound", axis=axis, scale=scale)
    return chart.properties(title="Violations, with 95 % intervals or the spread of draws and seeds")


def leakage(rows: pl.DataFrame) -> Figure:
    """Cost against what is said about the secret on average, by what is limited."""
    # What a multiplier charges is a means to an end: the plain cost is what is paid.
    plain = pl.when(pl.col("promise") == "in_expectation").then("cost_without_penalty").otherwise("cost")
    data = _named(rows, LIMITED).with_columns(plain.alias("plain"))
    data = data.group_by("policy", "limit").agg(pl.col("spent_bits", "plain").mean()).sort("policy", "limit")
    base = alt.Chart(data).encode(
        x=alt.X("spent_bits:Q", title="information about S by the stop, on average (bits)"),
        y=alt.Y("plain:Q", title="mean cost").scale(zero=False),
        color=_policy_colour(_present(data, LIMITED), columns=2),
        tooltip=["policy", "limit", "spent_bits", "plain"],
    )
    line, text = base.mark_line(point=True).encode(order="limit:Q"), base.mark_text(dy=-9, fontSize=8)
    chart = alt.layer(line, text.encode(text=alt.Text("limit:Q")))
    return chart.properties(title="What is limited: cost at equal leakage (labels: the limit)")


def trade_off(results: pl.DataFrame) -> Figure:
    """Speed against accuracy as lambda varies, at one information bound."""
    agent = (pl.col("method") == PPO) & (pl.col("bound") == "information") & (pl.col("limit") == 1.0)
    points = results.filter(agent).group_by("error_penalty").agg(pl.col("releases", *ACCURACIES).mean())
    data = points.unpivot(list(ACCURACIES), index=["error_penalty", "releases"], variable_name="measure")
    label = pl.format("λ {}", pl.col("error_penalty").cast(pl.Int64)).alias("label")
    data = data.with_columns(pl.col("measure").replace(ACCURACIES), label)
    base = alt.Chart(data.sort("measure", "error_penalty")).encode(
        x=alt.X("releases:Q", title="stopping time τ (releases)"),
        y=alt.Y("value:Q", title="accuracy").scale(zero=False),
        color=_accuracy_colour(),
        tooltip=["error_penalty", "measure", "releases", "value"],
    )
    line = base.mark_line(point=True).encode(order="error_penalty:Q")
    text = (
        base.transform_filter("datum.measure == 'useful U'").mark_text(dy=14, dx=8, fontSize=9).encode(text="label:N")
    )
    return alt.layer(line, text).properties(title="Speed against accuracy as λ varies, at L_MI = 1 bit")


def _named(rows: pl.DataFrame, names: dict[tuple[str, str], tuple[str, str]]) -> pl.DataFrame:
    """The rows of these enforcements and methods, under the names that lines have in the legend."""
    keys = [(*key, name) for key, (name, _) in names.items()]
    named = pl.DataFrame(keys, schema=["enforcement", "method", "policy"], orient="row")
    return rows.drop("policy").join(named, on=["enforcement", "method"])


def _present(rows: pl.DataFrame, looks: Mapping[Any, tuple[str, str]]) -> dict[str, str]:
    """Names and colours of the lines that there are."""
    present = set(rows["policy"])
    return {name: colour for name, colour in looks.values() if name in present}


def _over_bound(data: pl.DataFrame, kind: str) -> alt.Chart:
    return alt.Chart(data).encode(x=alt.X("limit:Q", title=AXES[kind]).scale(zero=False))


def _line_and_band(
    base: alt.Chart, title: str, scale: alt.Scale, axis: alt.Axis | None = None, colour: str | None = None
) -> Figure:
    axis = axis or alt.Axis()
    low, mean = (alt.Y(f"{column}:Q", title=title, axis=axis, scale=scale) for column in ("low", "mean"))
    band, line = base.mark_area(opacity=0.18), base.mark_line(point=True)
    if colour:
        band, line = base.mark_area(opacity=0.18, color=colour), base.mark_line(point={"color": colour}, color=colour)
    tooltip = ["policy", "measure", "limit", "mean", "low", "high", "seeds"]
    return alt.layer(band.encode(y=low, y2="high:Q"), line.encode(y=mean, tooltip=tooltip))


def _accuracy_colour() -> alt.Color:
    scale = alt.Scale(domain=list(ACCURACIES.values()), range=[USEFUL, SECRET])
    return alt.Color("measure:N", title="accuracy on", scale=scale, legend=_legend("bottom-right", columns=1))


def _policy_colour(colours: dict[str, str], columns: int = 4) -> alt.Color:
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color("policy:N", title=None, scale=scale, legend=_legend("bottom", columns=columns))


def _legend(orient, columns: int) -> alt.Legend:
    return alt.Legend(orient=orient, columns=columns, symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=2)
