"""Several processes on one machine, each of which decides for its share of the subjects.

A subject belongs to one worker by its name alone. A worker that ends is started again, after it is gone: no two ever
decide for one subject, and what was on its way is on disk. Workers end with the process that started them.
"""

import logging
import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

from reticent.gateway.share import Share

_log = logging.getLogger("reticent.gateway")

TURN_SECONDS = 0.25
# A worker that ends at once is started again so much later, and later each time.
FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
# One that has run for so long has not ended at once.
LONG_ENOUGH = 60.0
SECONDS_TO_END = 20.0


class Worker:
    """One of the processes: it runs, or waits to be started again."""

    def __init__(self, work: Callable[[Share], None], share: Share) -> None:
        self.share, self._work, self._wait = share, work, FIRST_WAIT
        self._start_at = time.monotonic()
        self.process: SpawnProcess | None = None

    def look_after(self) -> None:
        """Start it if it is time to, and see to it if it has ended."""
        now = time.monotonic()
        if self.process is not None and not self.process.is_alive():
            lasted = now - self._start_at
            self._wait = FIRST_WAIT if lasted > LONG_ENOUGH else min(2 * self._wait, LONGEST_WAIT)
            self._start_at = now + self._wait
            number, code = self.share.index + 1, self.process.exitcode
            _log.warning("Worker %d of %d ended with code %s: it is started again.", number, self.share.workers, code)
            self.process.close()
            self.process = None
        if self.process is None and now >= self._start_at:
            self.process = multiprocessing.get_context("spawn").Process(target=self._work, args=(self.share,))
            self._start_at = now
            self.process.start()

    def end(self) -> None:
        """Ask it to end."""
        if self.process is not None:
            self.process.terminate()

    def join(self, until: float) -> None:
        """Wait for its end; make it end at last."""
        if self.process is not None:
            self.process.join(max(until - time.monotonic(), 0.0))
            self.process.kill()
            self.process.join()


def work_together(work: Callable[[Share], None], count: int, ended: Callable[[], bool]) -> None:
    """Keep so many workers at work until it is time to end; `work` must be a function that can be pickled."""
    workers = [Worker(work, Share(index, count)) for index in range(count)]
    try:
        while not ended():
            for worker in workers:
                worker.look_after()
            wait([worker.process.sentinel for worker in workers if worker.process], TURN_SECONDS)
    finally:
        for worker in workers:
            worker.end()
        until = time.monotonic() + SECONDS_TO_END
        for worker in workers:
            worker.join(until)


def orphaned(parent: int) -> bool:
    """Whether the process that started this one is gone."""
    return os.getppid() != parent
