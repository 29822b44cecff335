"""The paper's studies to the letter, and its printed signs: what docs/paper.md is written from.

`python -m benchmarks.paper NAME DIR` records what a study's folder holds so far, finished or not, as the result of that
benchmark; the benchmark itself runs the whole study first. Its folder in results/ is kept, so that it can be continued.
"""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.catalogue import Measured
from benchmarks.record import REPOSITORY, record
from reticent.report.paper.settings import settings
from reticent.report.results import Results, read_results
from reticent.study.signs import STEPS, printed_information_bits, printed_signs

STUDIES = {"paper-synthetic": "synthetic", "paper-dsa": "dsa", "paper-motionsense": "motionsense"}


def synthetic() -> Measured:
    return _run("paper-synthetic")


def dsa() -> Measured:
    return _run("paper-dsa")


def motionsense() -> Measured:
    return _run("paper-motionsense")


def z_range() -> Measured:
    folder = REPOSITORY / "results" / "paper-z-range"
    spec = Path(__file__).with_name("z_range.toml")
    subprocess.run([sys.executable, "-m", "reticent", "sweep", str(spec), "--out", str(folder)], check=True)
    return saved(folder)


def signs() -> Measured:
    bits = ", ".join(f"{each:.3f}" for each in printed_information_bits())
    notes = [
        f"Each agent is trained in {STEPS:,} environment steps with seed 0 and evaluated on 2,000 episodes of at most "
        "20 readings. Estimates.",
        "With the minus sign of Theorem 3 the first release of the three sensors of the synthetic problem would add "
        f"{bits} bits to what was said of S (exact): the sum falls, and no L_MI is ever reached.",
    ]
    return printed_signs(), notes


def _run(name: str) -> Measured:
    folder = REPOSITORY / "results" / name
    command = [sys.executable, "-m", "reticent", "reproduce", STUDIES[name], "--to-the-letter", "--out", str(folder)]
    subprocess.run(command, check=True)
    return saved(folder)


def saved(folder: Path) -> Measured:
    """What a study's folder holds."""
    results = read_results(folder)
    return settings(results.rows), [_how(results)]


def _how(results: Results) -> str:
    """Which setting was run, and how much of it is there."""
    rows, study = results.rows, results.study
    agents = rows.filter(rows["effort"] > 0)
    drawn = "draw" in rows.columns
    units = f"draws 0 to {rows['draw'].max()}" if drawn else f"rotations 0 to {rows['seed'].max()}"
    seeds = f", seeds 0 to {agents['seed'].max()}" if drawn else ""
    steps, episodes = max(agents["effort"].to_list()), max(rows["episodes"].to_list())
    last, spec = max(rows["time"].to_list())[:10], study["spec"].splitlines()[0].removeprefix("# ")
    return (
        f"{spec} This run: {units}{seeds}, {steps:,} environment steps per agent, {episodes:,} episodes per "
        f"evaluation; {len(rows)} cells, the last on {last}."
    )


if __name__ == "__main__":
    path = record(sys.argv[1], *saved(Path(sys.argv[2])))
    content = json.loads(path.read_text())
    content["commit_is"] = "that of the recording; the study was run before"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(path)
