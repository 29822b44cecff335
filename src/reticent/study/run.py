"""Runs the cells of a study on all cores, saves each as it ends, and skips those that an earlier run has finished.

A cell is a frozen dataclass with a `name`, which tells it apart and names its file, and `run`, which returns what to
save: everything a cell needs travels with it to the worker, or lies in the study's folder.

The cell is the unit of work wherever it runs, on one core: training several bounds in one vmapped program is slower
than training them side by side in processes of one core each (benchmarks/batching.py), would need equal schedules, and
would make a cell's last digits depend on its company.
"""

import logging
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any

from reticent import __version__
from reticent.cores import cores
from reticent.errors import InputError
from reticent.provenance import provenance
from reticent.study.cell import Cell, flat
from reticent.study.saved import CellType, JsonCells, Row, Saved, identity_of, write_json

# What a long cell is doing now. Workers send their records to the study's process: add a handler there to show them.
PROGRESS = logging.getLogger("reticent.study")


@dataclass(frozen=True)
class Running:
    """These cells are running now."""

    cells: tuple[Any, ...]


@dataclass(frozen=True)
class Done:
    """A cell has ended with this row, as it is saved; `kept` if an earlier run has done it."""

    cell: Any
    row: Row
    kept: bool = False


Event = Running | Done
# Runs cells and says how it goes; it saves nothing.
Runner = Callable[[list[Any], Path], Generator[Event, None, None]]


def run_study(cells: list[Cell], out: Path, title: str, report: Callable[[Cell, bool], None]) -> Path:
    """Results of all cells as `results.parquet` in `out`; `report` is told of each cell and whether it was there."""
    rows = run_cells(cells, out, report)
    return write_results(out, title, [flat(row) for row in rows])


def run_cells(cells: list[CellType], out: Path, report: Callable[[CellType, bool], None]) -> list[Row]:
    """What each cell returned, in their order; `report` is told of each and whether it was there."""
    saved = JsonCells(out / "cells")
    for event in run_missing(cells, saved, on_all_cores, out):
        if isinstance(event, Done):
            report(event.cell, event.kept)
    return [row for cell in cells if (row := saved.row(cell)) is not None]


def run_missing(cells: list[Any], saved: Saved, run: Runner, out: Path) -> Generator[Event, None, None]:
    """Run what is not saved yet. A cell is saved here, in one process, before anybody hears that it is done."""
    missing = []
    for cell in cells:
        if (row := saved.row(cell)) is None:
            missing.append(cell)
        else:
            yield Done(cell, row, kept=True)
    if not missing:
        return
    # Closed at once when somebody stops listening: workers end then, not when memory is tidied up.
    with closing(run(missing, out)) as events:
        for event in events:
            if isinstance(event, Done):
                _check_version(event.row["version"])
                event = Done(event.cell, saved.write(event.cell, event.row))
            yield event


def _check_version(version: str) -> None:
    if version != __version__:
        raise InputError(
            f"A worker has reticent {version}, but this is {__version__}: install the same version everywhere. "
            "Finished cells are kept."
        )


def on_all_cores(cells: list[Any], out: Path) -> Generator[Event, None, None]:
    """One worker per core of this machine."""
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
        yield from _hand_out(deque(cells), out, pool, workers)
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


def _hand_out(waiting: deque[Any], out: Path, pool: ProcessPoolExecutor, workers: int) -> Iterator[Event]:
    running: dict[Future[Row], Any] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            cell = waiting.popleft()
            running[pool.submit(run_one, cell, out)] = cell
        yield Running(tuple(running.values()))
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield Done(running.pop(future), future.result())


def run_one(cell: Any, out: Path) -> Row:
    """One cell, in a worker; the row says whose it is and which version made it."""
    return {**identity_of(cell), **cell.run(out)}


def _settle(places: Any, said: Any) -> None:
    """Give each worker a core of its own: small networks run faster side by side than on shared threads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    PROGRESS.setLevel(logging.INFO)
    PROGRESS.addHandler(QueueHandler(said))
    settle_on(places.get())


def settle_on(core: int) -> None:
    """Keep this process, and all threads that it will start, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    from reticent.compile_cache import use_compile_cache

    use_compile_cache()


def write_results(out: Path, title: str, rows: list[Row], about: Any = None) -> Path:
    """`results.parquet`, and where it came from."""
    import polars as pl

    path = out / "results.parquet"
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    write_json(out / "provenance.json", {"title": title, **({} if about is None else {"about": about}), **provenance()})
    return path
