"""Figures of an audit, drawn from audit.json."""

from typing import Any

import altair as alt
import polars as pl

from reticent.report.audit_tables import attack_title
from reticent.report.figures import SECRET, USEFUL, Figure

ATTACKERS = ("#111111", "#2563a8", "#c0392b", "#d98e04", "#7a5195", "#2a9d8f", "#8d6e63")
# Axis titles of the model errors, by their code in audit.json.
CHANGES = {
    "spread": "spread of the readings, relative to the model",
    "distance": "distance between the readings of hidden pairs, relative to the model",
    "others": "share of readings from another hidden pair",
}


def audit_figures(found: dict[str, Any]) -> dict[str, Figure]:
    """All figures that there is something to draw for, in the order of the page."""
    figures: dict[str, Any] = {
        "attackers": attackers(found),
        "over_time": over_time(found, "secret"),
        "over_time_useful": over_time(found, "useful"),
        "observers": observers(found),
        "calibration": calibration(found),
    }
    if found["learning"]:
        figures["learning"] = learning(found)
    if parts := [*found["by_sensor"], *found["by_step"]]:
        figures["parts"] = _seen(parts, found, "One sensor, one release")
    if found["baselines"]:
        figures["same_utility"] = same_utility(found)
    if found["forgotten"]:
        figures["sessions"] = sessions(found)
    for change in dict.fromkeys(each["change"] for each in found["wrong_models"]):
        figures[f"wrong_{change}"] = wrong_model(found, change)
    # Long names beside the dots take room of their own.
    widths = {"attackers": 210, "observers": 260, "parts": 260}
    return {name: chart.properties(width=widths.get(name, 360), height=230) for name, chart in figures.items()}


def attackers(found: dict[str, Any]) -> Figure:
    """Balanced accuracy on both labels, one line per attacker."""
    rows = [
        {"attacker": attack_title(each), "label": label, **each[name]["balanced"]}
        for each in found["attacks"]
        for label, name in (("secret S", "secret"), ("useful U", "useful"))
    ]
    return _dots(rows, "attacker", found, "Balanced accuracy by attacker")


def observers(found: dict[str, Any]) -> Figure:
    """The same for observers who see less."""
    return _seen(found["observers"], found, "Restricted observers")


def _seen(attacks: list[dict[str, Any]], found: dict[str, Any], heading: str) -> Figure:
    rows = [
        {"attacker": each["observer"], "label": label, **each[name]["balanced"]}
        for each in attacks
        for label, name in (("secret S", "secret"), ("useful U", "useful"))
    ]
    return _dots(rows, "observer", found, heading)


def _dots(rows: list[dict[str, Any]], title: str, found: dict[str, Any], heading: str) -> Figure:
    data = pl.DataFrame(rows)
    order = list(dict.fromkeys(row["attacker"] for row in rows))
    colour = alt.Color(
        "label:N",
        title=None,
        scale=alt.Scale(domain=["secret S", "useful U"], range=[SECRET, USEFUL]),
        legend=alt.Legend(orient="bottom", symbolOpacity=1),
    )
    base = alt.Chart(data).encode(
        y=alt.Y("attacker:N", title=None, sort=order, axis=alt.Axis(labelLimit=260)),
        color=colour,
        tooltip=["attacker", "label", "value", "low", "high"],
    )
    # Room beside the line of guessing, and ticks that do not touch.
    scale, ticks = alt.Scale(zero=False, padding=8), alt.Axis(format="~%", tickCount=5)
    axis = alt.X("value:Q", title="balanced accuracy", axis=ticks, scale=scale)
    dots = base.mark_point(filled=True, size=50).encode(x=axis)
    bars = base.mark_rule().encode(x="low:Q", x2="high:Q")
    guess = pl.DataFrame({"label": ["secret S", "useful U"], "value": [found["guess_secret"], found["guess_useful"]]})
    lines = alt.Chart(guess).mark_rule(strokeDash=[4, 3], opacity=0.6).encode(x="value:Q", color=colour)
    return alt.layer(lines, bars, dots).properties(title=heading)


def over_time(found: dict[str, Any], label: str) -> Figure:
    """Balanced accuracy on a label after so many steps."""
    rows = [
        {"attacker": each["attacker"], "step": each["step"], **each[label]}
        for each in found["over_time"]
        if each["step"] is not None and each["fitted_on"] != "random"
    ]
    heading = f"The {'secret' if label == 'secret' else 'useful value'} over time"
    return _curves(rows, "step", "steps since the start", heading, label[0].upper())


def learning(found: dict[str, Any]) -> Figure:
    """Balanced accuracy on the secret of attackers who learned from less."""
    rows = [{**each, **each["secret"]} for each in found["learning"]]
    for row in rows:
        del row["secret"]
    return _curves(rows, "episodes", "episodes learned from", "Learning curves", "S")


def _curves(rows: list[dict[str, Any]], x: str, title: str, heading: str, label: str) -> Figure:
    data = pl.DataFrame(rows)
    names = list(dict.fromkeys(data["attacker"]))
    base = alt.Chart(data).encode(
        x=alt.X(
            f"{x}:Q",
            title=title,
            scale=alt.Scale(type="log"),
            axis=alt.Axis(values=data[x].unique().sort().to_list(), format=",d"),
        ),
        color=alt.Color(
            "attacker:N",
            title=None,
            scale=alt.Scale(domain=names, range=list(ATTACKERS[: len(names)])),
            legend=alt.Legend(orient="bottom", columns=2, symbolOpacity=1),
        ),
        tooltip=list(data.columns),
    )
    axis = alt.Axis(format="~%")
    line = base.mark_line(point=True).encode(
        y=alt.Y("value:Q", title=f"balanced accuracy on {label}", axis=axis).scale(zero=False)
    )
    band = base.mark_area(opacity=0.12).encode(y="low:Q", y2="high:Q")
    return alt.layer(band, line).properties(title=heading)


