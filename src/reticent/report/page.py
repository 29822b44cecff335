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
    "guarantee_cost": "Mean cost under the same bounds, by how they are kept.",
    "guarantee_useful": "What the provider learns of U, by how the bound is kept.",
    "guarantee_violations": "Zero by construction under withhold and coarsen: no belief that the provider can hold "
    "reaches the bound.",
    "confidence_time": "How long the agent goes on, and how sure the provider is of U when it stops.",
    "confidence_accuracy": "The provider's accuracy on U (red) and on S (blue) under a bound on its confidence in S.",
    "confidence_cost": "Every baseline has its stopping threshold tuned on a seed of its own. No policy can cost less "
    "than the certified floor, up to the interval shown.",
    "confidence_violations": "Under a penalty a policy may cross the bound and pay for it.",
    "information_time": "A sensor whose next reading would carry the sum of information over the bound is masked.",
    "information_accuracy": "The bound is on the sum of information along the path, not on the confidence in a secret.",
    "information_cost": "The same baselines under the same mask.",
    "information_violations": "Zero by construction: what would cross the bound cannot be chosen.",
    "leakage": "Cost against the information about S that episodes give on average. A limit on every path, or for "
    "every belief, also covers the worst episode; a limit on average does not. Coarsening never crosses its bound; "
    "the rule of an answer is confirmed by simulation, with a chance of error of 0.1 %.",
    "trade_off": "Stopping time and accuracy as the price λ of a wrong guess varies, within the same bound.",
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
