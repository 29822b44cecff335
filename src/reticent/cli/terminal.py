"""Progress and messages, which go to stderr."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from reticent.problem.model import Model

SECONDS_BETWEEN_LINES = 2.0
_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether `console` and `say` keep silent in this run of a command (--quiet)."""
    global _quiet
    _quiet = quiet
    # Services report through their log.
    logging.disable(logging.INFO if quiet else logging.NOTSET)


def console() -> "Console":
    """Where progress and notes go."""
    from rich.console import Console

    return Console(stderr=True, quiet=_quiet)


def say(sentence: str) -> None:
    """Print a note to stderr."""
    if not _quiet:
        print(f"reticent: {sentence}", file=sys.stderr, flush=True)


def say_what_is_assumed(model: "Model") -> None:
    """For a model fitted to recordings: note that labels must not change, and how often they did there."""
    from reticent.data.changes import LabelChanges

    if (changes := LabelChanges.of(model.fitted)) is not None:
        say(changes.sentence())


def progress_bar() -> "Progress":
    """A bar with what is done, the time it took, and the time that is left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console())


@contextmanager
def stages(first: str) -> Iterator[Callable[[str], None]]:
    """Tells what is being done: beside a spinner on a terminal, elsewhere in lines with the seconds since the start,
    one every few seconds at most."""
    screen, started = console(), time.monotonic()
    if screen.is_terminal:
        with screen.status(f"{first} ...") as status:
            yield lambda what: status.update(f"{_capital(what)} ...")
        return
    last = -math.inf

    def tell(what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if not _quiet and now - last >= SECONDS_BETWEEN_LINES:
            print(f"{now - started:5.0f} s  {what}", file=sys.stderr, flush=True)
            last = now

    tell(first)
    yield tell


@contextmanager
def parts_shown(first: str, parts: int) -> Iterator[Callable[[str], None]]:
    """Shows what is being done of a job with so many parts that take about as long, and how long the rest will take:
    one bar on a terminal, one line per part elsewhere."""
    screen, started, done = console(), time.monotonic(), -1

    def line(what: str) -> str:
        spent = time.monotonic() - started
        left = f", about {spent / done * (parts - done):.0f} s left" if done > 0 else ""
        return f"{spent:5.0f} s  {what}{left}"

    if screen.is_terminal:
        with progress_bar() as bar:
            task = bar.add_task(_capital(first), total=parts)

            def advance(what: str) -> None:
                nonlocal done
                done += 1
                bar.update(task, completed=done, description=_capital(what))

            yield advance
            bar.update(task, completed=parts)
        return

    def tell(what: str) -> None:
        nonlocal done
        done += 1
        if not _quiet:
            print(line(what), file=sys.stderr, flush=True)

    if not _quiet:
        print(line(first), file=sys.stderr, flush=True)
    yield tell


def _capital(what: str) -> str:
    return f"{what[0].upper()}{what[1:]}"
