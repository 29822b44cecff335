"""Saved results of benchmarks, and the page that shows them."""

import json
import os
import platform
from pathlib import Path
from typing import Any

from reticent.provenance import provenance

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"


def save(name: str, title: str, headings: list[str], rows: list[list[str]], notes: list[str]) -> None:
    """Write one benchmark's table with versions and load."""
    RESULTS.mkdir(exist_ok=True)
    versions = {key: value for key, value in provenance().items() if key != "command"}
    machine = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "machine": platform.machine()}
    record = {"title": title, "headings": headings, "rows": rows, "notes": notes, "versions": versions, **machine}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(_table(record), flush=True)


def write_readme() -> None:
    """README.md from all saved results."""
    parts = [
        "# Benchmarks\n",
        "`make bench` measures all of this again and rewrites this page. Do not edit it by hand.\n",
    ]
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        parts += [f"## {record['title']}\n", _table(record), *(f"{note}\n" for note in record["notes"])]
        versions = record["versions"]
        parts.append(
            f"*{record['cores']} cores, load {record['load']:.1f}, {versions['time'][:10]}, "
            f"reticent {versions['reticent']}, jax {versions['jax']}, numpy {versions['numpy']}.*\n"
        )
    (FOLDER / "README.md").write_text("\n".join(parts))


def _table(record: dict[str, Any]) -> str:
    lines = [record["headings"], ["---"] * len(record["headings"]), *record["rows"]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
