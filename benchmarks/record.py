"""Raw numbers of one run as one JSON file, with the commit and the machine that they come from."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.catalogue import Rows
from reticent.evaluate.estimate import Estimate
from reticent.study.provenance import provenance

REPOSITORY = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"


def record(name: str, rows: Rows, notes: list[str]) -> Path:
    """Write what a benchmark has measured just now; the last run replaces the one before."""
    facts = provenance()
    date, version, _ = facts.pop("time"), facts.pop("reticent"), facts.pop("command")
    commit, changed = _git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain", "src", "benchmarks/*.py")
    content = {
        "benchmark": name,
        "commit": commit,
        "commit_is": "the one that was measured" + (", with changes that are in no commit" if changed else ""),
        "date": date,
        "version": version,
        "command": f"python -m benchmarks {name}",
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], **facts},
        "numbers": rows,
        "notes": notes,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=1, default=lambda number: number.item(), ensure_ascii=False) + "\n")
    return path


def interval(name: str, estimate: Estimate) -> dict[str, Any]:
    """An estimate as three fields, which the page shows as one."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()
