"""What a study's folder holds: its rows so far, and where they came from."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from reticent.errors import InputError
from reticent.report.words import METHODS


@dataclass(frozen=True)
class Results:
    """The rows of a study, finished or not, with the method in words as `policy`; `study` is what `sweep`, `demo` or
    `reproduce` has written of it."""

    folder: Path
    rows: pl.DataFrame
    study: dict[str, Any]

    @property
    def promises(self) -> dict[str, str]:
        """What each enforcement promises."""
        return dict(self.rows.select("enforcement", "promised").unique(maintain_order=True).rows())

    def table(self, name: str) -> pl.DataFrame | None:
        """Another table beside the rows, if there is one yet."""
        found = list((self.folder / name).glob("*.parquet"))
        return pl.read_parquet(found) if found else None


def read_study(folder: Path) -> dict[str, Any]:
    """What a study's folder says of it."""
    try:
        study = json.loads((folder / "provenance.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{str(folder)!r} is not a folder of a sweep, a study or an audit.") from error
    if "page" not in study:
        raise InputError(f"{str(folder)!r} was made by reticent 0.4 or earlier: run the study again in another folder.")
    return study


def read_results(folder: Path) -> Results:
    """All rows there are."""
    study, paths = read_study(folder), sorted((folder / "results").glob("*.parquet"))
    if not paths:
        raise InputError(f"No cell of the study in {str(folder)!r} is finished yet.")
    words = {method: words for method, (words, _) in METHODS.items()}
    return Results(folder, pl.read_parquet(paths).with_columns(policy=pl.col("method").replace(words)), study)
