"""A tiny study, run for real: saved cells, resuming, the report page."""

import json
import re
from dataclasses import replace

import polars as pl
import pytest

from reticent.policy.heuristics import BASELINES
from reticent.report.results import read_results
from reticent.report.tables import summary
from reticent.report.write import write_report
from reticent.study.plan import plan
from reticent.study.run import Done, on_all_cores, prepare, run_study
from reticent.study.saved import Store
from reticent.study.spec import SHIPPED, read_spec
from tests.sweeps import finite, made_up

CONFIDENCES, INFORMATION_BITS = (0.6, 0.7, 0.8, 0.9, 0.99), (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
LOOKAHEAD, ITERATION, KERNELS = "one-step lookahead", "value-iteration", "value-kernels"
LIMITS = {"confidence": CONFIDENCES, "information": INFORMATION_BITS, "expected information": INFORMATION_BITS}
# What goes beyond the paper, with its rounds.
EXTRAS = {
    ("confidence", "withhold", LOOKAHEAD): 0,
    ("confidence", "coarsen", LOOKAHEAD): 0,
    ("confidence", "withhold", ITERATION): 200,
    ("confidence", "coarsen", ITERATION): 250,
    ("confidence", "coarsen", KERNELS): 160,
    ("confidence", "answer", ITERATION): 300,
    ("confidence", "penalty", ITERATION): 300,
    ("confidence", "penalty", "randomised response"): 0,
    ("confidence", "penalty", "privacy funnel"): 0,
    ("confidence", "penalty", "lower bound"): 80,
    ("information", "mask", "lower bound"): 80,
    ("information", "mask", ITERATION): 200,
    ("expected information", "lagrangian", ITERATION): 300,
}


def tiny(name):
    return plan(read_spec(SHIPPED / f"{name}.toml", given={"seeds": 2, "steps": 100, "episodes": 64}))


def columns(cell):
    row = cell.identity()
    return tuple(row[name] for name in ("bound", "enforcement", "method", "limit"))


def save(study, out):
    """The rows of finished cells, with made-up numbers."""
    prepare(study, out)
    for cell in finite(study):
        Store(out).write(cell, made_up(cell))


def test_the_plan_has_every_panel():
    cells = finite(tiny("synthetic"))
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names)
    planned = {columns(cell): cell for cell in cells}
    kept = {"confidence": "penalty", "information": "mask"}
    agents = {key for key in planned if key[2] == "ppo"}
    assert agents == {(bound, enforce, "ppo", x) for bound, enforce in kept.items() for x in LIMITS[bound]}
    for baseline in BASELINES:
        assert {(bound, enforce, baseline, x) for bound, enforce in kept.items() for x in LIMITS[bound]} <= set(planned)
    trade_off = [cell for cell in cells if columns(cell) == ("information", "mask", "ppo", 1.0)]
    assert {cell.setting.error_penalty for cell in trade_off} == {5.0, 10.0, 20.0, 50.0, 100.0, 200.0}
    for extra, rounds in EXTRAS.items():
        assert {planned[*extra, limit].effort for limit in LIMITS[extra[0]]} == {rounds}
    assert [columns(cell) for cell in cells if cell.setting.method.name == "no protection"] == [
        ("unbounded", "penalty", "no protection", None)
    ]
    # Two seeds of the agent under 11 bounds and 5 other prices, the others once; four more draws under these bounds.
    baselines, draws = 11 * len(BASELINES), 4 * 11
    assert {cell.problem.draw for cell in cells if cell.seed == 0} == {0, 1, 2, 3, 4}
    assert len(cells) == 2 * (11 + 5) + draws + baselines + sum(len(LIMITS[bound]) for bound, *_ in EXTRAS) + 1


def test_finished_cells_are_not_run_again_and_only_missing_ones_are(tmp_path):
    study = tiny("synthetic")
    save(study, tmp_path)
    [free] = [cell for cell in finite(study) if cell.setting.method.name == "no protection"]
    other = replace(free, episodes=32)
    # Damaged files of finished cells count as missing; this one is also of the cell that changed.
    Store(tmp_path).path(other).write_text("[]")
    changed = replace(study, cells=[other if cell is free else cell for cell in finite(study)])
    events = list(run_study(changed, tmp_path, on_all_cores))
    assert [event.cell for event in events if isinstance(event, Done) and not event.kept] == [other]
    results = pl.read_parquet(tmp_path / "results" / "*.parquet")
    assert len(results) == len(finite(study))
    # The cell that really ran: ten random readings name both values more often than not.
    real = results.filter(pl.col("method") == "no protection")
    assert real["releases"].item() == pytest.approx(10)
    assert real["accuracy_secret"].item() > 0.7
    assert real["limit"].item() is None


def test_the_report_is_one_self_contained_page(tmp_path):
    study = tiny("synthetic")
    save(replace(study, spec=replace(study.spec, title="A <tiny> study")), tmp_path)
    page = write_report(tmp_path).read_text()
    assert "A &lt;tiny&gt; study" in page
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=", markup)
    assert page.count("<figure>") == 13
    # Only what holds by construction may be called certain; these numbers are made up, so nothing costs less.
    assert not re.search("for certain|costs less|as in the paper", markup + json.dumps(charts(page)))
    # What each enforcement promises, in its own words.
    for cell in finite(study):
        assert cell.setting.enforcement.promised in markup
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"synthetic.png", "synthetic.svg", "guarantee.png", "trade_off.png", "confidence_time.svg"} <= figures
    table = summary(read_results(tmp_path).rows)
    assert len(table) == 11 * (1 + len(BASELINES)) + sum(len(LIMITS[bound]) for bound, *_ in EXTRAS) + 1
    # The agent comes first, what is never crossed last.
    assert table[0][:3] == ["L_B 0.6", "penalty", "PPO"]
    kept = [enforcement for bound, enforcement, *_ in table if bound == "L_B 0.6"]
    assert set(kept[: kept.index("answer")]) == {"penalty"}
    assert set(kept[kept.index("answer") :]) == {"answer", "coarsen", "withhold"}
    # The lower bound has a cost and nothing else.
    assert {row[4] for row in table if row[2] == "certified lower bound"} == {"-"}


def charts(page: str) -> dict:
    """The charts of a page, with their legends."""
    found = re.search(r"^const charts = (.*);$", page, re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


def test_a_quick_study_leaves_out_what_it_cannot_compare(tmp_path, monkeypatch):
    # Pictures take most of the time, and are looked at above.
    monkeypatch.setattr("reticent.report.write.save_figures", lambda *_: None)
    save(tiny("synthetic-quick"), tmp_path)
    assert write_report(tmp_path).read_text().count("<figure>") == 12
