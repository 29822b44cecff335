"""The file that describes a sweep: what it may say, what it asks for, and what there is not."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from reticent.errors import InputError
from reticent.problem.bound import Unbounded
from reticent.problem.synthetic import tells_useful, two_binary_sensors
from reticent.study.finite import SYNTHETIC
from reticent.study.plan import plan
from reticent.study.spec import SHIPPED, read_spec
from tests.sweeps import finite


def setting_of(cell):
    row = cell.identity()
    return tuple(row[name] for name in ("bound", "limit", "enforcement", "method"))


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
    study = plan(spec('problems = ["synthetic"]\nconfidence = [0.8]\ninformation = [1]\n'))
    assert study.left_out == []
    assert (study.spec.title, study.spec.page) == ("Sweep sweep", "sweep")
    assert [setting_of(cell)[:3] for cell in finite(study)] == [
        ("confidence", 0.8, "penalty"),
        ("information", 1.0, "mask"),
    ]
    assert {(setting_of(cell)[3], cell.effort) for cell in finite(study)} == {("ppo", 245 * 4096)}
    assert {(cell.setting.error_penalty, cell.seed, cell.episodes) for cell in finite(study)} == {(50.0, 0, 100_000)}
    assert all(cell.problem == SYNTHETIC for cell in finite(study))


def test_every_combination_once_and_one_seed_after_the_other(spec):
    text = """
    problems = ["small.json", "other.json"]
    confidence = [0.7, 0.9]
    enforce = ["penalty", "withhold"]
    methods = ["ppo", "a2c", "value-iteration", "EJS"]
    error_penalty = [20, 50.0]
    seeds = [4, 2]
    steps = 1000
    rounds = 7
    episodes = 300
    """
    study = plan(spec(text))
    cells = finite(study)
    assert study.left_out == []
    # What is run: one update has 4,096 steps, or 1,024 by the paper's recipe.
    methods = [("ppo", 4096), ("a2c", 1024), ("value-iteration", 7), ("EJS", 0)]
    asked = product((4, 2), ("small.json", "other.json"), (0.7, 0.9), ("penalty", "withhold"), (20.0, 50.0), methods)
    rows = [(cell.identity(), cell.effort) for cell in cells]
    columns = ("seed", "problem", "limit", "enforcement", "error_penalty")
    found = [(*(row[column] for column in columns), (row["method"], effort)) for row, effort in rows]
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
    methods = ["ppo", "value-iteration", "value-kernels", "EJS"]
    """
    study = plan(spec(text))
    left_out = study.left_out
    found = {setting_of(cell) for cell in finite(study)}
    assert found == {
        ("confidence", 0.8, "penalty", "ppo"),
        ("confidence", 0.8, "penalty", "value-iteration"),
        ("confidence", 0.8, "penalty", "EJS"),
        ("confidence", 0.8, "answer", "value-iteration"),
        ("information", 0.1, "mask", "ppo"),
        ("information", 0.1, "mask", "value-iteration"),
        ("information", 0.1, "mask", "EJS"),
        ("expected information", 0.1, "lagrangian", "ppo"),
        ("expected information", 0.1, "lagrangian", "value-iteration"),
    }
    said = "\n".join(left_out)
    assert len(set(left_out)) == len(left_out)
    for sentence in (
        "confidence is not kept by mask or lagrangian, but by penalty or withhold or coarsen or answer or paper.",
        "expected information is not kept by penalty or answer or mask, but by lagrangian.",
        "Answers need the method value-iteration, not ppo.",
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
        (GOOD + 'methods = "a2c"', "methods must be a list of 'ppo', 'a2c', 'value-iteration', 'value-kernels', 'ran"),
        (GOOD + 'methods = ["dqn"]', "but is ['dqn']."),
        (GOOD + "methods = []", "methods must be a list"),
        (GOOD + 'methods = ["a2c"]\nrecipes = ["default"]', 'recipes is no key any more. Write methods = ["ppo"] for'),
        (GOOD + "grid = [1]", "grid must be one or more tables [[grid]], but is [1]."),
        (GOOD + "[[grid]]\nseeds = 2\n[[grid]]\nproblems = []", "sweep.toml, grid 2 has the unknown key 'problems'"),
        (GOOD + "[[grid]]\nsteps = 0", "sweep.toml, grid 1: steps must be a whole number, at least 1, but is 0."),
        (GOOD + 'page = "own"', "page must be one of 'sweep', 'synthetic', 'recordings', but is 'own'."),
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
    study = plan(spec(example[1]))
    # Two problems, two prices, three seeds; five bounds kept in two ways and three in one, each by three methods.
    assert len(finite(study)) == 2 * 2 * 3 * (5 * 2 + 3) * 3
    assert len(study.left_out) == 2


def test_no_bound_is_asked_for_by_name(spec):
    study = plan(spec('problems = ["small.json"]\nconfidence = [0.8]\nunbounded = true\nenforce = ["coarsen"]'))
    cells = finite(study)
    assert study.left_out == []
    assert [setting_of(cell)[:3] for cell in cells] == [
        ("confidence", 0.8, "coarsen"),
        ("unbounded", None, "penalty"),
    ]
    assert cells[1].task.bound == Unbounded()
    # As long as episodes with a bound may be, unlike the ten readings without protection.
    assert cells[1].task.horizon == cells[0].task.horizon


def test_nothing_left_is_an_error(spec):
    with pytest.raises(InputError, match=r"nothing to run. A bound on confidence is not kept by mask"):
        plan(spec(GOOD + 'enforce = ["mask"]'))


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(InputError, match="Cannot read the sweep file"):
        read_spec(tmp_path / "none.toml")


def test_a_grid_has_what_stands_above_it_and_its_own(spec):
    text = """
    problems = ["small.json"]
    seeds = 2
    episodes = 1000
    [[grid]]
    confidence = [0.8]
    methods = ["EJS"]
    [[grid]]
    confidence = [0.7]
    methods = ["value-kernels"]
    enforce = ["coarsen"]
    seeds = [5]
    episodes = 250
    """
    found = [(*setting_of(cell), cell.seed, cell.episodes) for cell in finite(plan(spec(text)))]
    assert found == [
        ("confidence", 0.8, "penalty", "EJS", 0, 1000),
        ("confidence", 0.7, "coarsen", "value-kernels", 5, 250),
        ("confidence", 0.8, "penalty", "EJS", 1, 1000),
    ]


def test_one_cell_is_not_asked_for_with_two_efforts(spec):
    text = 'problems = ["small.json"]\nconfidence = [0.8]\nmethods = ["EJS"]\n'
    assert len(finite(plan(spec(text + "[[grid]]\nseeds = 1\n[[grid]]\nseeds = 2")))) == 2
    with pytest.raises(InputError, match=r"two grids ask for .* with different efforts"):
        plan(spec(text + "[[grid]]\nseeds = 1\n[[grid]]\nepisodes = 10"))


def test_other_efforts_replace_those_of_the_file_and_shares_of_episodes_stay():
    path = SHIPPED / "synthetic.toml"
    study = plan(read_spec(path, given={"seeds": 2, "steps": 100, "episodes": 64}))
    assert {cell.effort for cell in finite(study) if cell.setting.method.name == "ppo"} == {4096}
    assert {(cell.setting.method.name, cell.episodes) for cell in finite(study) if cell.episodes != 64} == {
        ("value-kernels", 16),
        ("lower bound", 2),
    }
    seeds = {(cell.setting.method.name, cell.seed) for cell in finite(study) if cell.seed > 0}
    assert seeds == {("ppo", 1)}


def test_what_is_not_a_policy_or_keeps_nothing_is_for_what_it_is_for(spec):
    text = """
    problems = ["small.json"]
    confidence = [0.8]
    unbounded = true
    enforce = ["penalty", "coarsen"]
    methods = ["no protection", "lower bound"]
    """
    study = plan(spec(text))
    assert [setting_of(cell) for cell in finite(study)] == [
        ("confidence", 0.8, "penalty", "lower bound"),
        ("unbounded", None, "penalty", "no protection"),
        ("unbounded", None, "penalty", "lower bound"),
    ]
    assert study.left_out == [
        "Without protection no bound is kept: 'no protection' goes with unbounded = true.",
        "A lower bound is computed under penalty, or under mask on information, not under coarsen.",
    ]
    assert finite(study)[1].task.horizon == 10
