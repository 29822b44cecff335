"""Commands about problems that go on."""

import json

import pytest

from reticent.problem.synthetic import two_binary_sensors
from tests.commands import commands

MOVES = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.8, 0.2], [0.2, 0.8]]}


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "lived.json"
    path.write_text(json.dumps(two_binary_sensors().moving(MOVES).to_json()))
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    return commands(monkeypatch, capsys)


def test_a_problem_with_a_transition_is_trained_and_judged(problem, run, tmp_path):
    policy = tmp_path / "p.safetensors"
    bound = ("--confidence", 0.7, "--day", 24)
    code, out, _ = run("train", problem, *bound, "--method", "lookahead", "-o", policy)
    assert code == 0
    assert "nothing is trained" in out
    code, out, _ = run("evaluate", policy, "--days", 4, "--out", tmp_path / "day")
    assert code == 0
    assert "By time of the day" in out
    assert "day/report.html" in out
    code, out, _ = run("evaluate", policy, "--days", 4, "--json")
    found = json.loads(out)
    assert (found["days"], found["steps"]) == (4, 24)
    assert max(found["highest_smoother"], found["highest_filter"], found["highest_prediction"]) < 0.7
    code, out, _ = run("report", tmp_path / "day", "--json")
    assert (code, list(json.loads(out))) == (0, ["report"])
    code, _, err = run("certify", policy)
    assert code == 2
    assert "whose optimal cost has no certificate" in err
    code, out, _ = run("audit", policy, "--days", 6, "--quick", "--out", tmp_path / "audit")
    assert code in (0, 4)
    assert "pass: the bound holds in hindsight" in out


def test_the_first_steps_are_solved_exactly(problem, run):
    code, out, _ = run("solve", problem, "--confidence", 0.7, "--day", 24, "--horizon", 2, "--json")
    found = json.loads(out)
    assert (code, found["kind"]) == (0, "exact")
    assert found["lower"] <= found["cost"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train", "synthetic", "--confidence", 0.8, "--day", 9), "this one has none"),
        (("train", "synthetic", "--confidence", 0.8, "--method", "long-run"), "this one has none"),
        (("train", None, "--confidence", 0.7, "--method", "value-iteration"), "so it goes on"),
        (("train", None, "--confidence", 0.7, "--enforce", "penalty"), "not by 'penalty'"),
        (("train", None, "--information", 0.2), "the window is None"),
        (("train", None, "--confidence", 0.5), "not above 0.5"),
        (("solve", None, "--confidence", 0.7, "--day", 9), "--horizon says how many"),
        (("solve", "synthetic", "--confidence", 0.7, "--day", 9), "this one has none"),
    ],
)
def test_options_of_the_other_kind_of_problem_are_refused(words, sentence, problem, run, tmp_path):
    words = [problem if word is None else word for word in words]
    out = ["-o", tmp_path / "p.safetensors"] if words[0] == "train" else []
    code, _, err = run(*words, *out)
    assert code == 2
    assert sentence in err
