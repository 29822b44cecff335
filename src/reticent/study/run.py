"""Runs the cells of a study on all cores, saves each as it ends, and skips those that an earlier run has finished.

The cell is the unit of work wherever it runs, on one core: training several bounds in one vmapped program is slower
than training them side by side in processes of one core each (benchmarks/batching.py), would need equal schedules, and
would make a cell's last digits depend on its company.
"""

import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Collection, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any

from reticent import __version__
from reticent.errors import InputError
from reticent.process.cores import cores
from reticent.study.cell import Cell, Row
from reticent.study.plan import Study
from reticent.study.provenance import provenance
from reticent.study.saved import Store, identity_of, write_json

# What a long cell is doing now. Workers send their records to the study's process: add a handler there to show them.
PROGRESS = logging.getLogger("reticent.study")
PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class Running:
    """These cells are running now."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Done:
    """A cell has ended with this row, as it is saved; `kept` if an earlier run has done it."""

    cell: Cell
    row: Row
    kept: bool = False


Event = Running | Done
# Runs cells, each after those it needs, and says how it goes; it saves nothing.
Runner = Callable[[list[Cell], Path], Generator[Event, None, None]]


def prepare(study: Study, out: Path) -> int:
    """Make the folder, with what the study is; how many results of other cells were set aside there.

    Results that the spec no longer asks for, or that were made with other settings, are kept in a folder of their own.
    """
    path = out / PROVENANCE
    if path.exists() and json.loads(path.read_text()).get("page") != study.spec.page:
        raise InputError(f"{str(out)!r} holds another study: name another folder with --out.")
    aside = Store(out).prepare(study.cells)
    said = {"title": study.spec.title, "page": study.spec.page, "spec": study.spec.text, "about": study.about}
    shown = sum(cell.table == Cell.table for cell in study.cells)
    write_json(path, {**said, "cells": shown, "left_out": study.left_out, "made": provenance()})
    return aside


def run_study(study: Study, out: Path, run: Runner) -> Generator[Event, None, None]:
    """Run what is not saved yet. A cell is saved here, in one process, before anybody hears that it is done."""
    store, missing = Store(out), []
    for cell in study.cells:
        if (row := store.row(cell)) is None:
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
                store.write(event.cell, event.row)
            yield event


def next_cell(waiting: list[Cell], running: Collection[Cell]) -> Cell | None:
    """Take the first cell that waits for no other, if there is one."""
    for place, cell in enumerate(waiting):
        if not any(need in running or need in waiting for need in cell.needs):
            return waiting.pop(place)
    return None


def _check_version(version: str) -> None:
    if version != __version__:
        raise InputError(
            f"A worker has reticent {version}, but this is {__version__}: install the same version everywhere. "
            "Finished cells are kept."
        )


def on_all_cores(cells: list[Cell], out: Path) -> Generator[Event, None, None]:
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
        yield from _hand_out(list(cells), out, pool, workers)
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


def _hand_out(waiting: list[Cell], out: Path, pool: ProcessPoolExecutor, workers: int) -> Iterator[Event]:
    running: dict[Future[Row], Cell] = {}
    while waiting or running:
        while len(running) < workers and (cell := next_cell(waiting, running.values())):
            running[pool.submit(run_one, cell, out)] = cell
        yield Running(tuple(running.values()))
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield Done(running.pop(future), future.result())


def run_one(cell: Cell, out: Path) -> Row:
    """One cell, in a worker; the row says whose it is, which version made it, and when."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {**identity_of(cell), "time": now, **cell.run(out)}


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
    from reticent.process.compile_cache import use_compile_cache

    use_compile_cache()
