"""Runs a sweep: the cells of a spec file, here or on a cluster, into a folder of Parquet that can be read meanwhile."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from reticent.errors import InputError
from reticent.provenance import provenance
from reticent.study.cell import Cell
from reticent.study.run import Event, Runner, run_missing
from reticent.study.saved import ParquetCells, write_json
from reticent.study.spec import plan, read_spec


@dataclass(frozen=True)
class Sweep:
    """What a spec file asks for: the cells, and in words what it cannot have."""

    title: str
    text: str
    cells: list[Cell]
    left_out: list[str]


def read_sweep(path: Path) -> Sweep:
    """The sweep of a spec file."""
    cells, left_out = plan(read_spec(path))
    return Sweep(f"Sweep {path.stem}", path.read_text(encoding="utf-8"), cells, left_out)


def prepare(sweep: Sweep, out: Path) -> int:
    """Make the folder, with what the sweep is; how many results of other cells were set aside there.

    Results that the spec no longer asks for, or that were made with other settings, are kept in a folder of their own.
    """
    path = out / "provenance.json"
    if path.exists() and '"sweep"' not in path.read_text():
        raise InputError(f"{str(out)!r} holds another study: name another folder for the sweep.")
    saved = ParquetCells(out / "results")
    about = {"spec": sweep.text, "cells": len(sweep.cells), "left_out": sweep.left_out}
    write_json(path, {"title": sweep.title, "sweep": about, **provenance()})
    return saved.set_aside(sweep.cells, out / "set-aside")


def run_sweep(sweep: Sweep, out: Path, run: Runner) -> Generator[Event, None, None]:
    """Run what is missing; the row of a cell is in `out/results` by the time that its end is told."""
    return run_missing(sweep.cells, ParquetCells(out / "results"), run, out)
