"""The page of verdicts: settings over units, the judges of claims by hand, and the arithmetic of the printed table."""

from dataclasses import fields

import numpy as np
import polars as pl
import pytest

from reticent.cli.study import Reproduce
from reticent.report.paper.claims import (
    Version,
    above_random,
    hides_better,
    names_useful_more_often,
    rises,
    stays_below,
    widest_at,
    word_of,
)
from reticent.report.paper.page import Demonstration, Demonstrations, Study, page
from reticent.report.paper.printed import TABLE, impossible_cells, shares_exist
from reticent.report.paper.settings import interval, settings
from reticent.report.paper.studies import RECORDED_CLAIMS, SYNTHETIC_CLAIMS
from reticent.study.choices import Choices, left_open


def test_the_impossible_cells_of_the_printed_table_are_named():
    named = [sentence.partition(":")[0] for sentence in impossible_cells()]
    assert named == ["π_B at 0.5, S", "π_MI at 1.75, S", "π_MI at 2, U", "π_MI at 2, S"]
    assert impossible_cells()[0].endswith(
        "41.2 % overall, but 24.58 / 23.6 / 4.58 % of the three values, whose mean lies between 4.58 and 24.58."
    )
    # The widest gaps of the table, by hand.
    assert max(line.gap for line in TABLE if line.bound == "confidence") == pytest.approx(77.4 - 46.2)
    assert max(line.gap for line in TABLE if line.bound == "information") == pytest.approx(87.1 - 68.6)


def test_shares_that_are_there_are_found():
    shares = np.array([0.5, 0.3, 0.2])
    lines = [(60.0, 20.0, 10.0), (90.0, 40.0, 80.0), (10.0, 70.0, 30.0)]
    exact = [(round(float(shares @ own), 1), own) for own in lines]
    assert shares_exist(exact)
    assert not shares_exist([(exact[0][0] + 9, lines[0]), *exact[1:]])


def rows_of(**changed):
    """Two draws with two seeds each, at one bound."""
    one = {"problem": "synthetic", "bound": "confidence", "limit": 0.8, "enforcement": "paper", "method": "a2c"}
    one |= dict.fromkeys(("confidence_useful", "accuracy_useful", "accuracy_secret", "violation_rate"), 0.5)
    one |= {"spent_bits": 0.1, "averaged_bits": None, "averaged_violation_rate": None}
    one |= {"accuracy_per_useful": [0.4, None], "accuracy_per_secret": [0.2, 0.8], **changed}
    releases = {(0, 0): 1.0, (0, 1): 3.0, (1, 0): 4.0, (1, 1): 6.0}
    return [{**one, "draw": draw, "seed": seed, "releases": tau} for (draw, seed), tau in releases.items()]


def test_seeds_are_averaged_within_a_draw_and_intervals_are_over_draws():
    [row] = settings(pl.DataFrame(rows_of()))
    assert row["releases_by_unit"] == [2.0, 5.0]
    assert row["releases"] == 3.5
    # Student with one degree of freedom: 12.706 times the standard error, which is 1.5.
    assert row["releases_high"] == pytest.approx(3.5 + 12.7062 * 1.5, abs=1e-3)
    assert (row["version"], row["units"], row["seeds"]) == ("letter", 2, 2)
    assert row["accuracy_per_secret"] == [0.2, 0.8]
    assert row["accuracy_per_useful"] == [pytest.approx(0.4), None]
    assert "averaged_bits" not in row
    assert interval(np.array([3.0])) == (None, None)


def test_versions_are_told_apart():
    others = [{"enforcement": "penalty", "method": "ppo"}, {"enforcement": "coarsen", "method": "EJS"}]
    others += [{"bound": "unbounded", "limit": None, "enforcement": "penalty", "method": "no protection"}]
    frame = pl.DataFrame([row for changed in ({}, *others) for row in rows_of(**changed)])
    assert sorted(row["version"] for row in settings(frame)) == ["beyond", "corrected", "letter", "unprotected"]


def version(curves, random=(0.9, 0.9)):
    """Curves of U and S at L = 0.6 and 0.8 of each bound, [bound][label][limit] = a value of each of three units."""
    noise = np.array([-0.01, 0.0, 0.01])
    rows = []
    for bound, both in curves.items():
        for place, limit in enumerate((0.6, 0.8)):
            row = {"version": "letter", "bound": bound, "limit": limit}
            for label, values in both.items():
                row[f"{label}_by_unit"] = (values[place] + noise * (label == "accuracy_useful")).tolist()
            rows.append(row)
    free = {"version": "unprotected", "bound": "unbounded", "limit": None}
    free |= {f"accuracy_{x}_by_unit": [value] * 3 for x, value in zip(("useful", "secret"), random, strict=True)}
    return Version.of([*rows, free], "letter")


def curves(useful, secret, **more):
    return {"accuracy_useful": useful, "accuracy_secret": secret, **more}


def test_a_claim_is_judged_by_its_interval():
    assert word_of(np.array([1.0, 1.1, 0.9])) == "reproduced"
    assert word_of(np.array([-1.0, -1.1, -0.9])) == "contradicted"
    assert word_of(np.array([1.0, -1.1, 0.9])) == "undecided"
    assert word_of(np.array([1.0])) == "undecided"


