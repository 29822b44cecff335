"""The command line as a user meets it: in-process for speed, with one real subprocess."""

import html
import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reticent import __version__
from reticent.audit.naive_bayes import NaiveBayes
from reticent.cli import COMMANDS
from reticent.gateway.sessions import ASSUMPTION
from reticent.problem.model import Model, read_problem
from reticent.problem.synthetic import two_binary_sensors
from reticent.solve.answer import answer
from tests.commands import commands

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; returns exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    (tmp_path / "p1.json").write_text(json.dumps(two_binary_sensors().to_json()))
    return commands(monkeypatch, capsys)


def test_help_lists_every_command():
    done = subprocess.run([sys.executable, "-m", "reticent", "--help"], capture_output=True, text=True, check=True)
    assert len(COMMANDS) >= 15
    assert all(name in done.stdout for name in COMMANDS)


def test_the_version_is_printed(run):
    assert run("--version") == (0, f"reticent {__version__}\n", "")


def test_pages_of_the_documentation_are_printed(run):
    code, out, _ = run("docs", "recordings")
    assert code == 0
    assert out == (ROOT / "docs" / "recordings.md").read_text()
    code, out, _ = run("docs", "--json")
    assert set(json.loads(out)) == {path.stem for path in (ROOT / "docs").glob("*.md")}


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
    code, out, _ = run("solve", "p1.json", "--unbounded")
    assert code == 0
    assert "between 7.189754 and 7.189754; first action: a0" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("solve", "p1.json"), "Give one bound"),
        (("solve", "p1.json", "--confidence", 0.8, "--information", 1), "Give one bound"),
        (("solve", "p1.json", "--confidence", 0.5), "not above 0.5"),
        (
            ("solve", "p1.json", "--confidence", 80),
            "at most 1, but is 80. Write 80 % as 0.8; no bound at all is --unbounded",
        ),
        (("train", "p1.json", "--confidence", 1.01, "-o", "x"), "at most 1, but is 1.01."),
        (("solve", "p1.json", "--confidence", 0.8, "--unbounded"), "Give one bound"),
        (("docs", "nothing"), "There is no page 'nothing'; there are answer, architecture, audit, "),
        (("solve", "none.json", "--confidence", 0.8), "Cannot read the problem file 'none.json'"),
        (("solve", "synthetic", "--confidence", 0.8), "too many for the lattice"),
        (("solve", "p1.json", "--information", 0.3), "needs --horizon"),
        (("solve", "p1.json", "--confidence", 0.8, "--horizon", 0), "at least 1"),
        (("solve", "p1.json", "--confidence", 0.8, "--time-cost", -1), "time cost must be a positive number"),
        (("train", "p1.json", "--confidence", 0.8, "-o", "no/where.safetensors"), "There is no folder 'no'"),
        (("train", "p1.json", "--confidence", 0.8, "-o", "."), "is a folder"),
        (("train", "p1.json", "--confidence", 0.8, "-o", "p1.json"), "the problem file itself"),
        (("train", "p1.json", "--confidence", 0.8, "--seed", 2**64, "-o", "x"), "--seed must lie"),
        (("solve", "p1.json", "--confidence", 0.8, "--max-nodes", 0), "--max-nodes must be at least 1"),
        (("train", "p1.json", "--confidence", 0.8, "--steps", 0, "-o", "x"), "--steps must be at least 1"),
        (("train", "p1.json", "--confidence", 0.8, "--rounds", 0, "-o", "x"), "--rounds must be at least 1"),
        (("train", "p1.json", "--confidence", 0.8, "--tolerance", -1, "-o", "x"), "--tolerance must be zero"),
        (("train", "p1.json", "--information", 0.8, "--enforce", "coarsen", "-o", "x"), "does not limit the posterior"),
        (("train", "p1.json", "--confidence", 0.8, "--kernels", "value", "-o", "x"), "--kernels value needs"),
        (
            ("train", "p1.json", "--confidence", 0.8, "--enforce", "answer", "-o", "x"),
            "made by the method 'value-iteration'",
        ),
        (("evaluate", "p1.json", "--traces", "no/where.parquet"), "There is no folder 'no'"),
        (("evaluate", "p1.json", "--episodes", 1), "at least two episodes"),
        (("evaluate", "p1.json"), "damaged or not a policy file"),
        (("evaluate", "none.safetensors"), "There is no policy file"),
        (("reproduce", "synthetic", "--seeds", 0), "too few"),
        (("reproduce", "synthetic", "--look-back", 2), "reads no recordings"),
        (("reproduce", "dsa", "--data", "nowhere"), "There is no data folder 'nowhere'. Get daily"),
        (("reproduce", "dsa"), "The folder with the recordings is not given"),
        (("data", "describe", "table", "--data", "."), "needs --map"),
        (("data", "describe", "motionsense", "--data", "."), "None of ['A_DeviceMotion_data.zip'"),
        (("fit", "dsa", "--data", ".", "--codes", 1, "-o", "x.json"), "--codes must lie"),
        (("reproduce", "dsa", "--data", ".", "--codes", 1), "--codes must lie"),
        (("reproduce", "synthetic", "--codes", 10), "reads no recordings"),
        (("fit", "dsa", "--data", ".", "-o", "no/where.json"), "There is no folder 'no'"),
        (("audit",), "Give either a policy file or --traces"),
        (("audit", "p.safetensors", "--traces", "t.parquet"), "Give either a policy file or --traces"),
        (("audit", "--traces", "t.parquet", "--data", "."), "--data and --map are for policies"),
        (("audit", "p.safetensors", "--confidence", 0.9), "--problem and --confidence are for traces"),
        (("audit", "--traces", "t.parquet", "--confidence", 1.5), "--confidence must lie between 0 and 1"),
        (("audit", "p.safetensors", "--problem", "p1.json"), "--problem and --confidence are for traces"),
        (("audit", "p.safetensors", "--episodes", 10), "At least 200 episodes"),
        (("audit", "none.safetensors"), "There is no policy file"),
        (("audit", "--traces", "p1.json"), "Cannot read 'p1.json' as Parquet"),
        (("export", "p1.json", "-o", "x.txt"), "must end in .pomdp or .onnx"),
        (("export", "p1.json", "-o", "x.onnx"), "'p1.json' is damaged or not a policy file"),
        (("export", "p1.json", "-o", "no/where.pomdp"), "There is no folder 'no'"),
        (("export", "p1.json", "-o", "x.pomdp", "--discount", 1.5), "discount must lie above 0"),
        (("export", "p1.json", "-o", "x.pomdp", "--discount", 0.9), "might never stop"),
        (("export", "none.json", "-o", "x.pomdp"), "Cannot read the problem file 'none.json'"),
    ],
)
def test_bad_input_ends_with_one_sentence_and_code_two(run, words, sentence):
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert sentence in err
    assert "Traceback" not in err
    # Progress may come before it.
    assert err.splitlines()[-1].startswith("reticent: ")