def calibration(found: dict[str, Any]) -> Figure:
    """How often the belief in the most likely secret was right, by how high it was."""
    data = pl.DataFrame([{**each, **each["right"], "right": each["right"]["value"]} for each in found["calibration"]])
    least = min(1 / len(found["secrets"]), data["low"].min(), data["believed"].min())  # type: ignore[type-var]
    straight = alt.Chart(pl.DataFrame({"believed": [least, 1.0], "right": [least, 1.0]}))
    limits = alt.Scale(domain=(least, 1.0))
    x = alt.X("believed:Q", title=f"belief in the most likely secret ({found['calibrated']})", scale=limits)
    y = alt.Y("right:Q", title="how often it is right", scale=limits)
    line = straight.mark_line(strokeDash=[4, 3], color="#888888").encode(x=x, y=y)
    size = alt.Size("episodes:Q", title="episodes", legend=alt.Legend(orient="bottom"))
    base = alt.Chart(data).encode(x=x, tooltip=["believed", "right", "low", "high", "episodes"])
    dots = base.mark_point(filled=True, color=SECRET).encode(y=y, size=size)
    bars = base.mark_rule(color=SECRET).encode(y="low:Q", y2="high:Q")
    return alt.layer(line, bars, dots).properties(title=f"Calibration (error {found['calibration_error']:.3f})")


def same_utility(found: dict[str, Any]) -> Figure:
    """Baselines' curves, and the policy."""
    data = pl.DataFrame(
        [{**each, **{label: each[label]["value"] for label in ("useful", "secret")}} for each in found["baselines"]]
    )
    names = list(dict.fromkeys(data["policy"]))
    base = alt.Chart(data).encode(
        x=alt.X("secret:Q", title="balanced accuracy on the secret S", axis=alt.Axis(format="~%")).scale(zero=False),
        y=alt.Y("useful:Q", title="balanced accuracy on the useful U", axis=alt.Axis(format="~%")).scale(zero=False),
        color=alt.Color(
            "policy:N",
            title=None,
            scale=alt.Scale(domain=names, range=list(ATTACKERS[1 : 1 + len(names)])),
            legend=alt.Legend(orient="bottom", columns=2, symbolOpacity=1),
        ),
        detail="variant:N",
        tooltip=["policy", "variant", "threshold", "useful", "secret", "releases"],
    )
    secret, useful = found["audited"]["secret"], found["audited"]["useful"]
    own = alt.Chart(
        pl.DataFrame(
            {
                "secret": secret["value"],
                "useful": useful["value"],
                **{f"secret {end}": secret[end] for end in ("low", "high")},
                **{f"useful {end}": useful[end] for end in ("low", "high")},
            }
        )
    ).encode(x="secret:Q", y="useful:Q")
    star = own.mark_point(shape="diamond", filled=True, size=110, color="#111111")
    across = own.mark_rule(color="#111111").encode(x="secret low:Q", x2="secret high:Q")
    upright = own.mark_rule(color="#111111").encode(y="useful low:Q", y2="useful high:Q")
    curve = base.mark_line(point=True).encode(order="threshold:Q")
    return alt.layer(curve, across, upright, star).properties(title="Baselines without bound (diamond: audited)")


def sessions(found: dict[str, Any]) -> Figure:
    """Over sessions: people of whom the adversary became too sure; without a bound, how sure it is on average."""
    measure = "violation_rate" if found["limit"] else "confidence"
    rows = [
        {"way": way, "sessions": each["sessions"], **each[measure]}
        for way in ("forgotten", "carried")
        for each in found[way]
    ]
    heading = f"people of whom {found['limit']:g} was reached" if found["limit"] else "mean confidence in the secret"
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("sessions:Q", title="sessions with the same secret"),
        color=alt.Color(
            "way:N",
            title=None,
            scale=alt.Scale(domain=["forgotten", "carried"], range=["#c0392b", "#2563a8"]),
            legend=alt.Legend(orient="bottom", symbolOpacity=1),
        ),
        tooltip=["way", "sessions", "value", "low", "high"],
    )
    y = alt.Y("value:Q", title=heading, axis=alt.Axis(format="~%"), scale=alt.Scale(domain=(0, 1)))
    band = base.mark_area(opacity=0.12).encode(y="low:Q", y2="high:Q")
    return alt.layer(band, base.mark_line(point=True).encode(y=y)).properties(title="Repeated sessions")


def wrong_model(found: dict[str, Any], change: str) -> Figure:
    """Accuracy on the secret, and violations, of an adversary who knows the true channel, by the size of a change."""
    rows = [
        {"size": each["size"], "measure": name, **each["found"][measure]}
        for each in found["wrong_models"]
        for name, measure in (("accuracy on S", "accuracy_secret"), ("episodes over the bound", "violation_rate"))
        if each["change"] == change and each["found"][measure]
    ]
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("size:Q", title=CHANGES[change]).scale(zero=False),
        color=alt.Color(
            "measure:N",
            title=None,
            scale=alt.Scale(domain=["accuracy on S", "episodes over the bound"], range=[SECRET, "#111111"]),
            legend=alt.Legend(orient="bottom", symbolOpacity=1),
        ),
        tooltip=["size", "measure", "value", "low", "high"],
    )
    line = base.mark_line(point=True).encode(y=alt.Y("value:Q", title=None, axis=alt.Axis(format="~%")))
    band = base.mark_area(opacity=0.12).encode(y="low:Q", y2="high:Q")
    return alt.layer(band, line).properties(title="Model error")
