"""`python -m tests.demo.make_data DIR`: fits the demo's problem to DSA in DIR, and codes the people left out."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from reticent.demo.recorded import LETTERS, PEOPLE, PROBLEM
from reticent.fit.recorded import fitted_readings
from reticent.problem.codebook import Codebook
from reticent.problem.model import read_problem

LEFT_OUT, CODES, DIGITS = ("5", "6", "7"), 16, 8
SOURCE = {
    "title": "Daily and Sports Activities, UCI Machine Learning Repository 256",
    "authors": "K. Altun, B. Barshan, O. Tunçel; Pattern Recognition 43(10), 2010",
    "address": "https://archive.ics.uci.edu/dataset/256",
    "licence": "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/",
    "changes": "One second of a wrist sensor is reduced to one of 16 codes; only four activities are used.",
}


def main(folder: Path) -> None:
    fit = f"fit dsa --data {folder} --codes {CODES} --leave-out {' '.join(LEFT_OUT)} -o {PROBLEM}"
    subprocess.run([sys.executable, "-m", "reticent", *fit.split()], check=True)
    found = json.loads(PROBLEM.read_text())
    found = _short({**found, "fitted": {**found["fitted"], "source": SOURCE}})
    PROBLEM.write_text(json.dumps(found, ensure_ascii=False) + "\n")
    PEOPLE.write_text(json.dumps({"source": SOURCE, "streams": _streams(folder)}, ensure_ascii=False, indent=0) + "\n")


def _short(value: Any) -> Any:
    """With fewer digits, so that the file is small."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, list):
        return [_short(each) for each in value]
    return {name: _short(each) for name, each in value.items()} if isinstance(value, dict) else value


def _streams(folder: Path) -> list[dict[str, Any]]:
    model = read_problem(PROBLEM)
    read = fitted_readings(model, folder, None)
    codes = Codebook.of(model).codes(read.values)
    streams = []
    for number in np.unique(read.stream):
        rows = np.flatnonzero(read.stream == number)
        if (person := read.people[read.person[rows[0]]]) not in LEFT_OUT:
            continue
        labels = {"secret": read.secrets[read.secret[rows[0]]], "useful": read.useful_values[read.useful[rows[0]]]}
        said = ["".join(LETTERS[code] for code in codes[rows, sensor]) for sensor in range(len(read.sensors))]
        streams.append({"person": person, **labels, "codes": said})
    return streams


if __name__ == "__main__":
    main(Path(sys.argv[1]))
