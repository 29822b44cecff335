"""Progress and messages, which go to stderr."""

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

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
def stages(first: str, between: float = SECONDS_BETWEEN_LINES) -> Iterator[Callable[[str], None]]:
    """Tells what is being done: beside a spinner on a terminal, elsewhere in lines with the seconds since the start,
    one every few seconds at most."""
    screen, started = console(), time.monotonic()
    if screen.is_terminal:
        with screen.status(f"{_capital(first)} ...") as status:
            yield lambda what: status.update(f"{_capital(what)} ...")
        return
    last, waiting = -math.inf, threading.Timer(0.0, print)

    def line(what: str) -> None:
        nonlocal last
        last = time.monotonic()
        print(f"{last - started:5.0f} s  {what}", file=sys.stderr, flush=True)

    def tell(what: str) -> None:
        nonlocal waiting
        waiting.cancel()
        if _quiet:
            return
        if (early := between - (time.monotonic() - last)) <= 0:
            return line(what)
        # Said a little later, unless there is something newer to say by then.
        waiting = threading.Timer(early, line, [what])
        waiting.daemon = True
        waiting.start()

    tell(first)
    try:
        yield tell
    finally:
        waiting.cancel()


@contextmanager
def parts_shown(first: str, parts: int) -> Iterator[Callable[[str], None]]:
    """Shows what is being done of a job with so many parts, which take about as long as each other."""
    done = -1

    def tell(what: str) -> None:
        nonlocal done
        done += 1
        show("", done, parts, what)

    with work_shown(first, 0.0) as show:
        yield tell
        if console().is_terminal:
            show("", parts, parts, "done")


Show = Callable[[str, int, int | None, str], None]


@contextmanager
def work_shown(first: str, between: float = SECONDS_BETWEEN_LINES) -> Iterator[Show]:
    """Shows how far each piece of work is: its name, what is done of how many, and what is being done.

    Bars on a terminal, elsewhere lines, both with the time that is left. `first` is shown until there is more to say.
    """
    if console().is_terminal:
        with progress_bar() as bars:
            yield _on_bars(bars, bars.add_task(_capital(first), total=None))
    else:
        with stages(first, between) as tell:
            yield _in_lines(tell)


def _on_bars(bars: "Progress", first: "TaskID") -> Show:
    tasks: dict[str, TaskID] = {}

    def show(name: str, done: int, total: int | None, what: str = "") -> None:
        # The first piece of work takes over the bar that was there.
        task = tasks.setdefault(name, first) if not tasks else tasks.get(name)
        if task is None:
            task = tasks[name] = bars.add_task(name)
        bars.update(task, completed=done, total=total, description=_words(name, what))

    return show


def _in_lines(tell: Callable[[str], None]) -> Show:
    began: dict[str, tuple[float, int]] = {}

    def show(name: str, done: int, total: int | None, what: str = "") -> None:
        since, before = began.setdefault(name, (time.monotonic(), done))
        spent, new = time.monotonic() - since, done - before
        of = "" if not name or total is None else f": {done:,} of {total:,}"
        left = (
            f", about {spent / new * (total - done):.0f} s left"
            if total is not None and new > 0 and done < total
            else ""
        )
        tell(f"{_words(name, what)}{of}{left}")

    return show


def _words(name: str, what: str) -> str:
    return _capital(", ".join(word for word in (name, what) if word))


def _capital(what: str) -> str:
    return f"{what[0].upper()}{what[1:]}"
