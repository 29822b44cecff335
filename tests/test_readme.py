"""The example in the README and the tutorial run as printed, on a CSV such as they describe."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LESS = {
    "steps=200_000": "steps=5_000",
    "episodes=20_000": "episodes=2_000",
    'audit(page="audit")': "audit(400, quick=True)",
}
LESS |= {'audit(quick=True, page="audit")': "audit(400, quick=True)"}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Four people, one minute of each pair of labels at five samples a second; both labels move both sensors."""
    monkeypatch.chdir(tmp_path)
    rng, count = np.random.default_rng(0), 300
    who, walks, smokes = (np.repeat(labels, count) for labels in np.indices((4, 2, 2)).reshape(3, -1))
    table = pl.DataFrame(
        {
            "person": who,
            "time": np.arange(len(who)) / 5,
            "arm": rng.normal(walks + 2 * smokes, 2),
            "leg": rng.normal(2 * walks + 0.5 * smokes, 2),
            "activity": np.array(["sitting", "walking"])[walks],
            "smokes": np.array(["no", "yes"])[smokes],
        }
    )
    table.write_csv("mine.csv")


def run(text, name):
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    shorter = code
    for much, less in LESS.items():
        shorter = shorter.replace(much, less)
    assert shorter != code
    names = {}
    exec(compile(shorter, name, "exec"), names)
    return code, names


@pytest.mark.usefixtures("mine")
def test_the_example_runs(capsys):
    code, names = run(README, "README.md")
    assert len(code.strip().splitlines()) <= 12
    assert names["found"].violation_rate.value == 0
    assert names["found"].accuracy_useful.value > 0.6
    assert capsys.readouterr().out.strip().endswith("]")
    assert Path("policy.safetensors").exists()


@pytest.mark.parametrize("page", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_and_pictures_exist(page):
    text = (ROOT / page).read_text()
    targets = [target for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", text) if target]
    assert targets or page != "README.md"
    missing = [target for target in targets if not ((ROOT / page).parent / target).exists()]
    assert missing == []


@pytest.mark.slow
def test_the_tutorial_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, names = run((ROOT / "docs" / "tutorial.md").read_text(), "docs/tutorial.md")
    told = capsys.readouterr().out
    assert "never crossed" in told
    assert names["better"].violation_rate.value == 0
    assert names["better"].cost.value <= 1.02 * names["simple"].evaluate(2_000).cost.value
    assert names["gateway"].confidence(names["known"]) < 0.6
    assert "at most 0.5" in told
