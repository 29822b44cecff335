"""Progress and messages, which go to stderr."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


def console() -> "Console":
    """Where messages go."""
    from rich.console import Console

    return Console(stderr=True)


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
def shown_beside(bar: "TaskID", progress: "Progress", logger: logging.Logger) -> Iterator[None]:
    """Meanwhile, what the logger says last stands beside the bar."""

    class Beside(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            progress.update(bar, description=record.getMessage())

    handler = Beside()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
