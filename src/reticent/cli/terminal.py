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


def say_what_is_not_told_apart(model: "Model") -> None:
    """Note which useful values the sensors cannot tell apart, if there are any."""
    from reticent.problem.distinguishable import useful_values_told_apart

    if sentence := useful_values_told_apart(model):
        say(sentence)


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
            yield lambda what: status.update(f"{what[0].upper()}{what[1:]} ...")
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
