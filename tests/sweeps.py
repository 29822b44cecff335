"""Made-up rows of cells, and a runner that needs no workers."""

from reticent import __version__
from reticent.study.cell import Cell
from reticent.study.run import Done, Running

MEASURES = ("cost", "cost_without_penalty", "releases", "confidence_useful", "confidence_secret", "spent_bits")
MEASURES += ("accuracy_useful", "accuracy_secret", "violation_rate", "truncated_rate")


def made_up(cell: Cell, **found: float) -> dict:
    """A row as a finished cell returns it; what is not given is 0.5."""
    evaluation: dict = {
        name: {"value": value, "low": value - 0.1, "high": value + 0.1}
        for name, value in {**dict.fromkeys(MEASURES, 0.5), **found}.items()
    }
    one = {"value": 0.5, "low": 0.4, "high": 0.6}
    evaluation |= {"accuracy_per_useful": [one, None], "accuracy_per_secret": [None, None]}
    seconds = {"make_seconds": 2.0, "evaluate_seconds": 1.0}
    made_with = {"version": __version__, "time": "2026-01-01T00:00:00+00:00"}
    return {**cell.identity(), **made_with, **seconds, "evaluation": evaluation}


def pretend(cells, out):
    """Runs cells one after the other, in no time."""
    del out
    for cell in cells:
        yield Running((cell,))
        yield Done(cell, made_up(cell, cost=10 + cell.limit))
