"""Runs a study and shows progress: a table that is redrawn on a terminal, lines elsewhere."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from reticent.cli.terminal import console

if TYPE_CHECKING:
    from rich.table import Table

    from reticent.study.cell import Cell
    from reticent.study.plan import Study
    from reticent.study.run import Event, Runner

# What cells of one line have in common. The first three are always shown, the others where there are several.
HEADINGS, ALWAYS = ("bound", "kept by", "method", "problem", "lambda"), 3
# Lines of the terminal that the table leaves: its heading, its rules, the sum, and what is said.
MARGIN = 8
Key = tuple[str, ...]


def run_shown(study: "Study", out: Path, run: "Runner") -> int:
    """Run what is missing; how many cells that was."""
    from reticent.study.run import Done, prepare, run_study

    messages = [f"Left out: {reason}" for reason in study.left_out]
    if aside := prepare(study, out):
        messages.append(f"{aside} results in {out} belong to other cells or settings: moved to {out / 'set-aside'}.")
    for message in messages:
        console().print(message, highlight=False, soft_wrap=True)
    new = 0
    with shown(study.cells) as show, closing(run_study(study, out, run)) as events:
        for event in events:
            new += isinstance(event, Done) and not event.kept
            show(event)
    return new


@contextmanager
def shown(cells: "Sequence[Cell]") -> Iterator[Callable[["Event"], None]]:
    """Shows what it is told, on stderr; on a terminal also what long cells say."""
    screen, board = console(), Board(cells)
    if screen.is_terminal:
        from rich.live import Live

        with Live(board.table(screen.height), console=screen, refresh_per_second=2) as live, _heard(board):
            yield lambda event: live.update(board.tell(event).table(screen.height))
    else:
        _say(f"{len(cells)} cells; a line for each when it is done.", screen.print)
        yield lambda event: _say(board.tell(event).line(event), screen.print)


@contextmanager
def _heard(board: "Board") -> Iterator[None]:
    """Meanwhile, what a cell says last stands under the table."""
    from reticent.study.run import PROGRESS

    class Under(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            board.said = record.getMessage()

    handler = Under()
    PROGRESS.addHandler(handler)
    try:
        yield
    finally:
        PROGRESS.removeHandler(handler)


def _say(line: str, say: Callable[..., None]) -> None:
    if line:
        say(line, highlight=False, soft_wrap=True)


@dataclass
class Group:
    """Cells that differ in nothing but their seed: how many there are, and what is known of them."""

    cells: int = 0
    running: int = 0
    done: int = 0
    best: float | None = None

    @property
    def left(self) -> int:
        """How many are not done."""
        return self.cells - self.done


class Board:
    """What is done, what is running, and how long the rest will take."""

    def __init__(self, cells: "Sequence[Cell]") -> None:
        self.groups: dict[Key, Group] = {}
        self.said: str | None = None
        self.all, self.at_once = Group(len(cells)), 1
        # What cells took, by enforcement and method.
        self.took: dict[Key, list[float]] = {}
        for cell in cells:
            self.groups.setdefault(_key(cell), Group()).cells += 1
        several = [len(set(values)) > 1 for values in zip(*self.groups, strict=True)]
        self.columns = [place for place in range(len(HEADINGS)) if place < ALWAYS or several[place]]

    def tell(self, event: "Event") -> "Board":
        """Take note of what has happened."""
        from reticent.study.run import Running

        if isinstance(event, Running):
            running = Counter(_key(cell) for cell in event.cells)
            self.all.running, self.at_once = len(event.cells), max(1, len(event.cells))
            for key, group in self.groups.items():
                group.running = running[key]
            return self
        key = _key(event.cell)
        group = self.groups[key]
        costs = [cost for cost in (event.row.get("cost"), group.best) if cost is not None]
        group.best = min(costs, default=None)
        for counted in (group, self.all):
            counted.done += 1
            counted.running = max(0, counted.running - (not event.kept))
        self.took.setdefault(key[1:ALWAYS], []).append(event.row["make_seconds"] + event.row["evaluate_seconds"])
        return self

    def seconds_left(self) -> dict[Key, float | None]:
        """Until the cells of each line are done, with as many at once as now; judged by those most like them.

        The median: the first cell of a kind compiles, which the others need not.
        """
        typical = {kind: median(seconds) for kind, seconds in self.took.items()}
        usual = median(second for seconds in self.took.values() for second in seconds) if self.took else None
        left = {}
        for key, group in self.groups.items():
            one = typical.get(key[1:ALWAYS], usual)
            left[key] = None if one is None else group.left * one / self.at_once
        return left

    def table(self, height: int) -> "Table":
        """As many lines as fit: what runs, then what waits, then what is done."""
        from rich.box import SIMPLE
        from rich.table import Table

        table = Table(box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False, caption=self.said, caption_justify="left")
        for place in self.columns:
            table.add_column(HEADINGS[place])
        for heading in ("done", "running", "left", "best cost", "time left"):
            table.add_column(heading, justify="right", no_wrap=True)
        seconds = self.seconds_left()
        order = sorted(self.groups, key=lambda key: (self.groups[key].running == 0, self.groups[key].left == 0))
        fit = max(3, height - MARGIN)
        for key in order[:fit]:
            table.add_row(*(key[place] for place in self.columns), *_numbers(self.groups[key], seconds[key]))
        table.add_section()
        hidden = len(order) - fit
        name = f"all, {hidden} not shown" if hidden > 0 else "all"
        table.add_row(name, *[""] * (len(self.columns) - 1), *_numbers(self.all, _sum(seconds)))
        return table

    def line(self, event: "Event") -> str:
        """What has happened, where there is no table; nothing if a line would not be worth it."""
        from reticent.study.run import Done

        if not isinstance(event, Done):
            return ""
        words = [_key(event.cell)[place] for place in self.columns]
        words += [f"seed {event.row['seed']}"] if "seed" in event.row else []
        found = f"{self.all.done} of {self.all.cells}: {', '.join(word for word in words if word)}"
        found += f": cost {event.row['cost']:.2f}" if "cost" in event.row else ""
        if event.kept:
            return f"kept  {found}"
        return f"done  {found}; {self.all.running} running, {_time(_sum(self.seconds_left()))} left"


def _key(cell: "Cell") -> Key:
    from reticent.report.words import bound_words, method_words

    row = cell.identity()
    bound = (bound_words(row), row["enforcement"]) if "bound" in row else ("", "")
    price = f"{row['error_penalty']:g}" if "error_penalty" in row else ""
    return *bound, method_words(row["method"]), row["problem"], price


def _sum(seconds: dict[Key, float | None]) -> float | None:
    return None if None in seconds.values() else sum(each or 0.0 for each in seconds.values())


def _numbers(group: Group, seconds: float | None) -> list[str]:
    best = "" if group.best is None else f"{group.best:.2f}"
    waiting = group.left - group.running
    return [str(group.done), str(group.running), str(waiting), best, _time(seconds) if group.left else ""]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
