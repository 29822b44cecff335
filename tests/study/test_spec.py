"""The file that describes a sweep: what it may say, what it asks for, and what there is not."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from reticent.errors import InputError
from reticent.problem.bound import Unbounded
from reticent.problem.synthetic import tells_useful, two_binary_sensors
from reticent.study.cell import SYNTHETIC
from reticent.study.spec import plan, read_spec


@pytest.fixture
def spec(tmp_path):
    """Reads a spec of these lines; a problem file lies beside it."""
    (tmp_path / "small.json").write_text(json.dumps(two_binary_sensors().to_json()))
    (tmp_path / "same.json").write_text(json.dumps(two_binary_sensors().to_json(), indent=2))
    (tmp_path / "other.json").write_text(json.dumps(tells_useful().to_json()))

    def read(text):
        (tmp_path / "sweep.toml").write_text(text)
        return read_spec(tmp_path / "sweep.toml")

    return read


def test_a_short_file_has_defaults(spec):
    cells, left_out = plan(spec('problems = ["synthetic"]\nconfidence = [0.8]\ninformation = [1]\n'))
    assert left_out == []
    assert [(cell.kind, cell.limit, cell.enforce) for cell in cells] == [
        ("confidence", 0.8, "penalty"),
        ("information", 1.0, "mask"),
    ]
    assert {(cell.policy, cell.recipe, cell.effort) for cell in cells} == {("agent", "default", 245 * 4096)}
    assert {(cell.error_penalty, cell.seed, cell.episodes) for cell in cells} == {(50.0, 0, 100_000)}
    assert all(cell.problem == SYNTHETIC for cell in cells)


def test_every_combination_once_and_one_seed_after_the_other(spec):
    text = """
    problems = ["small.json", "other.json"]
    confidence = [0.7, 0.9]
    enforce = ["penalty", "withhold"]
    methods = ["a2c", "value-iteration", "EJS"]
    recipes = ["default", "paper"]
    error_penalty = [20, 50.0]
    seeds = [4, 2]
    steps = 1000
    rounds = 7
    episodes = 300
    """
    cells, left_out = plan(spec(text))
    assert left_out == []
    # Recipes are the agent's: four methods in all.
    # What is run: one update has 4,096 steps, or 1,024 by the paper's recipe.
    methods = [("agent", "default", 4096), ("agent", "paper", 1024), ("value iteration", "default", 7)]
    methods.append(("EJS", "default", 0))
    asked = product((4, 2), ("small.json", "other.json"), (0.7, 0.9), ("penalty", "withhold"), (20.0, 50.0), methods)
    found = [
        (c.seed, c.problem.name, c.limit, c.enforce, c.error_penalty, (c.policy, c.recipe, c.effort)) for c in cells
    ]
    assert sorted(found) == sorted(asked)
    assert len({cell.name for cell in cells}) == len(cells)
    assert [cell.seed for cell in cells] == sorted((cell.seed for cell in cells), reverse=True)
    assert {cell.episodes for cell in cells} == {300}


def test_what_does_not_exist_is_left_out_and_said(spec):
    text = """
    problems = ["small.json"]
    confidence = [0.5, 0.8]
    information = [0.1]
    expected_information = [0.1]
    enforce = ["penalty", "answer", "mask", "lagrangian"]
    methods = ["a2c", "value-iteration", "value-kernels", "EJS"]
    """
    cells, left_out = plan(spec(text))
    found = {(cell.kind, cell.limit, cell.enforce, cell.policy) for cell in cells}
    assert found == {
        ("confidence", 0.8, "penalty", "agent"),
        ("confidence", 0.8, "penalty", "value iteration"),
        ("confidence", 0.8, "penalty", "EJS"),
        ("confidence", 0.8, "answer", "value iteration"),
        ("information", 0.1, "mask", "agent"),
        ("information", 0.1, "mask", "value iteration"),
        ("information", 0.1, "mask", "EJS"),
        ("expected", 0.1, "lagrangian", "agent"),
        ("expected", 0.1, "lagrangian", "value iteration"),
    }
    said = "\n".join(left_out)
    assert len(set(left_out)) == len(left_out)
    for sentence in (
        "confidence is not kept by mask or lagrangian, but by penalty or withhold or coarsen or answer or paper.",
        "expected information is not kept by penalty or answer or mask, but by lagrangian.",
        "Answers need the method value-iteration, not a2c.",
        "A multiplier is learned, which EJS does not do.",
        "Value kernels go with withhold and coarsen, not with penalty.",
        "small.json: The confidence bound 0.5 is not above 0.5",
    ):
        assert sentence in said


GOOD = 'problems = ["small.json"]\nconfidence = [0.8]\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (GOOD + "colour = 1", "sweep.toml has the unknown key 'colour'; a sweep may have problems, confidence,"),
        (GOOD + "seeds = 0", "seeds must be a number of seeds, or a list of seeds from 0 to 9999, but is 0."),
        (GOOD + "seeds = [10_000]", "seeds must be"),
        (GOOD + "seeds = true", "seeds must be"),
        (GOOD + "seeds = [1, 1]", "seeds has 1 twice"),
        (GOOD + "steps = 2.5", "steps must be a whole number, at least 1, but is 2.5."),
        (GOOD + "rounds = 0", "rounds must be a whole number, at least 1"),
        (GOOD + "episodes = 1", "episodes must be a whole number, at least 2"),
        (GOOD + 'methods = "a2c"', "methods must be a list of 'a2c', 'value-iteration', 'value-kernels', 'random sen"),
        (GOOD + 'methods = ["dqn"]', "but is ['dqn']."),
        (GOOD + "methods = []", "methods must be a list"),
        (GOOD + 'recipes = ["own"]', "recipes must be a list of 'default', 'paper'"),
        (GOOD + 'enforce = ["hope"]', "enforce must be a list of 'penalty', 'withhold'"),
        (GOOD + "error_penalty = [0]", "error_penalty must be a list of numbers above 0, but is [0]."),
        (GOOD + "error_penalty = 50", "error_penalty must be a list of numbers"),
        (GOOD + "information = [nan]", "information must be a list of numbers above 0, but is [nan]."),
        ('problems = ["small.json"]\nconfidence = [80]', "at most 1 (unbounded = true is no bound), but is [80]."),
        (GOOD + "unbounded = 1", "unbounded must be true or false, but is 1."),
        (GOOD + "information = [true]", "information must be a list of numbers above 0"),
        (GOOD + "information = [0.5, 0.50000001]", "information has 0.5 twice."),
        ("confidence = [0.8]", "lacks problems"),
        ('problems = ["small.json"]', "has no bound"),
        ('problems = ["small.json", "same.json"]\nconfidence = [0.8]', "'small.json' and 'same.json' are the same"),
        ('problems = ["none.json"]\nconfidence = [0.8]', "Cannot read the problem file"),
        ("problems = [", "is not TOML that can be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(spec, text, sentence):
    with pytest.raises(InputError) as error:
        spec(text)
    assert sentence in str(error.value)


def test_the_example_of_the_guide_is_ten_lines_and_can_be_planned(spec, tmp_path):
    guide = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text()
    example = re.search(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert example is not None
    assert len(example[1].splitlines()) == 10
    (tmp_path / "small.json").rename(tmp_path / "kitchen.json")
    cells, left_out = plan(spec(example[1]))
    # Two problems, two prices, three seeds; five bounds kept in two ways and three in one, each by three methods.
    assert len(cells) == 2 * 2 * 3 * (5 * 2 + 3) * 3
    assert len(left_out) == 2


def test_no_bound_is_asked_for_by_name(spec):
    cells, left_out = plan(
        spec('problems = ["small.json"]\nconfidence = [0.8]\nunbounded = true\nenforce = ["coarsen"]')
    )
    assert left_out == []
    assert [(cell.bound, cell.enforce) for cell in cells] == [("L_B 0.8", "coarsen"), ("no bound", "penalty")]
    assert cells[1].task.bound == Unbounded()
    # As long as episodes with a bound may be, unlike the ten readings without protection.
    assert cells[1].task.horizon == cells[0].task.horizon


def test_nothing_left_is_an_error(spec):
    with pytest.raises(InputError, match=r"nothing to run. A bound on confidence is not kept by mask"):
        plan(spec(GOOD + 'enforce = ["mask"]'))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(InputError, match="Cannot read the sweep file"):
        read_spec(tmp_path / "none.toml")
