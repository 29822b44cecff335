"""Finished cells on disk: one Parquet file each, so that a study's folder is a table at any time.

A file is written whole or not at all, and read again only by the cell that made it.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from reticent import __version__
from reticent.errors import InputError
from reticent.study.cell import Cell, Row


class Store:
    """A study's folder: for each table of its cells a folder with one file per finished cell."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def path(self, cell: Cell) -> Path:
        """The file of a cell."""
        return self.out / cell.table / f"{cell.name}.parquet"

    def row(self, cell: Cell) -> Row | None:
        """The saved row of exactly this cell, if it is there, whole, and of this version."""
        try:
            row = pl.read_parquet(self.path(cell)).row(0, named=True)
        except (OSError, pl.exceptions.PolarsError):
            return None
        return row if identity_of(cell).items() <= row.items() else None

    def write(self, cell: Cell, row: Row) -> None:
        """Save what a cell returned."""
        path = self.path(cell)
        unfinished = path.with_name(path.name + ".writing")
        pl.DataFrame([row], schema_overrides=cell.schema).write_parquet(unfinished)
        os.replace(unfinished, path)

    def prepare(self, cells: Sequence[Cell]) -> int:
        """Make the folders of these cells and move what is of none of them out of the tables; how much that was."""
        own = {self.path(cell) for cell in cells if self.row(cell) is not None}
        folders = {self.out / cell.table for cell in cells}
        for folder in folders:
            _make(folder)
        others = sorted(path for folder in folders for path in folder.glob("*.parquet") if path not in own)
        for path in others:
            _make(self.out / "set-aside")
            os.replace(path, self.out / "set-aside" / path.name)
        return len(others)


def identity_of(cell: Cell) -> Row:
    """What a saved row must say to be that of this cell, made with this version."""
    return {**cell.identity(), "version": __version__}


def write_json(path: Path, value: Any) -> None:
    """JSON, written to a temporary file, then renamed."""
    unfinished = path.with_suffix(".writing")
    unfinished.write_text(json.dumps(value, indent=1))
    os.replace(unfinished, path)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {str(folder)!r}: {error.strerror or error}.") from error
