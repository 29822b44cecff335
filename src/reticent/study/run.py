"""Runs the cells of a study on all cores, saves each as it ends, and skips those that an earlier run has finished."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reticent import __version__
from reticent.cores import cores
from reticent.errors import InputError
from reticent.provenance import provenance
from reticent.study.cell import Cell, flat, run_cell


def run_study(cells: list[Cell], out: Path, title: str, report: Callable[[Cell, bool], None]) -> Path:
    """Results of all cells as `results.parquet` in `out`; `report` is told of each cell and whether it was there."""
    folder = _cell_folder(out)
    missing = []
    for cell in cells:
        if _finished(folder, cell) is None:
            missing.append(cell)
        else:
            report(cell, True)
    if missing:
        for cell, row in _run_all(missing):
            _write_json(folder / f"{cell.name}.json", row)
            report(cell, False)
    rows = [row for cell in cells if (row := _finished(folder, cell)) is not None]
    return _write_results(out, title, rows)


def _run_all(cells: list[Cell]):
    """Yield (cell, row) as they end, from one worker per core."""
    context = multiprocessing.get_context("spawn")
    workers = min(len(cells), len(cores()))
    places = context.SimpleQueue()
    for core in cores()[:workers]:
        places.put(core)
    pool = ProcessPoolExecutor(workers, context, _settle, (places,))
    try:
        for future in as_completed([pool.submit(_run_one, cell) for cell in cells]):
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


def _run_one(cell: Cell) -> tuple[Cell, dict[str, Any]]:
    return cell, run_cell(cell)


def _settle(places: Any) -> None:
    """Give each worker a core of its own: small networks run faster side by side than on shared threads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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


def _finished(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """The saved row of exactly this cell, if it is there, whole, and of this version."""
    try:
        row = json.loads((folder / f"{cell.name}.json").read_text())
    except (OSError, ValueError):
        return None
    wanted = {**asdict(cell), "version": __version__}
    whole = isinstance(row, dict) and isinstance(row.get("evaluation"), dict)
    return row if whole and wanted.items() <= row.items() else None


def _write_json(path: Path, value: Any) -> None:
    neighbour = path.with_suffix(".writing")
    neighbour.write_text(json.dumps(value, indent=1))
    os.replace(neighbour, path)


def _write_results(out: Path, title: str, rows: list[dict[str, Any]]) -> Path:
    import polars as pl

    path = out / "results.parquet"
    pl.DataFrame([flat(row) for row in rows]).write_parquet(path)
    _write_json(out / "provenance.json", {"title": title, **provenance()})
    return path
