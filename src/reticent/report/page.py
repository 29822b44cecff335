"""One self-contained HTML page that works offline, and the figures as PNG and SVG files beside it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reticent.report.figures import Figure


@dataclass(frozen=True)
class Content:
    """What a page shows; `pictures` are saved beside it only, `fields` are those of its template."""

    template: str
    figures: dict[str, Figure]
    captions: dict[str, str]
    fields: dict[str, Any]
    pictures: dict[str, Any] = field(default_factory=dict)


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
