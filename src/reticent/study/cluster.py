"""Runs cells on a Ray cluster, each on one core, and again elsewhere when a node dies.

Workers need no folder in common: a cell brings its problem along, and its row comes back to this process, which alone
saves it.
"""

import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reticent.errors import InputError
from reticent.process.cores import cores
from reticent.study.cell import Cell, Row
from reticent.study.run import Done, Event, Runner, Running, next_cell, run_one, settle_on

# How often a cell may be lost with its node or its worker.
RETRIES = 5
SECONDS_BETWEEN_LOOKS, SECONDS_TO_CONNECT = 1.0, 10.0
# Rows are small; by default Ray would reserve a third of the memory for them.
OBJECT_STORE_BYTES = 100 * 2**20
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def on_ray(address: str | None) -> Runner:
    """Runs cells on the cluster at this address; without one, on a cluster of this machine that ends with the run."""
    if find_spec("ray") is None:
        raise InputError("Ray is not installed: pip install 'reticent[ray]', or leave out --on ray.")

    def run(cells: list[Cell], out: Path) -> Generator[Event, None, None]:
        # What Ray has to say, of nodes that died, it prints where results belong.
        with redirect_stdout(sys.stderr), _connected(address) as ray:
            yield from _hand_out(ray, list(cells), out)

    return run


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray
    import ray.exceptions

    on_kill = signal.getsignal(signal.SIGTERM)
    try:
        _connect(ray, address)
        # Ray would end the process; here a kill ends like Ctrl-C.
        signal.signal(signal.SIGTERM, on_kill)
        yield ray
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise InputError(
            f"Ray gave a cell up after {RETRIES} more tries ({type(error).__name__}). Finished cells are kept: run "
            "again."
        ) from error
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    own = {"num_cpus": len(cores()), "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    try:
        if address and re.fullmatch(r"[^/]+:\d+", address):
            # Ray itself would try for minutes.
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
        ray.init(address or "local", **({} if address else own), log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"No Ray cluster can be reached at {address or 'this machine'!r}: {error}") from error


def _hand_out(ray: Any, waiting: list[Cell], out: Path) -> Iterator[Event]:
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_run_here)
    handed: dict[Any, Cell] = {}
    while waiting or handed:
        places = int(ray.cluster_resources().get("CPU", 0))
        # One more than there are cores: where nodes come on demand, what waits is the demand.
        while len(handed) <= places and (cell := next_cell(waiting, handed.values())):
            handed[task.remote(cell, out)] = cell
        yield Running(tuple(handed.values())[:places])
        done, _ = ray.wait(list(handed), timeout=SECONDS_BETWEEN_LOOKS)
        for reference in done:
            yield Done(handed.pop(reference), ray.get(reference))


def _run_here(cell: Cell, out: Path) -> Row:
    _own_core()
    return run_one(cell, out)


@cache
def _own_core() -> socket.socket | None:
    """Settle this worker, once, on a core that no other has, as workers without Ray are: so its numbers are the same.

    Nodes do not say which core is whose. A core is claimed by a socket of its name, which goes with the process.
    """
    mine, claim = cores()[os.getpid() % len(cores())], None
    for core in cores() if hasattr(os, "sched_setaffinity") else ():
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0reticent core {core}")
        except OSError:
            claim.close()
            continue
        mine = core
        break
    settle_on(mine)
    return claim
