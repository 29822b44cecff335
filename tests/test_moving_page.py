"""The code of docs/moving.md runs as printed, with fewer days."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "moving.md").read_text()


def test_the_page_runs(capsys):
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "days=20" in code
    names = {}
    exec(compile(code.replace("days=20", "days=4"), "docs/moving.md", "exec"), names)
    found = names["found"]
    assert max(found.highest_filter, found.highest_smoother, found.highest_prediction) < 0.8
    assert found.accuracy_useful.value > 0.5
    assert len(capsys.readouterr().out.splitlines()) == 2
