"""Scripts and notebooks in examples/ run as they are, with less of everything."""

import json
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
LESS = {"rounds=50": "rounds=2, lanes=64, groups=1, width=16", "steps=200_000": "steps=5_000", "20_000": "2_000"}
LESS |= {"episodes=2_000, quick": "episodes=400, quick", "8_000": "2_000", "800": "300"}
LESS |= {"rounds=20": "rounds=2, lanes=64, groups=1, width=16"}
SHOWN = {
    "own_model_and_bound.py": r"bound crossed in 0 \[0, 0\.00\d+\] of episodes: never crossed",
    "own_policy.py": r"(?s)Cost .*No policy costs less than 7\.34225.*names the secret correctly",
    "data_to_gateway.py": r"Calibration error .*0\.\d+\n(.*: 0\.[56]\d < 0\.7\n)*",
    "audit_foreign_traces.py": r"(?s)names the secret correctly in .*boosted trees +U 0\.\d+",
    "gateway_client.py": r"(?s)ada, step 0: (wrist|phone) .*eve, step 1: .*",
    "belief.ipynb": r"(?s)second.*elevator.*moving.*as it is.*merged: still.*merged: moving",
    "trade_off.ipynb": r"(?s)bound.*cost.*crossed.*0\.52.*Cost at \.6: \d+\.\d+ by lookahead",
}
QUICK = ("own_model_and_bound.py", "data_to_gateway.py", "gateway_client.py", "belief.ipynb")


def code_of(name):
    """The program of a script, or of a notebook: its cells in order."""
    text = (EXAMPLES / name).read_text()
    if name.endswith(".py"):
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    # What was computed is not stored: it would be of another version.
    assert all(cell["outputs"] == [] for cell in cells)
    return "\n".join("".join(cell["source"]) for cell in cells)


def test_there_are_five_scripts_and_two_notebooks_of_less_than_60_lines():
    assert {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")} == set(SHOWN)
    assert all(len(code_of(name).splitlines()) < 60 for name in SHOWN)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SHOWN]
)
def test_each_runs_and_shows_something(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    code = code_of(name)
    for much, less in LESS.items():
        code = code.replace(much, less)
    (tmp_path / "shorter.py").write_text(code)
    runpy.run_path(str(tmp_path / "shorter.py"))
    assert re.search(SHOWN[name], capfd.readouterr().out)
