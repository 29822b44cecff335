"""A tiny study, run for real: saved cells, resuming, the report page."""

import json
import re
from dataclasses import replace

import polars as pl
import pytest

from reticent import __version__
from reticent.report.page import write_report
from reticent.report.tables import summary
from reticent.study.cell import AGENT, FLOOR, NO_PROTECTION, Cell, flat
from reticent.study.run import run_study, write_results
from reticent.study.synthetic import CONFIDENCES, EXTRAS, INFORMATION_BITS, LIMITS, QUICK_EXTRAS, Setting, plan

TINY = Setting(seeds=2, steps=100, episodes=64, baselines=("one-step lookahead",), extras=EXTRAS)


def test_the_plan_has_every_panel():
    cells = plan(TINY)
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names)
    agents = {(cell.kind, cell.limit) for cell in cells if cell.policy == AGENT}
    assert agents == {("confidence", x) for x in CONFIDENCES} | {("information", x) for x in INFORMATION_BITS}
    assert len({cell.error_penalty for cell in cells if cell.limit == 1.0}) == 6
    planned = {(cell.kind, cell.enforce, cell.policy, cell.limit) for cell in cells}
    assert {(*extra, limit) for extra in EXTRAS for limit in LIMITS[extra[0]]} <= planned
    assert sum(cell.policy == NO_PROTECTION for cell in cells) == 1


def _row(cell: Cell) -> dict:
    """A finished cell as `run_cell` saves it, with made-up numbers."""
    number = {"value": 0.5, "low": 0.4, "high": 0.6, "interval": "normal"}
    measures = ("cost", "releases", "confidence_useful", "accuracy_useful", "accuracy_secret", "violation_rate")
    measures += ("spent_bits", "cost_without_penalty")
    if cell.policy == FLOOR:
        measures = ("cost",)
    return {
        **cell.identity(),
        "version": __version__,
        "make_seconds": 1.0,
        "evaluate_seconds": 1.0,
        "evaluation": dict.fromkeys(measures, number),
    }


def test_finished_cells_are_not_run_again_and_only_missing_ones_are(tmp_path):
    (tmp_path / "cells").mkdir()
    cells = plan(TINY)
    for cell in cells:
        (tmp_path / "cells" / f"{cell.name}.json").write_text(json.dumps(_row(cell)))
    other = replace(cells[0], episodes=32)
    # Damaged files of finished cells count as missing; this one is also of the cell that changed.
    (tmp_path / "cells" / f"{other.name}.json").write_text("[]")
    told = []
    run_study([other, *cells[1:]], tmp_path, "Tiny", lambda cell, was_there: told.append((cell, was_there)))
    assert [cell for cell, was_there in told if not was_there] == [other]
    results = pl.read_parquet(tmp_path / "results.parquet")
    assert len(results) == len(cells)
    # The cell that really ran: ten random readings name both values more often than not.
    real = results.filter(pl.col("policy") == NO_PROTECTION)
    assert real["releases"].item() == pytest.approx(10)
    assert real["accuracy_secret"].item() > 0.7


def test_the_report_is_one_self_contained_page(tmp_path):
    rows = [_row(cell) for cell in plan(TINY)]
    write_results(tmp_path, "A <tiny> study", [flat(row) for row in rows])
    page = write_report(tmp_path).read_text()
    assert "A &lt;tiny&gt; study" in page
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=", markup)
    assert page.count("<figure>") == 13
    # Only what holds by construction may be called certain; these numbers are made up, so nothing costs less.
    assert not re.search("for certain|costs less|as in the paper", markup + json.dumps(charts(page)))
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"synthetic.png", "synthetic.svg", "guarantee.png", "trade_off.png", "confidence_time.svg"} <= figures
    table = summary(pl.read_parquet(tmp_path / "results.parquet"))
    assert len(table) == 11 * 2 + sum(len(LIMITS[kind]) for kind, _, _ in EXTRAS) + 1
    # The floor has a cost and nothing else.
    assert set(table.filter(pl.col("policy") == FLOOR)["releases"]) == {"-"}


def charts(page: str) -> dict:
    """The charts of a page, with their legends."""
    found = re.search(r"^const charts = (.*);$", page, re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


def test_a_quick_study_leaves_out_what_it_cannot_compare(tmp_path, monkeypatch):
    # Pictures take most of the time, and are looked at above.
    monkeypatch.setattr("reticent.report.page.save_figures", lambda *_: None)
    write_results(tmp_path, "Quick", [flat(_row(cell)) for cell in plan(replace(TINY, extras=QUICK_EXTRAS))])
    assert write_report(tmp_path).read_text().count("<figure>") == 12