def test_unknown_words_end_with_code_two(run):
    assert run("solve", "p1.json", "--colour", "red")[0] == 2
    assert run("dance")[0] == 2


@pytest.mark.parametrize("method", ["ppo", "a2c"])
def test_train_then_evaluate_from_the_file_alone(run, tmp_path, method):
    words = ("--information", 0.3, "--steps", 20_000, "--method", method, "-o", "p.safetensors", "--json")
    code, out, _ = run("train", "p1.json", *words)
    assert code == 0
    # Rounded up to whole updates: 4096 steps each by ppo, 1024 by a2c.
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
    # Of every session less is left to say, which a gateway's operator learns beforehand.
    assert "Session after session on a gateway: " in out
    assert "(estimate, 40 simulated subjects" in out
    assert ASSUMPTION in out


def test_the_guarantee_from_training_to_traces(run, tmp_path):
    words = ("--confidence", 0.65, "--enforce", "coarsen", "--method", "value-iteration", "--rounds", 3)
    code, out, _ = run("train", "p1.json", *words, "-o", "p.safetensors", "--json")
    assert code == 0
    assert (json.loads(out)["done"], json.loads(out)["unit"]) == (3, "rounds")
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--traces", "t.parquet", "--json")
    assert code == 0
    kept = json.loads(out)
    assert kept["violation_rate"]["value"] == 0
    served = kept["gateway"]
    assert served["assumption"] == ASSUMPTION
    assert 0 <= served["over"]["low"] <= served["over"]["value"] <= served["over"]["high"] <= 1
    table = pl.read_parquet(tmp_path / "t.parquet")
    assert table["episode"].n_unique() == 2000
    # The same policy in another process: readings are sent as they are, and crossing the bound is paid for.
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--enforce", "penalty", "--json")
    assert code == 0
    assert json.loads(out)["cost"]["value"] != kept["cost"]["value"]
    assert json.loads(out)["gateway"] is None


