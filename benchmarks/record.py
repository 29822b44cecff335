"""Saved results of benchmarks, and the page that shows them."""

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from reticent import __version__
from reticent.provenance import provenance

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"


def save(name: str, title: str, headings: list[str], rows: list[list[str]], notes: list[str]) -> None:
    """Write one benchmark's table with versions and load."""
    RESULTS.mkdir(exist_ok=True)
    versions = {key: value for key, value in provenance().items() if key != "command"}
    machine = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "machine": platform.machine()}
    record = {"title": title, "headings": headings, "rows": rows, "notes": notes, "versions": versions, **machine}
    record["commit"] = _commit()
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(_table(record), flush=True)


def _commit() -> str:
    """The commit whose code is measured, and whether that code was changed since."""
    git = ["git", "-C", str(FOLDER)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    changed = subprocess.run([*git, "status", "--porcelain", "../src"], capture_output=True, text=True, check=True)
    return head.stdout.strip() + (" with changes" if changed.stdout else "")


def write_readme() -> None:
    """README.md from all saved results."""
    parts = [
        "# Benchmarks\n",
        "`make bench` measures all of this again and rewrites this page. Do not edit it by hand.\n",
        "Not all tables are of the same code: the line under each says when it was measured, by which version, and the "
        "commit: up to 0.4.0 the one that saved the table, later the one that was measured. Up to 0.4.0 the version is "
        "that of the installed metadata, which can be older than the code of the commit. This page was written with "
        f"reticent {__version__}.\n",
    ]
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        parts += [f"## {record['title']}\n", _table(record), *(f"{note}\n" for note in record["notes"])]
        versions = record["versions"]
        parts.append(
            f"*Measured {versions['time'][:10]} with reticent {versions['reticent']}, commit {record['commit']}, "
            f"jax {versions['jax']}, numpy {versions['numpy']}; {record['cores']} cores, load {record['load']:.1f}.*\n"
        )
    (FOLDER / "README.md").write_text("\n".join(parts))


def _table(record: dict[str, Any]) -> str:
    lines = [record["headings"], ["---"] * len(record["headings"]), *record["rows"]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
