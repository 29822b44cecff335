"""The example in the README runs as printed."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_example_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    assert len(example[1].strip().splitlines()) <= 12
    # The same lines with less training: the numbers are the README's, the code is tested.
    shorter = example[1].replace("steps=1_000_000", "steps=20_000").replace("episodes=100_000", "episodes=2_000")
    assert shorter != example[1]
    exec(compile(shorter, "README.md", "exec"), {})
    assert "7.3422" in capsys.readouterr().out
    assert (tmp_path / "policy.safetensors").exists()


def test_links_and_pictures_exist():
    root = Path(__file__).parents[1]
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert targets
    assert all((root / target).exists() for target in targets)
