"""Finished cells on disk: one file each, written whole or not at all, and read again only by the cell that made it.

Studies keep JSON, which holds whatever a cell found; a sweep keeps Parquet, so that its folder is a table at any time.
"""

import abc
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import polars as pl

from reticent import __version__
from reticent.errors import InputError
from reticent.study.cell import flat

Row = dict[str, Any]
# Lists of nothing but unknown numbers would say nothing of their type.
PER_CLASS = {
    f"accuracy_per_{label}{end}": pl.List(pl.Float64) for label in ("useful", "secret") for end in ("", "_low", "_high")
}


@runtime_checkable
class AnyCell(Protocol):
    """What can be run and saved."""

    @property
    def name(self) -> str: ...

    def identity(self) -> dict[str, Any]: ...

    def run(self, out: Path) -> dict[str, Any]: ...


CellType = TypeVar("CellType", bound=AnyCell)


class Saved(abc.ABC):
    """A folder with one file per finished cell."""

    ending: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot make the folder {str(folder)!r}: {error.strerror or error}.") from error

    @abc.abstractmethod
    def read(self, path: Path) -> Any:
        """What a file holds; none if it is not there or not whole."""

    @abc.abstractmethod
    def shaped(self, row: Row) -> Row:
        """What a cell returned, as it is kept."""

    @abc.abstractmethod
    def dump(self, path: Path, row: Row) -> None:
        """Write a row as it is kept."""

    def path(self, cell: AnyCell) -> Path:
        """The file of a cell."""
        return self.folder / f"{cell.name}{self.ending}"

    def row(self, cell: AnyCell) -> Row | None:
        """The saved row of exactly this cell, if it is there, whole, and of this version."""
        row = self.read(self.path(cell))
        return row if isinstance(row, dict) and identity_of(cell).items() <= row.items() else None

    def write(self, cell: AnyCell, row: Row) -> Row:
        """Save what a cell returned, by way of a neighbour: an interrupted write leaves nothing behind that counts."""
        path, row = self.path(cell), self.shaped(row)
        neighbour = path.with_name(path.name + ".writing")
        self.dump(neighbour, row)
        os.replace(neighbour, path)
        return row


def write_json(path: Path, value: Any) -> None:
    """JSON, written whole or not at all."""
    neighbour = path.with_suffix(".writing")
    neighbour.write_text(json.dumps(value, indent=1))
    os.replace(neighbour, path)


def identity_of(cell: AnyCell) -> Row:
    """What a saved row must say to be that of this cell, made with this version; as JSON gives it back."""
    return json.loads(json.dumps({**cell.identity(), "version": __version__}, default=str))


class JsonCells(Saved):
    """One JSON object per cell, as it was returned."""

    ending = ".json"

    def read(self, path: Path) -> Any:
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError, RecursionError):
            return None

    def shaped(self, row: Row) -> Row:
        return row

    def dump(self, path: Path, row: Row) -> None:
        path.write_text(json.dumps(row, indent=1))


class ParquetCells(Saved):
    """A table in one file per row: all of them together can be read as one table whenever there is one."""

    ending = ".parquet"

    def read(self, path: Path) -> Any:
        try:
            return pl.read_parquet(path).row(0, named=True)
        except (OSError, pl.exceptions.PolarsError):
            return None

    def shaped(self, row: Row) -> Row:
        return flat(row)

    def dump(self, path: Path, row: Row) -> None:
        pl.DataFrame([row], schema_overrides=PER_CLASS).write_parquet(path)

    def set_aside(self, cells: Sequence[AnyCell], folder: Path) -> int:
        """Move files that are of none of these cells out of the table; how many there were."""
        own = {self.path(cell) for cell in cells if self.row(cell) is not None}
        others = [path for path in sorted(self.folder.glob(f"*{self.ending}")) if path not in own]
        if others:
            folder.mkdir(exist_ok=True)
        for path in others:
            os.replace(path, folder / path.name)
        return len(others)
