"""The report of a sweep: who is on a front, what the page shows."""

import html
import json
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.problem.enforcement import Coarsen, Lagrangian, Mask, Penalty
from reticent.problem.synthetic import two_binary_sensors
from reticent.report.results import read_results
from reticent.report.sweep import FRONTS, comparable, on_front, sweep_figures, sweep_table, with_fronts
from reticent.report.write import write_report
from reticent.study.plan import plan
from reticent.study.run import Done, prepare, run_study
from reticent.study.spec import read_spec
from tests.sweeps import made_up, pretend

few = st.integers(0, 5).map(float)


@given(points=st.lists(st.tuples(few, few), min_size=1, max_size=25), front=st.sampled_from(FRONTS))
def test_nothing_on_a_front_is_beaten_and_everything_else_is(points, front):
    settings = pl.DataFrame({front.worth: [p[0] for p in points], front.leak: [p[1] for p in points]})
    on = on_front(settings, front)

    def beats(one, other):
        gained = other[0] - one[0] if front.worth == "paid" else one[0] - other[0]
        kept = other[1] - one[1]
        return gained >= 0 and kept >= 0 and gained + kept > 0

    best = [point for point, here in zip(points, on, strict=True) if here]
    assert best
    assert not any(beats(one, other) for one in points for other in best)
    # What is not on it is beaten by something that is.
    assert all(any(beats(one, point) for one in best) for point, here in zip(points, on, strict=True) if not here)


@pytest.fixture
def folder(tmp_path):
    """Two problems, three kinds of bounds, two seeds, with made-up numbers: a looser bound costs less and says more."""
    (tmp_path / "p<1>.json").write_text(json.dumps(two_binary_sensors().to_json()))
    (tmp_path / "many.toml").write_text(
        'problems = ["synthetic", "p<1>.json"]\nconfidence = [0.6, 0.7]\ninformation = [0.1]\n'
        'expected_information = [0.2]\nenforce = ["penalty", "coarsen", "mask", "lagrangian"]\n'
        'methods = ["ppo", "a2c", "value-iteration", "value-kernels"]\nseeds = 2\n'
    )
    sweep = plan(read_spec(tmp_path / "many.toml"))

    def pretend(cells, out):
        del out
        for cell in cells:
            # Value iteration is better in everything.
            gain = 1.0 if cell.setting.method.name == "value-iteration" else 0.0
            limit = cell.setting.bound.number
            paid = {"cost": 20 - 10 * limit - gain, "cost_without_penalty": 20 - 10 * limit - gain - 5}
            said = {"accuracy_secret": limit, "spent_bits": limit}
            yield Done(cell, made_up(cell, **paid, **said, accuracy_useful=limit + 0.1 * gain))

    prepare(sweep, tmp_path / "out")
    for _ in run_study(sweep, tmp_path / "out", pretend):
        pass
    return tmp_path / "out"


def test_settings_are_compared_within_a_problem_and_over_seeds(folder):
    settings = with_fronts(comparable(read_results(folder)))
    # 2 problems; 2 confidence bounds x (penalty: 3, coarsen: 4), 1 + 1 other bounds x 3 methods.
    assert len(settings) == 2 * (2 * (3 + 4) + 2 * 3)
    assert set(settings["seeds"]) == {2}
    best = settings.filter(pl.col("fronts") != "")
    assert set(best["method"]) == {"value-iteration"}
    # Without what the multiplier charges, limiting the mean costs least for its leakage.
    expected = best.filter(pl.col("bound") == "expected information")
    np.testing.assert_allclose(expected["paid"], [12.0, 12.0])
    assert set(expected["fronts"]) == {"abcd"}
    headings, rows = sweep_table(settings)
    assert headings[:4] == ["bound", "kept by", "method", "problem"]
    assert ["L_B 0.6", "penalty", "A2C", "synthetic", "14.00", "0.50", "60.0", "60.0"] in [row[:8] for row in rows]
    headings, _ = sweep_table(settings.filter(pl.col("problem") == "synthetic"))
    assert "problem" not in headings


def test_the_page_is_self_contained_and_says_what_a_front_is(folder, monkeypatch):
    drawn = []
    monkeypatch.setattr("reticent.report.write.save_figures", lambda _, figures: drawn.extend(figures))
    page = write_report(folder).read_text()
    text = html.unescape(page)
    # For each problem: cost and accuracy over each of three kinds of bounds, and four fronts.
    assert page.count("<figure>") == 2 * (3 * 2 + 4)
    assert len(set(drawn)) == 20
    assert "80 of 80 cells are finished" in text
    assert "no other setting of the same problem and price is at least as good" in text
    assert "c</dt><dd>highest accuracy on U for its accuracy on S" in text
    assert "A bound on information is not kept by penalty or coarsen or lagrangian, but by mask or paper." in text
    assert 'methods = ["ppo", "a2c", "value-iteration", "value-kernels"]' in text
    # What each enforcement promises, in its own words.
    for enforcement in (Penalty, Coarsen, Mask, Lagrangian):
        assert enforcement.promised in text
    assert "p&lt;1&gt;.json" in page
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=", markup)
    assert "p<1>" not in markup


def test_a_report_can_be_drawn_before_the_sweep_is_done(folder, monkeypatch):
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda snippet: snippet)
    for path in sorted((folder / "results").iterdir())[1:]:
        path.unlink()
    assert "1 of 80 cells are finished" in write_report(folder).read_text()
    assert len(list((folder / "figures").glob("*.png"))) == len(list((folder / "figures").glob("*.svg"))) == 2 + 4


def test_no_bound_stands_in_the_table_and_among_the_trade_offs(tmp_path):
    (tmp_path / "free.toml").write_text(
        'problems = ["synthetic"]\nconfidence = [0.7]\nunbounded = true\nmethods = ["EJS"]\n'
    )
    sweep = plan(read_spec(tmp_path / "free.toml"))
    prepare(sweep, tmp_path / "out")
    assert len(list(run_study(sweep, tmp_path / "out", pretend))) == 4
    results = comparable(read_results(tmp_path / "out"))
    headings, rows = sweep_table(with_fronts(results))
    assert headings[0] == "bound"
    assert sorted(row[0] for row in rows) == ["L_B 0.7", "none"]
    # There is no axis of bounds to draw it on.
    names = [name for name, _, _ in sweep_figures(results)]
    assert names == ["cost_confidence_1", "useful_confidence_1", *(f"front_{letter}_1" for letter in "abcd")]
