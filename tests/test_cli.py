"""The command line as a user meets it: in-process for speed, with one real subprocess."""

import json
import subprocess
import sys

import polars as pl
import pytest

from reticent.cli import main
from reticent.problem.synthetic import two_binary_sensors


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; returns exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p1.json").write_text(json.dumps(two_binary_sensors().to_json()))

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["reticent", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_help_lists_every_command():
    done = subprocess.run([sys.executable, "-m", "reticent", "--help"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in ("demo", "reproduce", "solve", "train", "evaluate"))


@pytest.mark.parametrize(("penalty", "value"), [("50", 7.342248), ("inf", 7.342248)])
def test_solve_prints_one_json_object(run, penalty, value):
    words = ["--method", "lattice", "--confidence", "0.8", "--error-penalty", "50", "--time-cost", "1"]
    code, out, _ = run("solve", "p1.json", *words, "--violation-cost", penalty, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["lower"] == pytest.approx(value, abs=1e-6)
    assert record["upper"] == pytest.approx(value, abs=1e-6)
    assert record["nodes"] > 1
    assert record["horizon"] > 1
    assert record["first"] == "a0"


def test_solve_the_information_problem_for_a_horizon(run):
    code, out, _ = run("solve", "p1.json", "--information", 0.3, "--horizon", 4, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["horizon"] == 4
    assert record["lower"] <= record["upper"]


def test_solve_says_it_in_words(run):
    code, out, _ = run("solve", "p1.json", "--confidence", 1.01)
    assert code == 0
    assert "between 7.189754 and 7.189754; first action: a0" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("solve", "p1.json"), "Give one bound"),
        (("solve", "p1.json", "--confidence", 0.8, "--information", 1), "Give one bound"),
        (("solve", "p1.json", "--confidence", 0.5), "not above 0.5"),
        (("solve", "none.json", "--confidence", 0.8), "Cannot read the problem file 'none.json'"),
        (("solve", "synthetic", "--confidence", 0.8), "too many for the lattice"),
        (("solve", "p1.json", "--information", 0.3), "needs --horizon"),
        (("solve", "p1.json", "--confidence", 0.8, "--horizon", 0), "at least 1"),
        (("solve", "p1.json", "--confidence", 0.8, "--time-cost", -1), "time cost must be a positive number"),
        (("train", "p1.json", "--confidence", 0.8, "-o", "no/where.safetensors"), "There is no folder 'no'"),
        (("train", "p1.json", "--confidence", 0.8, "-o", "."), "is a folder"),
        (("train", "p1.json", "--confidence", 0.8, "--seed", 2**64, "-o", "x"), "--seed must lie"),
        (("solve", "p1.json", "--confidence", 0.8, "--max-nodes", 0), "--max-nodes must be at least 1"),
        (("train", "p1.json", "--confidence", 0.8, "--steps", 0, "-o", "x"), "--steps must be at least 1"),
        (("train", "p1.json", "--confidence", 0.8, "--rounds", 0, "-o", "x"), "--rounds must be at least 1"),
        (("train", "p1.json", "--confidence", 0.8, "--tolerance", -1, "-o", "x"), "--tolerance must be zero"),
        (("train", "p1.json", "--information", 0.8, "--enforce", "coarsen", "-o", "x"), "enforced by one of"),
        (("train", "p1.json", "--confidence", 0.8, "--kernels", "value", "-o", "x"), "--kernels value needs"),
        (("evaluate", "p1.json", "--traces", "no/where.parquet"), "There is no folder 'no'"),
        (("evaluate", "p1.json", "--episodes", 1), "At least two episodes"),
        (("evaluate", "p1.json"), "damaged or not a policy file"),
        (("evaluate", "none.safetensors"), "There is no policy file"),
        (("reproduce", "synthetic", "--seeds", 0), "too few"),
    ],
)
def test_bad_input_ends_with_one_sentence_and_code_two(run, words, sentence):
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert sentence in err
    assert "Traceback" not in err
    assert err.startswith("reticent: ")


def test_unknown_words_end_with_code_two(run):
    assert run("solve", "p1.json", "--colour", "red")[0] == 2
    assert run("dance")[0] == 2


@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_train_then_evaluate_from_the_file_alone(run, tmp_path, recipe):
    words = ("--information", 0.3, "--steps", 20_000, "--recipe", recipe, "-o", "p.safetensors", "--json")
    code, out, _ = run("train", "p1.json", *words)
    assert code == 0
    # The nearest number of whole updates: 4096 steps each by default, 1024 with the paper's recipe.
    assert json.loads(out)["done"] == 20_480
    assert json.loads(out)["unit"] == "steps"
    assert json.loads(out)["per_second"] > 0
    assert not list(tmp_path.glob("*.partial"))
    (tmp_path / "p1.json").unlink()
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["episodes"] == 2000
    assert record["violation_rate"]["value"] == 0.0
    assert record["cost"]["low"] < record["cost"]["value"] < record["cost"]["high"]
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000)
    assert code == 0
    assert "violation rate" in out


def test_the_guarantee_from_training_to_traces(run, tmp_path):
    words = ("--confidence", 0.65, "--enforce", "coarsen", "--method", "value-iteration", "--rounds", 3)
    code, out, _ = run("train", "p1.json", *words, "-o", "p.safetensors", "--json")
    assert code == 0
    assert (json.loads(out)["done"], json.loads(out)["unit"]) == (3, "rounds")
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--traces", "t.parquet", "--json")
    assert code == 0
    kept = json.loads(out)
    assert kept["violation_rate"]["value"] == 0
    table = pl.read_parquet(tmp_path / "t.parquet")
    assert table["episode"].n_unique() == 2000
    # The same policy in another process: readings are sent as they are, and crossing the bound is paid for.
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--enforce", "penalty", "--json")
    assert code == 0
    assert json.loads(out)["cost"]["value"] != kept["cost"]["value"]
