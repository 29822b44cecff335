"""Recordings that a model was fitted to, read again."""

from pathlib import Path

from reticent.data.load import Source, load
from reticent.data.readings import ReadingKind, Readings, readings
from reticent.errors import InputError
from reticent.problem.model import Model


def fitted_readings(model: Model, folder: Path, map: str | Path | None) -> Readings:
    """The recordings that the model was fitted to a part of, read again as they were then."""
    match model.fitted:
        case {"recordings": {"name": str(name), **chosen}, "reading": {**reading}}:
            source = Source(name, folder, map=None if map is None else Path(map), **chosen)  # type: ignore[arg-type]
            return readings(load(source), ReadingKind(**reading))  # type: ignore[arg-type]
    raise InputError("A folder of recordings needs a model that `reticent fit` has made from them.")