@pytest.mark.slow
def test_answers_instead_of_readings(run, monkeypatch):
    monkeypatch.setattr(answer, "__defaults__", (0, 2**15))
    words = ("--confidence", 0.7, "--enforce", "answer", "--method", "value-iteration", "--rounds", 10)
    code, out, _ = run("train", "p1.json", *words, "-o", "p.safetensors", "--json")
    assert code == 0
    assert (json.loads(out)["done"], json.loads(out)["unit"]) == (10, "rounds")
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--json")
    assert code == 0
    assert json.loads(out)["violation_rate"]["value"] == 0
    assert json.loads(out)["cost"]["value"] < 25
    for extra, sentence in ((("--traces", "t.parquet"), "no traces"), (("--enforce", "penalty"), "in no other way")):
        code, out, err = run("evaluate", "p.safetensors", *extra)
        assert (code, out) == (2, "")
        assert sentence in err
    # What the provider sees of it can be audited like anything else.
    for place in ("full_panel", "quick_panel"):
        monkeypatch.setattr(f"reticent.audit.panel.{place}", lambda *_: [NaiveBayes])
    code, out, _ = run("audit", "p.safetensors", "--episodes", 4000, "--json")
    assert code == 0
    found = json.loads(out)
    assert "the bound holds" in [check["name"] for check in found["checks"] if check["passed"]]
    exact = next(each for each in found["attacks"] if each["fitted_on"] == "model")
    assert exact["over"]["value"] == 0
    assert exact["useful"]["balanced"]["low"] > 0.5
    code, _, err = run("audit", "p.safetensors", "--data", ".")
    assert code == 2
    assert "nothing to replay" in err


def test_export_for_other_solvers(run, tmp_path):
    words = ("--discount", 0.99, "--time-cost", 0.5, "--error-penalty", 20)
    code, out, _ = run("export", "p1.json", "-o", "p1.pomdp", *words)
    assert (code, out) == (0, "Saved p1.pomdp.\n")
    lines = (tmp_path / "p1.pomdp").read_text().splitlines()
    assert "discount: 0.99" in lines
    assert "R: read_a0 : pair_s0_u0 : * : * -0.5" in lines
    assert "R: declare_u0 : pair_s0_u1 : * : * -20.0" in lines
    (tmp_path / "taken.pomdp").mkdir()
    code, _, err = run("export", "synthetic", "-o", "taken.pomdp")
    assert code == 2
    assert "Cannot write 'taken.pomdp'" in err
    assert json.loads(run("export", "synthetic", "-o", "s.pomdp", "--json")[1]) == {"file": "s.pomdp"}


