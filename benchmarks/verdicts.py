"""docs/paper.md from the raw numbers of the paper's studies."""

import json
from pathlib import Path

from reticent.report.paper.page import Demonstration, Demonstrations, Open, Study, page
from reticent.study.choices import left_open

FOLDER = Path(__file__).parent
PAGE, RESULTS = FOLDER.parent / "docs" / "paper.md", FOLDER / "results"
# The benchmark, a title, the study's name, and what is hidden.
STUDIES = (
    ("paper-synthetic", "The synthetic problem", "synthetic", "Three secrets, three useful values, three sensors."),
    ("paper-dsa", "DSA", "dsa", "S: in an elevator or not. U: still or moving."),
    ("paper-motionsense", "MotionSense", "motionsense", "S: gender. U: sitting, standing or walking."),
    ("paper-smoking", "Smoking activity dataset", "smoking", "The paper's own recordings, which are not at hand here."),
)


def verdicts() -> str:
    """The page."""
    studies = [_study(*each) for each in STUDIES]
    shown = Demonstrations(_demonstration("paper-signs"), _demonstration("paper-z-range"))
    return page(studies, shown, [_open(each) for each in left_open()])


def _demonstration(name: str) -> Demonstration:
    made = _saved(name)
    return Demonstration() if made is None else Demonstration(_came(made), tuple(made["numbers"]))


def _study(name: str, title: str, data: str, problem: str) -> Study:
    command, made = f"reticent reproduce {data} --to-the-letter", _saved(name)
    if made is None:
        return Study(title, problem, command, data != "synthetic")
    return Study(title, problem, command, data != "synthetic", _came(made), tuple(made["numbers"]))


def _saved(name: str) -> dict | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _came(made: dict) -> str:
    """Where the numbers come from, and the notes on them."""
    return " ".join([f"reticent {made['version']}, commit {made['commit']} ({made['commit_is']}).", *made["notes"]])


def _open(each) -> Open:
    option = f"`--{each.option.replace('_', '-')}`" if each.option else "-"
    return Open(each.what, option, each.taken, each.printed, each.why)
