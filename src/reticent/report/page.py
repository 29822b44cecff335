"""One self-contained HTML page that works offline, and the figures as PNG and SVG files beside it."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.report.figures import Figure, guarantee_overview, overview, study_figures
from reticent.report.tables import summary

CAPTIONS = {
    "guarantee_cost": "The same bounds, kept by a penalty as in the paper or for certain: the guarantee costs less.",
    "guarantee_useful": "What the provider learns of U. Merging tells more than withholding.",
    "guarantee_violations": "Under the guarantee no belief that the provider can hold reaches the bound.",
    "confidence_time": "The looser the bound, the longer the agent goes on and the surer the provider gets of U.",
    "confidence_accuracy": "Here whatever reveals U reveals S even more: the bound holds blue down, and red pays.",
    "confidence_cost": "Every baseline has its stopping threshold tuned on a seed of its own. No policy can cost less "
    "than the certified floor, up to the interval shown.",
    "confidence_violations": "A finite penalty makes gambling pay: a confidence bound is crossed in some episodes.",
    "information_time": "The information ledger masks what would cross the bound.",
    "information_accuracy": "Information limits what is learned on average, not the confidence in one secret.",
    "information_cost": "The same baselines under the same mask.",
    "information_violations": "Zero by construction: what would cross the bound cannot be chosen.",
    "leakage": "A limit on average costs least for the leakage it allows: a limit that holds on every path, or for "
    "every belief, also covers the worst episode.",
    "trade_off": "A higher price of a wrong guess buys accuracy with time, within the same bound.",
}


def write_report(folder: Path) -> Path:
    """`report.html` and `figures/` from the results saved in the folder."""
    results = pl.read_parquet(folder / "results.parquet")
    provenance = json.loads((folder / "provenance.json").read_text())
    figures = study_figures(results)
    pictures = {"guarantee": guarantee_overview(figures), "synthetic": overview(figures)}
    save_figures(folder / "figures", {**pictures, **figures})
    page = folder / "report.html"
    page.write_text(_render(results, provenance, figures), encoding="utf-8")
    return page


def _render(results: pl.DataFrame, provenance: dict[str, Any], figures: dict[str, Figure]) -> str:
    agents = results.filter(pl.col("policy") == "agent")
    return render_page(
        "study.html",
        provenance,
        figures,
        CAPTIONS,
        settings={
            "training seeds": f"0 to {agents['seed'].max()}",
            "environment steps per training run": f"{agents['effort'].max():,}",
            "episodes per evaluation": f"{results['episodes'].max():,}",
        },
        table=summary(results).rows(),
    )


def render_page(
    template: str, provenance: dict[str, Any], figures: dict[str, Figure], captions: dict[str, str], **fields: Any
) -> str:
    """One page from a template, with its figures and the library that draws them inside."""
    environment = Environment(loader=PackageLoader("reticent.report"), autoescape=True, undefined=StrictUndefined)
    return environment.get_template(template).render(
        title=provenance["title"],
        provenance={key: value for key, value in provenance.items() if key != "title"},
        figures=[{"name": name, "caption": captions[name]} for name in figures],
        # "<" is escaped so that no text inside a chart can end the script element.
        charts=Markup(json.dumps({k: c.to_dict() for k, c in figures.items()}).replace("<", "\\u003c")),
        library=Markup(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")),
        **fields,
    )


def save_figures(folder: Path, figures: dict[str, Any]) -> None:
    """Each as PNG and SVG."""
    folder.mkdir(exist_ok=True)
    for name, chart in figures.items():
        chart.save(folder / f"{name}.png", ppi=160)
        chart.save(folder / f"{name}.svg")
