"""The paper's studies to the letter: what is run, and what the paper leaves open."""

import json
from dataclasses import asdict, replace

import polars as pl
import pytest

from reticent.cli.study import Reproduce, _print_verdicts
from reticent.errors import InputError
from reticent.problem.enforcement import PaperCost
from reticent.problem.synthetic import Z_RANGE, synthetic, two_binary_sensors
from reticent.report.figures import over_seeds
from reticent.report.paper.studies import SYNTHETIC_CLAIMS, found
from reticent.report.results import read_results
from reticent.report.tables import summary
from reticent.report.write import write_report
from reticent.solve.actor_critic import A2C, PPO, Recipe
from reticent.study.choices import Choices
from reticent.study.finite import SYNTHETIC
from reticent.study.methods import METHODS
from reticent.study.plan import plan
from reticent.study.run import prepare
from reticent.study.saved import Store
from reticent.study.spec import SHIPPED, read_spec
from reticent.study.trained import Agent, paper_agent
from tests.sweeps import finite, made_up

LETTER = SHIPPED / "letter.toml"
GOOD = 'problems = ["synthetic"]\nconfidence = [0.8]\nenforce = ["paper"]\nmethods = ["a2c"]\n'


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "small.json").write_text(json.dumps(two_binary_sensors().to_json()))

    def read(text, **given):
        (tmp_path / "own.toml").write_text(text)
        return read_spec(tmp_path / "own.toml", given=given)

    return read


def recipe_of(cell) -> Recipe:
    return cell.setting.method.recipe


def test_the_letter_is_the_papers_agent_and_cost_beside_the_corrected_ones():
    cells = finite(plan(read_spec(LETTER)))
    ways = {(c.setting.bound.name, c.setting.enforcement.name, c.setting.method.name) for c in cells}
    assert ways == {
        ("unbounded", "penalty", "no protection"),
        ("confidence", "paper", "a2c"),
        ("information", "paper", "a2c"),
        ("confidence", "penalty", "ppo"),
        ("information", "mask", "ppo"),
    }
    # Five draws of the problem, and two more seeds of the paper's agent on the first, under the same thirteen bounds.
    assert len({c.problem.digest for c in cells}) == 5
    assert len(cells) == 5 * (13 + 13 + 1) + 2 * 13
    limits = {c.setting.bound.number for c in cells if c.setting.bound.on_spending}
    assert max(limits) > 1.585 > min(limits)


def test_the_papers_agent_is_the_printed_one():
    recipe = recipe_of(finite(plan(read_spec(LETTER)))[1])
    assert (recipe.trace, recipe.epochs, recipe.minibatches, recipe.width) == (0.0, 1, 1, 256)
    assert (recipe.inputs, recipe.greedy) == ("belief", False)
    # What is open has one home: the defaults are those of the recipe.
    assert paper_agent(Choices()).recipe == A2C
    assert METHODS["a2c"] == paper_agent(Choices())
    assert paper_agent(Choices()).recipe_on_recordings.inputs == "belief"
    assert Agent("ppo", PPO).recipe_on_recordings.inputs == "described"


def test_what_the_paper_leaves_open_reaches_agent_and_cost_and_makes_other_cells(spec):
    table = "[choices]\ndiscount = 0.9\nactor_rate = 0.01\ncritic_rate = 0.02\nentropy = 0\nviolation_cost = 7\n"
    [usual], [other] = (finite(plan(spec(text))) for text in (GOOD, GOOD + table))
    recipe = recipe_of(other)
    assert (recipe.discount, recipe.actor_rate, recipe.critic_rate, recipe.entropy) == (0.9, 0.01, 0.02, 0)
    assert other.task.enforcement == PaperCost(7.0)
    assert usual.task.enforcement == PaperCost(50.0)
    assert usual.identity() != other.identity()
    assert json.loads(other.identity()["recipe"]) == asdict(recipe)
    # The corrected agent has its own recipe.
    [corrected] = finite(plan(spec(GOOD.replace("a2c", "ppo") + table)))
    assert recipe_of(corrected) == PPO


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("discount = 0", "The discount lies above 0 and at most at 1, but is 0."),
        ("critic_rate = -1", "critic_rate must be a number above 0, but is -1."),
        ("entropy = -0.1", "entropy must be a number, zero or more, but is -0.1."),
        ("violation_cost = inf", "violation_cost must be a number, zero or more, but is inf."),
        ("hidden_pairs = 0", "hidden_pairs must be a whole number, at least 1, but is 0."),
        ("readings_per_pair = 3", "readings_per_pair must be an even number, at least 2, but is 3."),
        ("gamma = 1", "own.toml, choices has the unknown key 'gamma'; it may have actor_rate,"),
        ('discount = "much"', "choices must be a table of numbers"),
    ],
)
def test_what_cannot_be_chosen_is_said(spec, line, sentence):
    with pytest.raises(InputError, match=sentence.replace(".", r"\.")):
        spec(GOOD + f"[choices]\n{line}\n")


def test_draws_are_of_the_synthetic_problem_only(spec):
    cells = finite(plan(spec(GOOD.replace('["synthetic"]', '["synthetic", "small.json"]') + "draws = [0, 4]\n")))
    found = [(cell.problem.name, cell.problem.draw) for cell in cells]
    assert sorted(found) == [("small.json", 0), ("synthetic", 0), ("synthetic", 4)]
    [other] = [cell.problem for cell in cells if cell.problem.draw == 4]
    assert (other.model.channel == synthetic(4).channel).all()
    assert other != SYNTHETIC
    assert SYNTHETIC in [cell.problem for cell in cells]
    # As many as are given take the place of those above the grids.
    assert len(finite(plan(spec(GOOD, draws=3)))) == 3


