"""What ships with the package: a model fitted to recordings of some people, and codes of others.

Both are derived from the Daily and Sports Activities data set (CC BY 4.0); `tests/demo/make_data.py` makes them anew.
"""

import json
from pathlib import Path

import numpy as np
from jaxtyping import Int

from reticent.data.readings import Readings
from reticent.data.windows import ReadingKind
from reticent.problem.codebook import Codebook
from reticent.problem.model import Model, read_problem

PROBLEM = Path(__file__).parent / "problem.json"
PEOPLE = Path(__file__).parent / "people.json"
# A code is written as one letter.
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def problem() -> Model:
    """Still or moving is useful, in an elevator or not is secret; sensors of one wrist, one reading a second."""
    return read_problem(PROBLEM)


def source() -> dict[str, str]:
    """Where the recordings come from: title, authors, address, licence, and what was changed."""
    return json.loads(PEOPLE.read_text())["source"]


def people(model: Model) -> Readings:
    """Recordings of people whom the model was not fitted to; a reading is the centre of the code that it had."""
    streams = json.loads(PEOPLE.read_text())["streams"]
    codes = [np.array([[LETTERS.index(letter) for letter in own] for own in each["codes"]]).T for each in streams]
    names = tuple(sorted({each["person"] for each in streams}))
    lengths = [len(own) for own in codes]

    def labels(what: str, among: tuple[str, ...]) -> Int[np.ndarray, " N"]:
        return np.repeat([among.index(each[what]) for each in streams], lengths)

    assert model.fitted is not None
    return Readings(
        values=_centres(Codebook.of(model), np.concatenate(codes)),
        stream=np.repeat(np.arange(len(codes)), lengths),
        person=labels("person", names),
        secret=labels("secret", model.secrets),
        useful=labels("useful", model.useful),
        features=tuple(model.fitted["features"]),
        people=names,
        sensors=model.sensors,
        secrets=model.secrets,
        useful_values=model.useful,
        kind=ReadingKind(**model.fitted["reading"]),
        interval=model.fitted["interval"],
    )


def _centres(codebook: Codebook, codes: np.ndarray) -> np.ndarray:
    scaled = np.stack([codebook.centres[sensor][own] for sensor, own in enumerate(codes.T)], axis=1)
    return (scaled * codebook.deviation + codebook.mean).astype(np.float32)
