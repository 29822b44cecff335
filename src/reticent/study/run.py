"""Runs the cells of a study on all cores, saves each as it ends, and skips those that an earlier run has finished.

A cell is a frozen dataclass with a `name`, which tells it apart and names its file, and `run`, which returns what to
save as JSON: everything a cell needs travels with it to the worker, or lies in the study's folder.
"""

import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, is_dataclass
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from reticent import __version__
from reticent.cores import cores
from reticent.errors import InputError
from reticent.provenance import provenance
from reticent.study.cell import Cell, flat


@runtime_checkable
class AnyCell(Protocol):
    """What can be run and saved."""

    @property
    def name(self) -> str: ...

    def run(self, out: Path) -> dict[str, Any]: ...


CellType = TypeVar("CellType", bound=AnyCell)
# What a long cell is doing now. Workers send their records to the study's process: add a handler there to show them.
PROGRESS = logging.getLogger("reticent.study")


def run_study(cells: list[Cell], out: Path, title: str, report: Callable[[Cell, bool], None]) -> Path:
    """Results of all cells as `results.parquet` in `out`; `report` is told of each cell and whether it was there."""
    rows = run_cells(cells, out, report)
    return write_results(out, title, [flat(row) for row in rows])


def run_cells(cells: list[CellType], out: Path, report: Callable[[CellType, bool], None]) -> list[dict[str, Any]]:
    """What each cell returned, in their order; `report` is told of each and whether it was there."""
    folder = _cell_folder(out)
    missing = []
    for cell in cells:
        if _finished(folder, cell) is None:
            missing.append(cell)
        else:
            report(cell, True)
    if missing:
        for cell, row in _run_all(missing, out):
            _write_json(folder / f"{cell.name}.json", row)
            report(cell, False)
    return [row for cell in cells if (row := _finished(folder, cell)) is not None]


def _run_all(cells: list[CellType], out: Path):
    """Yield (cell, row) as they end, from one worker per core."""
    context = multiprocessing.get_context("spawn")
    workers = min(len(cells), len(cores()))
    places = context.SimpleQueue()
    for core in cores()[:workers]:
        places.put(core)
    said = context.Queue()
    listener = QueueListener(said, *PROGRESS.handlers)
    listener.start()
    pool = ProcessPoolExecutor(workers, context, _settle, (places, said))
    try:
        for future in as_completed([pool.submit(_run_one, cell, out) for cell in cells]):
            yield future.result()
    except BrokenProcessPool as error:
        raise InputError(
            "A worker was killed, perhaps for lack of memory. Finished cells are kept: run again."
        ) from error
    finally:
        # By its end or by an interrupt: no worker outlives the study.
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in multiprocessing.active_children():
            worker.terminate()
        listener.stop()


def _run_one(cell: CellType, out: Path) -> tuple[CellType, dict[str, Any]]:
    return cell, {**_identity(cell), **cell.run(out)}


def _identity(cell: AnyCell) -> dict[str, Any]:
    """What a saved row must say to be that of this cell, made with this version; as JSON gives it back."""
    assert is_dataclass(cell)
    return json.loads(json.dumps({**asdict(cell), "version": __version__}, default=str))


def _settle(places: Any, said: Any) -> None:
    """Give each worker a core of its own: small networks run faster side by side than on shared threads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    PROGRESS.setLevel(logging.INFO)
    PROGRESS.addHandler(QueueHandler(said))
    core = places.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    from reticent.compile_cache import use_compile_cache

    use_compile_cache()


def _cell_folder(out: Path) -> Path:
    folder = out / "cells"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {str(folder)!r}: {error.strerror or error}.") from error
    return folder


def _finished(folder: Path, cell: AnyCell) -> dict[str, Any] | None:
    """The saved row of exactly this cell, if it is there, whole, and of this version."""
    try:
        row = json.loads((folder / f"{cell.name}.json").read_text())
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) and _identity(cell).items() <= row.items() else None


def _write_json(path: Path, value: Any) -> None:
    neighbour = path.with_suffix(".writing")
    neighbour.write_text(json.dumps(value, indent=1))
    os.replace(neighbour, path)


def write_results(out: Path, title: str, rows: list[dict[str, Any]], about: Any = None) -> Path:
    """`results.parquet`, and where it came from."""
    import polars as pl

    path = out / "results.parquet"
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    _write_json(
        out / "provenance.json", {"title": title, **({} if about is None else {"about": about}), **provenance()}
    )
    return path
