"""Made-up rows of cells, and a runner that needs no workers."""

from typing import Any

from reticent.study.finite import FiniteCell, flat
from reticent.study.plan import Study
from reticent.study.run import Done, Running
from reticent.study.saved import identity_of

MEASURES = ("cost", "cost_without_penalty", "releases", "confidence_useful", "confidence_secret", "spent_bits")
MEASURES += ("accuracy_useful", "accuracy_secret", "violation_rate", "truncated_rate")


def finite(study: Study) -> list[FiniteCell]:
    """The cells of a study of finite models."""
    assert all(isinstance(cell, FiniteCell) for cell in study.cells)
    return [cell for cell in study.cells if isinstance(cell, FiniteCell)]


def made_up(cell: Any, **found: float) -> dict:
    """A row as a finished cell returns it; what is not given is 0.5, but a lower bound has a cost only."""
    assert isinstance(cell, FiniteCell)
    measures = MEASURES[:1] if cell.setting.method.name == "lower bound" else MEASURES
    evaluation: dict = {
        name: {"value": value, "low": value - 0.1, "high": value + 0.1}
        for name, value in {**dict.fromkeys(measures, 0.5), **found}.items()
    }
    one = {"value": 0.5, "low": 0.4, "high": 0.6}
    evaluation |= {"accuracy_per_useful": [one, None], "accuracy_per_secret": [None, None]}
    seconds = {"make_seconds": 2.0, "evaluate_seconds": 1.0}
    made = {"time": "2026-01-01T00:00:00+00:00", "variant": None, **cell.setting.promise()}
    return {**identity_of(cell), **made, **seconds, **flat(evaluation)}


def pretend(cells, out):
    """Runs cells one after the other, in no time."""
    del out
    for cell in cells:
        yield Running((cell,))
        yield Done(cell, made_up(cell, cost=10 + (cell.setting.bound.number or 0)))