def test_solve_the_expected_information_problem(run):
    words = ("solve", "p1.json", "--expected-information", 0.05)
    code, out, _ = run(*words, "--horizon", 8, "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["kind"], record["horizon"]) == ("exact", 8)
    assert record["cost"] == pytest.approx(8.209259, abs=1e-6)
    assert record["multiplier"] == pytest.approx(90.763260, abs=1e-6)
    assert record["leakage_bits"] == pytest.approx(0.05)
    assert [share["first"] for share in record["mixture"]] == ["a0", "a0"]
    assert sum(share["weight"] * share["cost"] for share in record["mixture"]) == pytest.approx(record["cost"])
    code, out, _ = run(*words, "--horizon", 8)
    assert code == 0
    assert "The optimal cost is 8.209259; one more bit would save 90.76" in out
    assert "a draw between two policies" in out
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "needs --horizon" in err


def test_train_for_expected_information_and_evaluate(run):
    words = ("--expected-information", 0.02, "--steps", 20_000, "-o", "p.safetensors", "--json")
    assert run("train", "p1.json", *words)[0] == 0
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["violation_rate"]["value"] == 0.0
    # The learned price of a bit is in the file, so what was said is charged.
    assert record["cost"]["value"] > record["cost_without_penalty"]["value"]


def test_certify_a_small_problem_exactly(run):
    code, out, _ = run("certify", "p1.json", "--confidence", 0.8, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["kind"] == "exact"
    assert record["lower"]["value"] == pytest.approx(7.342248, abs=1e-6)
    assert record["gap"] == pytest.approx(0, abs=1e-6)


def test_certify_a_policy(run):
    words = ("--confidence", 0.7, "--method", "value-iteration", "--rounds", 20)
    assert run("train", "p1.json", *words, "-o", "p.safetensors")[0] == 0
    code, out, _ = run("certify", "p.safetensors", "--episodes", 5000, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["lower"]["value"] == pytest.approx(7.740456, abs=1e-6)
    # Beyond twice the interval's reach, four standard errors, a policy would be better than the best.
    upper = record["upper"]
    assert upper["value"] + 2 * (upper["high"] - upper["value"]) >= 7.740456
    code, out, _ = run("certify", "p.safetensors", "--episodes", 5000)
    assert code == 0
    assert "No policy costs less than 7.74" in out
    assert re.search(r"this one costs .*: 1\.\d\d\d times the optimum\.", out)
    code, _, err = run("certify", "p.safetensors", "--confidence", 0.7)
    assert code == 2
    assert "leave those options out" in err


def write_recordings(folder):
    """Four people, two sensors, in one CSV; and its map."""
    rng = np.random.default_rng(0)
    rows = ["who,t,sits,smokes,x,y"]
    for person, posture, smokes in product(range(4), (0, 1), (0, 1)):
        for t in range(60):
            values = rng.normal(posture), rng.normal(smokes)
            rows.append(f"p{person},{t + 1000 * (2 * posture + smokes)},{posture},{smokes},{values[0]},{values[1]}")
    (folder / "mine.csv").write_text("\n".join(rows) + "\n")
    (folder / "mine.toml").write_text(
        'files = "mine.csv"\nperson = "who"\ntime = "t"\n[sensors]\narm = ["x"]\nleg = ["y"]\n'
        '[useful]\ncolumn = "sits"\n[secret]\ncolumn = "smokes"\n'
    )


def test_recordings_of_ones_own_from_table_to_policy(run, tmp_path):
    write_recordings(tmp_path)
    mine = ("table", "--data", ".", "--map", "mine.toml")
    code, out, _ = run("data", "describe", *mine, "--json")
    assert code == 0
    assert json.loads(out)["people"] == ["p0", "p1", "p2", "p3"]
    code, out, _ = run("data", "describe", *mine)
    assert "4 people, 960 samples in 16 streams, 1 per second" in out
    words = ("--window", 0, "--codes", 4, "--leave-out", "p3", "-o", "fitted.json")
    code, out, _ = run("fit", *mine, *words, "--json")
    assert code == 0
    record = json.loads(out)
    assert record["people"] == ["p0", "p1", "p2"]
    assert record["loss"] <= record["plain_loss"]
    code, _, err = run("fit", *mine, "--leave-out", "nobody", "-o", "fitted.json")
    assert code == 2
    assert "--leave-out names ['nobody']" in err


@pytest.mark.slow
def test_a_panel_from_recordings_to_a_claim(run, tmp_path):
    write_recordings(tmp_path)
    mine = ("table", "--data", ".", "--map", "mine.toml", "--window", 0, "--codes", 3, "--leave-out", "p2", "p3")
    code, out, _ = run("fit", *mine, "--panel", "people", "--sharpen", 2, "-o", "m.json", "--json")
    assert code == 0
    assert json.loads(out)["panel"] == 2
    code, out, err = run("train", "m.json", "--confidence", 0.7, "-o", "p.safetensors")
    assert code == 2
    assert "is not kept for a panel of providers" in err
    words = ("--enforce", "coarsen", "--steps", 4000, "--prior-range", "0=0.45..0.55", "-o", "p.safetensors")
    assert run("train", "m.json", "--confidence", 0.7, *words)[0] == 0
    code, out, _ = run("evaluate", "p.safetensors", "--episodes", 2000, "--json")
    found = json.loads(out)
    # Each of three models with two extreme priors, and the model itself.
    assert found["promised"].endswith("for a provider with any of 7 models, and with every mixture of them")
    assert found["violation_rate"]["value"] == 0
    few = ("--data", ".", "--map", "mine.toml", "--confidence", 0.95, "--bounds", 1, "--rounds", 2, "--episodes", 400)
    code, _, err = run("calibrate", "m.json", *few, "-o", "c.safetensors")
    assert code == 2
    assert "at least 22 are needed whom the model was not fitted to, and there are 2" in err
    code, out, err = run("calibrate", "m.json", *few, "--share", 0.3, "-o", "c.safetensors", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["claim"]["people"] == 2
    assert found["tried"][0]["accepted"]
    code, out, _ = run("audit", "c.safetensors", *few[:4], "--episodes", 400, "--quick")
    assert "of at least 30% of people like these right in at most 95% of the cases (0 of 2 people were over" in out


def write_home(folder):
    """Three people for eight minutes each: ISO time stamps, a binary sensor, and labels that change meanwhile."""
    rng, start = np.random.default_rng(0), datetime(2026, 1, 31, tzinfo=UTC)
    rows = ["who,at,cooks,alone,door,watts"]
    for person, t in product("abc", range(480)):
        # The useful value changes every 40 s, the secret every two minutes; the first person is never alone.
        cooks, alone = t // 40 % 2, t // 120 % 2 * (person != "a")
        at = (start + timedelta(seconds=t)).isoformat()
        rows.append(f"{person},{at},{cooks},{alone},{int(rng.random() < 0.2 + 0.6 * alone)},{rng.normal(cooks):.3f}")
    (folder / "home.csv").write_text("\n".join(rows) + "\n")
    (folder / "home.toml").write_text(
        'files = "home.csv"\nperson = "who"\ntime = "at"\n[sensors]\ndoor = ["door"]\nmeter = ["watts"]\n'
        '[useful]\ncolumn = "cooks"\nlabels = { 0 = "idle", 1 = "cooks" }\n'
        '[secret]\ncolumn = "alone"\nlabels = { 0 = "company", 1 = "alone" }\n'
    )


def test_labels_that_change_and_sensors_with_few_values_from_table_to_gateway(run, tmp_path, monkeypatch):
    write_home(tmp_path)
    home = ("table", "--data", ".", "--map", "home.toml")
    code, out, _ = run("data", "describe", *home)
    assert code == 0
    assert "3 people, 1,440 samples" in out
    # Of 3 x 479 s the secret changes 2 x 3 times, the useful value 3 x 11 times.
    # Of 959 s in company 4 stays ended, of 478 s alone 2; the useful value ends its stays 18 and 15 times.
    assert "secret: company 4 min (4 ends in 16 min); alone 3.98 min (2 ends in 7.97 min)." in " ".join(out.split())
    changes = "the secret changes every 3.99 min and the useful value changes every 43.5 s"
    assert json.loads(run("data", "describe", *home, "--json")[1])["changes_per_second"]["secret"] == 6 / 1437
    code, out, _ = run("fit", *home, "--codes", 6, "-o", "moving.json")
    assert code == 0
    assert "Transition per step of 1 s, every person counted alike" in out
    assert "Next: `reticent docs moving`." in out
    moving = read_problem("moving.json")
    assert moving.fitted is not None
    assert (moving.moves, moving.fitted["step"], "changes_per_second" in moving.fitted) == (True, 1.0, False)
    code, _, err = run("fit", *home, "--static", "--step", 2, "-o", "none.json")
    assert "with --static it stays" in err
    code, out, _ = run("fit", *home, "--static", "--window", 0, "--codes", 6, "-o", "home.json")
    assert code == 0
    assert "Sensors with fewer different readings than 6 have one code for each: door 2." in out
    # By hand: (1/2 + 2 x 1/3) / 3, (1/2 + 2 x 1/6) / 3, (2 x 1/6) / 3 and (2 x 1/3) / 3.
    prior = "company and idle 0.389, company and cooks 0.278, alone and idle 0.111, alone and cooks 0.222"
    assert f"Prior (as recorded, every person alike): {prior}." in out
    assert changes in out
    assert "L must lie above 0.667" in out
    model = read_problem("home.json")
    assert model.fitted is not None
    assert (model.fitted["prior"], model.fitted["changes_per_second"]["secret"]) == ("recorded", 6 / 1437)
    code, out, _ = run("fit", *home, "--static", "--codes", 6, "--prior", "uniform", "-o", "even.json", "--json")
    assert json.loads(out)["prior"]["alone"] == {"idle": 0.25, "cooks": 0.25}
    code, _, err = run("fit", *home, "--window", 0.5, "-o", "none.json")
    assert "Take --window 2 or more" in err
    code, _, err = run("train", "home.json", "--information", 0.3, "--steps", 4000, "-o", "home.safetensors")
    assert code == 0
    assert "reticent: A fitted model assumes that secret and useful value stay the same during an episode." in err
    assert changes in err
    code, out, err = run(
        "--quiet", "train", "home.json", "--information", 0.3, "--steps", 4000, "-o", "home.safetensors"
    )
    assert (code, err) == (0, "")
    assert "Saved home.safetensors: 4,096 steps" in out
    assert run("evaluate", "none.safetensors", "--quiet")[2].startswith("reticent: There is no policy file")
    code, _, err = run("audit", "home.safetensors", "--data", "nowhere", "--map", "home.toml")
    assert code == 2
    assert changes in err
    monkeypatch.setattr("reticent.cli.serve.Serve._serve", lambda *_: None)
    assert changes in run("serve", "home.safetensors")[2]


def test_an_audit_of_what_another_system_released(run, monkeypatch):
    monkeypatch.setattr("reticent.audit.panel.full_panel", lambda *_: [NaiveBayes])
    monkeypatch.setattr("reticent.audit.panel.quick_panel", lambda *_: [NaiveBayes])
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=1000)
    columns = {"episode": np.arange(1000), "step": np.zeros(1000, int), "sensor": ["heart"] * 1000}
    columns |= {"secret": secret, "useful": rng.integers(2, size=1000)}
    pl.DataFrame({**columns, "symbol": secret}).write_parquet("open.parquet")
    code, out, _ = run("audit", "--traces", "open.parquet", "--out", "found")
    assert code == 0
    # All of 500 judged episodes: of others up to a fiftieth may be told wrong, to one of six attackers.
    assert out.startswith("It leaks: the strongest of 6 attackers, naive Bayes (the policy's own traces), ")
    assert "names the secret correctly in 100.0 % [98.3, 100.0] of episodes, every secret counted alike" in out
    assert "guessing gives 50.0 %." in out
    assert "Observer of stopping time only: " in out
    assert "There is no column person" in out
    assert len(list(Path("found/figures").glob("*.png"))) == 6
    # Drawn once; the rest is about what is said.
    monkeypatch.setattr("reticent.report.audit.save_figures", lambda *_: None)
    pl.DataFrame({**columns, "symbol": rng.integers(2, size=1000)}).write_parquet("closed.parquet")
    code, out, _ = run("audit", "--traces", "closed.parquet", "--out", "found", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["verdict"][0].startswith("No leak found, up to ")
    assert record["passed"] is None
    assert record["strongest"].startswith("naive Bayes (the policy's own traces")
    page = html.unescape(Path(record["report"]).read_text())
    assert page.count("<figure>") == 6
    assert record["verdict"][0] in page
    # With a model that the traces do not follow, exact Bayes is not honest, and the command says so by its exit code.
    problem = Model(
        np.full((2, 2), 0.25), np.tile([[0.9, 0.1], [0.1, 0.9]], (1, 2, 1, 1)).swapaxes(1, 2), ("0", "1"), ("0", "1"),
        ("heart",), ("0", "1"),
    )  # fmt: skip
    Path("wrong.json").write_text(json.dumps(problem.to_json()))
    code, out, _ = run("audit", "--traces", "closed.parquet", "--problem", "wrong.json", "--out", "found")
    assert code == 3
    assert "FAIL: exact Bayes is calibrated. Exact Bayes is right in" in out
    code, out, _ = run("audit", "--traces", "open.parquet", "--confidence", 0.9, "--out", "found")
    assert code == 3
    assert "The belief of naive Bayes (the policy's own traces) reaches the bound 0.9 in 100.0 %" in out


@pytest.mark.slow
def test_an_audit_of_a_policy_and_on_recordings(run, monkeypatch, tmp_path):
    monkeypatch.setattr("reticent.audit.panel.full_panel", lambda *_: [NaiveBayes])
    monkeypatch.setattr("reticent.audit.panel.quick_panel", lambda *_: [NaiveBayes])
    words = ("--confidence", 0.8, "--enforce", "withhold", "--steps", 4000, "-o", "p.safetensors")
    assert run("train", "p1.json", *words)[0] == 0
    code, out, _ = run("audit", "p.safetensors", "--episodes", 2000, "--json")
    record = json.loads(out)
    assert code == 0
    assert {check["name"] for check in record["checks"] if check["passed"]} == {
        "exact Bayes is calibrated",
        "no attacker beats exact Bayes",
        "the bound holds",
        "accuracy stays within the bound",
    }
    assert len(record["forgotten"]) == len(record["carried"]) == 10
    assert record["carried"][-1]["violation_rate"]["value"] == 0
    assert Path(record["report"]).read_text().count("<figure>") == 11
    write_recordings(tmp_path)
    mine = ("table", "--data", ".", "--map", "mine.toml")
    assert run("fit", *mine, "--window", 0, "--codes", 4, "--leave-out", "p2", "p3", "-o", "fitted.json")[0] == 0
    words = ("--confidence", 0.7, "--enforce", "withhold", "--steps", 4000, "-o", "fitted.safetensors")
    assert run("train", "fitted.json", *words)[0] == 0
    more = ("--data", ".", "--map", "mine.toml", "--episodes", 1000)
    code, out, err = run("audit", "fitted.safetensors", *more, "--json")
    assert code == 0, err
    record = json.loads(out)
    assert record["people"] == 2
    assert [check["name"] for check in record["checks"]] == ["the bound holds"]
    assert "Only the 2 people whom the model was not fitted to." in record["notes"]
    assert [each["name"] for each in record["by_person"]["people"]] == ["p2", "p3"]
    assert all(0 <= each["knowing"]["value"] <= 1 for each in record["by_person"]["people"])
    assert any(sentence.startswith("Over people: ") for sentence in record["verdict"])
    assert [part.partition(":")[0] for part in record["promise"]] == ["By construction", "Statistically", "Not at all"]
    assert "Person by person" in Path(record["report"]).read_text()
    code, _, err = run("audit", "p.safetensors", *more)
    assert code == 2
    assert "needs a model that `reticent fit` has made" in err
