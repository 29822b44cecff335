"""Draws the page of a folder: of a study, an audit, or simulated days."""

from pathlib import Path

from reticent.report.audit import write_audit_report
from reticent.report.days import write_days_report
from reticent.report.page import render_page, save_figures
from reticent.report.recordings import recordings_content
from reticent.report.results import read_results
from reticent.report.sweep import sweep_content
from reticent.report.synthetic import synthetic_content

# What is saved of an audit, and of simulated days.
AUDIT, DAYS = "audit.json", "days.json"
CONTENTS = {"sweep": sweep_content, "synthetic": synthetic_content, "recordings": recordings_content}


def write_report(folder: Path) -> Path:
    """`report.html` and `figures/` from what is saved in the folder."""
    for name, write in ((AUDIT, write_audit_report), (DAYS, write_days_report)):
        if (folder / name).is_file():
            return write(folder)
    results = read_results(folder)
    content = CONTENTS[results.study["page"]](results)
    save_figures(folder / "figures", {**content.pictures, **content.figures})
    made = {"title": results.study["title"], **results.study["made"]}
    page = folder / "report.html"
    text = render_page(content.template, made, content.figures, content.captions, **content.fields)
    page.write_text(text, encoding="utf-8")
    return page
