"""The scripts in examples/ run as they are, with less of everything."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
LESS = {"rounds=50": "rounds=2, lanes=64, groups=1, width=16", "steps=200_000": "steps=5_000", "20_000": "2_000"}
LESS |= {"episodes=2_000, quick": "episodes=400, quick"}
SHOWN = {
    "own_model_and_bound": r"bound crossed in 0 \[0, 0\.00\d+\] of episodes: never crossed",
    "own_policy": r"(?s)Cost .*No policy costs less than 7\.34225.*names the secret correctly",
    "data_to_gateway": r"Calibration error .*0\.\d+\n(.*: 0\.[56]\d < 0\.7\n)*",
}


def test_there_are_three_of_less_than_25_lines():
    assert {script.stem for script in SCRIPTS} == set(SHOWN)
    assert all(len(script.read_text().splitlines()) < 25 for script in SCRIPTS)


@pytest.mark.parametrize(
    "name", ["own_model_and_bound", "data_to_gateway", pytest.param("own_policy", marks=pytest.mark.slow)]
)
def test_each_runs_and_shows_something(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = (EXAMPLES / f"{name}.py").read_text()
    for much, less in LESS.items():
        code = code.replace(much, less)
    (tmp_path / "shorter.py").write_text(code)
    runpy.run_path(str(tmp_path / "shorter.py"))
    assert re.search(SHOWN[name], capsys.readouterr().out)
