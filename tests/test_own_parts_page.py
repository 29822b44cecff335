"""The code of docs/own-parts.md runs as printed, with less of everything."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "own-parts.md").read_text()
LESS = {"rounds=20": "rounds=2, lanes=64, groups=1, width=16", "10_000": "2_000", "episodes=2_000, quick": "400, quick"}


def shorter(blocks: list[str]) -> str:
    code = "\n".join(blocks)
    for much, less in LESS.items():
        assert much in code
        code = code.replace(much, less)
    return code


@pytest.mark.slow
def test_the_page_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(shorter(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)), "docs/own-parts.md", "exec"), names)
    told = capsys.readouterr().out
    assert names["found"].violation_rate.value == 0
    assert "No policy costs less than" in told
    assert "names the secret correctly" in told
    assert "but not a FirstAllowed" in told
    assert not list(tmp_path.iterdir())