def test_what_rises_is_the_loosest_bound_less_the_tightest():
    own = version({"confidence": curves((0.5, 0.7), (0.4, 0.4))})
    found = rises("confidence", "accuracy_useful", 1, scale=100.0)(own)
    assert found.numbers.startswith("50.0 at 0.6, 70.0 at 0.8; +20.0")
    assert found.word == "reproduced"
    falling = version({"confidence": curves((0.7, 0.5), (0.4, 0.4))})
    assert rises("confidence", "accuracy_useful", 1)(falling).word == "contradicted"


def test_gaps_are_of_accuracies_and_against_random_sensors():
    # Gaps of .1 and .3: .2 on average, where random sensors have none.
    own = version({"confidence": curves((0.5, 0.7), (0.4, 0.4))})
    found = above_random("confidence")(own)
    assert found.word == "reproduced"
    assert found.numbers.startswith("gap 20.0, random 0.0; +20.0")
    assert above_random("confidence")(version({"confidence": curves((0.5, 0.7), (0.4, 0.4))}, (0.9, 0.6))).word == (
        "contradicted"
    )
    named = names_useful_more_often("confidence")(version({"confidence": curves((0.3, 0.5), (0.4, 0.9))}))
    assert named.word == "contradicted"
    assert named.numbers.endswith("above zero at 0 of 2 bounds")


def test_who_hides_better_is_read_off_at_equal_accuracy_on_u():
    belief, information = curves((0.5, 0.6), (0.3, 0.4)), curves((0.4, 0.7), (0.3, 0.6))
    found = hides_better(version({"confidence": belief, "information": information}))
    # At U .5 and .6 the other curve has S .4 and .5: ten points more than .3 and .4.
    assert found.word == "reproduced"
    assert found.numbers.startswith("S at equal accuracy on U: +10.0")
    apart = curves((0.9, 0.95), (0.3, 0.4))
    assert hides_better(version({"confidence": apart, "information": information})).word == "undecided"


def test_one_episode_over_the_bound_contradicts_that_it_holds():
    never, once = (
        version({"confidence": curves((0.5, 0.6), (0.3, 0.4), violation_rate=rate)})
        for rate in (np.zeros((2, 1)), np.array([[0.0], [0.001]]))
    )
    assert stays_below("confidence")(never).word == "reproduced"
    assert stays_below("confidence")(once).word == "contradicted"


def test_the_widest_gap_is_the_printed_bounds_or_not():
    own = version({"confidence": curves((0.5, 0.9), (0.4, 0.4))})
    assert widest_at("confidence", 0.8)(own).word == "reproduced"
    assert widest_at("confidence", 0.6)(own).word == "contradicted"
    assert widest_at("confidence", 0.65)(own).word == "unchecked"


def test_what_was_not_run_is_unchecked_and_has_no_numbers():
    text = page([Study("Mine", "What is hidden.", "reticent reproduce x", True)], Demonstrations(), [])
    assert "Not run yet: `reticent reproduce x`." in text
    assert text.count("| **unchecked** | unchecked |") == len(RECORDED_CLAIMS)
    assert "Not run yet: `python -m benchmarks paper-signs`." in text
    for sentence in impossible_cells():
        assert sentence in text


def test_the_page_says_what_the_rows_say():
    rows = [row for limit in (0.6, 0.8) for row in settings(pl.DataFrame(rows_of(limit=limit)))]
    rows += settings(
        pl.DataFrame(rows_of(bound="unbounded", limit=None, enforcement="penalty", method="no protection"))
    )
    study = Study("Mine", "What is hidden.", "-", False, "Run by hand.", tuple(rows))
    signs = Demonstration("By hand.", ({"updates": "corrected", "cost": 1.25, "losses": [1.0]},))
    text = page([study], Demonstrations(signs, Demonstration("Moved.", tuple(rows[:1]))), [])
    assert "| synthetic | letter | confidence 0.6 | 3.50" in text
    assert "| letter | confidence 0.6 | 3.50 [0.00, 22.56] | 50.0 [50.0, 50.0] | 50.0 [50.0, 50.0] | 40 / - |" in text
    assert "Run by hand." in text
    assert "| corrected | 1.25 |" in text
    assert "losses" not in text
    # Nothing was run under a bound on information, nor corrected.
    lines = [each for each in text.splitlines() if "τ of π_MI rises" in each]
    assert [each.split(" | ")[:2] for each in lines] == [["| **unchecked**", "unchecked"]]
    assert text.count("| **") == len(SYNTHETIC_CLAIMS)


def test_all_that_can_be_chosen_is_in_the_table_and_is_an_option():
    options = [each.option for each in left_open() if each.option]
    assert {each.name for each in fields(Choices)} <= set(options)
    assert len(set(options)) == len(options)
    known = {each.name for each in (*fields(Choices), *fields(Reproduce))}
    assert set(options) <= known
    taken = {each.option: each.taken for each in left_open()}
    assert taken["entropy"] == f"{Choices().entropy:g}"
    assert all(each.taken and each.printed and each.why for each in left_open())
    assert not any("|" in text for each in left_open() for text in vars(each).values())
