"""`python -m benchmarks.page` writes README.md and docs/paper.md from the raw files; `--check` says what differs.

Marks of age depend on commits made after the page, so that the check leaves them out.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import verdicts
from benchmarks.catalogue import BENCHMARKS, BY_NAME, Benchmark, Rows

FOLDER = Path(__file__).parent
PAGE, RESULTS = FOLDER / "README.md", FOLDER / "results"
FIELDS = {"benchmark", "commit", "commit_is", "date", "version", "command", "machine", "numbers", "notes"}
MARK = "> "
INTRODUCTION = """# Benchmarks

This page is generated from the raw numbers in [results](results), one file per benchmark; do not edit it. `python -m
benchmarks` lists the benchmarks, `python -m benchmarks NAME` measures one anew, `make bench` all of them, and `make
bench-page` writes this page.

Under each title: the command, the day, the version and the commit of the run. A table is marked where a later commit
has touched the code that it measures. Numbers in brackets are 95 % intervals, ± standard deviations; shares are
between 0 and 1.
"""


def page() -> str:
    """All benchmarks, in the order of the catalogue."""
    return "\n".join([INTRODUCTION, *(_section(benchmark) for benchmark in BENCHMARKS)])


def _section(benchmark: Benchmark) -> str:
    title, command = f"## {benchmark.title}\n", f"`python -m benchmarks {benchmark.name}`"
    if not (path := RESULTS / f"{benchmark.name}.json").exists():
        return f"{title}\n{command} was not run yet.\n"
    run = json.loads(path.read_text())
    machine = run["machine"]
    come = (
        f"{command}: {run['date'][:10]}, reticent {run['version']}, commit {run['commit']} ({run['commit_is']}); "
        f"{machine['cores']} cores, load {machine['load']:.1f}, Python {machine['python']}, jax {machine['jax']}.\n"
    )
    notes = [f"{note}\n" for note in run["notes"]]
    return "\n".join([title, come, *_age(run["commit"], benchmark), table(run["numbers"]), *notes])


def _age(commit: str, benchmark: Benchmark) -> list[str]:
    """A mark where later commits touched what was measured, or where nobody can tell."""
    words = ["git", "log", "--oneline", "-1", f"{commit}..HEAD", "--", *benchmark.paths]
    later = subprocess.run(words, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
    if later.returncode:
        return [f"{MARK}Its commit is not in this repository: how old the numbers are is unknown.\n"]
    return [f"{MARK}**Older than the code it measures.**\n"] if later.stdout else []


def table(rows: Rows) -> str:
    """One line per row. Lists are curves: they are in the raw file, not here."""
    fields = dict.fromkeys(field for row in rows for field, value in row.items() if not isinstance(value, list))
    shown = [field for field in fields if not _companion(field, fields)]
    lines = [[field.replace("_", " ") for field in shown], ["---"] * len(shown)]
    lines += [[_cell(row, field) for field in shown] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _companion(field: str, fields: dict[str, None]) -> bool:
    """Whether this is an end of another's interval, or its spread."""
    return any(field.endswith(end) and field.removesuffix(end) in fields for end in ("_low", "_high", "_sd"))


def _cell(row: dict[str, Any], field: str) -> str:
    cell = _shown(row.get(field))
    if row.get(f"{field}_low") is not None:
        return f"{cell} [{_shown(row[f'{field}_low'])}, {_shown(row[f'{field}_high'])}]"
    return f"{cell} ± {_shown(row[f'{field}_sd'])}" if f"{field}_sd" in row else cell


def _shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float() if abs(value) < 1000:
            return f"{value:.4g}" if abs(value) < 1 else f"{value:.5g}"
        case int() | float():
            return f"{value:,.0f}"
    return str(value)


def disagreements() -> list[str]:
    """What is wrong with the page, the raw files and the catalogue, one sentence each."""
    found = []
    if _unmarked(PAGE.read_text()) != _unmarked(page()):
        found.append("README.md is not what the raw files say: run `make bench-page`.")
    if not verdicts.PAGE.exists() or verdicts.PAGE.read_text() != verdicts.verdicts():
        found.append("docs/paper.md is not what the raw files say: run `make bench-page`.")
    for path in sorted(RESULTS.iterdir()):
        if path.suffix != ".json" or path.stem not in BY_NAME:
            found.append(f"results/{path.name} belongs to no benchmark of the catalogue.")
        elif (keys := set(json.loads(path.read_text()))) != FIELDS:
            found.append(f"results/{path.name}: {', '.join(sorted(keys ^ FIELDS))} missing or too many.")
    for benchmark in BENCHMARKS:
        gone = [each for each in benchmark.paths if not (FOLDER.parent / each).exists()]
        if gone or not benchmark.paths:
            found.append(f"{benchmark.name} does not say what it measures, or it is gone: {', '.join(gone)}.")
    return found


def _unmarked(text: str) -> list[str]:
    """The lines without marks of age, and without empty ones."""
    return [line for line in text.splitlines() if line and not line.startswith(MARK)]


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(disagreements()) or 0)
    PAGE.write_text(page())
    verdicts.PAGE.parent.mkdir(exist_ok=True)
    verdicts.PAGE.write_text(verdicts.verdicts())