def test_other_ranges_of_the_symbols_are_other_problems(spec):
    cells = finite(plan(spec(GOOD + "z_ranges = [[-4.5, 7.5], [-3, 6.0]]\n")))
    assert [cell.problem.name for cell in cells] == ["synthetic", "synthetic, z from -3 to 6"]
    assert cells[0].problem == SYNTHETIC
    assert (cells[1].problem.model.channel == synthetic(0, z_range=(-3.0, 6.0)).channel).all()
    assert synthetic().symbols == synthetic(z_range=Z_RANGE).symbols
    for text in ("z_ranges = [[1, 2, 3]]", "z_ranges = [1]", 'z_ranges = [["a", 1]]'):
        with pytest.raises(InputError, match="z_ranges must be a list of ranges"):
            spec(f"{GOOD}{text}\n")
    with pytest.raises(InputError, match="the lower first, but is"):
        spec(f"{GOOD}z_ranges = [[2, 1]]\n")


def test_the_command_takes_the_spec_that_its_options_name():
    letter = Reproduce("synthetic", to_the_letter=True, draws=2, z_range=(-3.0, 6.0), choices=Choices(entropy=0.0))
    letter._check()
    assert letter._spec == "letter"
    assert letter._given["draws"] == 2
    assert letter._given["z_ranges"] == [[-3.0, 6.0]]
    assert letter._given["choices"]["entropy"] == 0.0
    study = plan(read_spec(LETTER, given=letter._given))
    assert {cell.problem.name for cell in finite(study)} == {"synthetic, z from -3 to 6"}
    names = {(Reproduce(s, quick=q, to_the_letter=True)._spec) for s in ("synthetic", "dsa") for q in (False, True)}
    assert names == {"letter", "letter-quick", "letter-recordings", "letter-recordings-quick"}
    assert all((SHIPPED / f"{name}.toml").is_file() for name in names)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (Reproduce("synthetic", choices=Choices(entropy=0.0)), "add --to-the-letter"),
        (Reproduce("dsa", draws=2), "of the synthetic problem"),
        (Reproduce("synthetic", look_back=2), "reads no recordings"),
        (Reproduce("synthetic", draws=0), "--draws is 0, which is too few"),
    ],
)
def test_options_that_do_not_go_together_are_refused(command, sentence):
    with pytest.raises(InputError, match=sentence):
        command._check()


def test_the_page_of_the_letter_shows_both_and_bands_over_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("reticent.report.write.save_figures", lambda *_: None)
    study = plan(read_spec(LETTER, given={"seeds": 1, "steps": 100, "episodes": 64}))
    prepare(study, tmp_path)
    for cell in finite(study):
        # The further draw, the longer it takes.
        Store(tmp_path).write(cell, made_up(cell, releases=1.0 + cell.problem.draw))
    page = write_report(tmp_path).read_text()
    assert page.count("<figure>") == 16
    assert "crossing it and stopping is not charged" in page
    charts = json.loads(next(line for line in page.splitlines() if line.startswith("const charts"))[15:-1])
    datasets = charts["letter_confidence_time"]["datasets"].values()
    [data] = [rows for rows in datasets if rows[0]["measure"] == "releases"]
    assert {(row["low"], row["mean"], row["high"], row["seeds"]) for row in data} == {(1.0, 3.0, 5.0, 7)}
    assert read_results(tmp_path).rows["draw"].n_unique() == 5
    # Made-up numbers are the same at every bound: nothing rises, and half of the episodes cross it.
    assert page.count("<td>undecided</td><td>undecided</td>") >= 4
    assert "<td>contradicted</td><td>contradicted</td><td>the confidence in S stays below" in page
    _print_verdicts(tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(SYNTHETIC_CLAIMS)
    assert "undecided to the letter, undecided corrected: τ of π_B rises as L_B is relaxed" in said


def test_a_study_without_the_letter_has_no_figures_of_it():
    cells = finite(plan(replace(read_spec(SHIPPED / "synthetic-quick.toml"))))
    assert {cell.problem.draw for cell in cells} == {0}
    assert "paper" not in {cell.setting.enforcement.name for cell in cells}
    assert found(pl.DataFrame([made_up(cell) for cell in cells])) == []


def test_every_draw_counts_alike_however_many_seeds_it_has():
    one = {"policy": "PPO", "bound": "confidence", "limit": 0.8, "enforcement": "penalty", "method": "ppo"}
    one |= {"promise": "none", "error_penalty": 50.0, "releases": 1.0, "violation_rate": 0.0}
    one |= {"accuracy_useful": 0.5, "accuracy_secret": 0.5, "cost_low": 0.0, "cost_high": 99.0}
    costs = [(0, 10.0), (0, 12.0), (0, 14.0), (1, 20.0)]
    rows = pl.DataFrame([{**one, "draw": draw, "cost": cost} for draw, cost in costs])
    [row] = over_seeds(rows, "cost").to_dicts()
    assert (row["mean"], row["low"], row["high"], row["seeds"]) == (16.0, 10.0, 20.0, 4)
    assert summary(rows)[0][3] == "16.00"
    # Of a single cell the band is the interval of its evaluation.
    [single] = over_seeds(rows[3:], "cost").to_dicts()
    assert (single["mean"], single["low"], single["high"]) == (20.0, 0.0, 99.0)
