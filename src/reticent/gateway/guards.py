"""Troubles: what must be right before anything is released, and what the operator is told if it is not."""

import hashlib
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from reticent.gateway.holds import STARTS_ANEW

_log = logging.getLogger("reticent.gateway")

# In the order in which they are shown.
Kind = Literal["stopped", "paused", "policy", "clock", "ledger", "broker"]
KINDS: tuple[Kind, ...] = get_args(Kind)
STOPPED = "The gateway was stopped: nothing is released any more. Restart it with `reticent serve`."


class Troubles:
    """Why nothing is released now, at most one sentence of each kind. Every change is logged and calls `tell`."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._now: dict[Kind, str] = {}
        self._tell = tell

    def put(self, kind: Kind, sentence: str | None) -> None:
        """Set the trouble of this kind, or clear it with None."""
        if self._now.get(kind) == sentence:
            return
        if sentence is None:
            del self._now[kind]
            _log.warning("No more trouble with the %s." if kind not in ("paused", "stopped") else "No longer %s.", kind)
        else:
            self._now[kind] = sentence
            _log.warning("Nothing is released. %s", sentence)
        self._tell()

    def has(self, kind: Kind) -> bool:
        """Whether there is trouble of this kind."""
        return kind in self._now

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of trouble that there is."""
        return frozenset(self._now)

    @property
    def all_but_ledger_right(self) -> bool:
        """Whether there is no trouble, except perhaps with the ledger: whether that is over is tried by using it."""
        return not self._now.keys() - {"ledger"}

    @property
    def sentence(self) -> str | None:
        """All of them, in the order of KINDS."""
        return " ".join(self._now[kind] for kind in KINDS if kind in self._now) or None


class PolicyFileGuard:
    """Checks that the policy file is still the one that was loaded; hashes it again only if its metadata changed."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path, self._digest = path, digest
        self._looked_at: tuple[int, ...] | None = None
        self._same = True

    def trouble(self) -> str | None:
        """What is wrong with the file, if anything is."""
        try:
            found = os.stat(self._path)
            mark = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            if mark != self._looked_at:
                self._same = hashlib.sha256(self._path.read_bytes()).hexdigest() == self._digest
                self._looked_at = mark
        except OSError as error:
            self._looked_at = None
            return f"The policy file {str(self._path)!r} cannot be read ({error.strerror}). {self._mend}"
        return None if self._same else f"The policy file {str(self._path)!r} was replaced. {self._mend}"

    @property
    def _mend(self) -> str:
        return (
            f"Restore the file with SHA-256 {self._digest[:12]}..., and releases go on by themselves; to use another "
            f"policy, restart the gateway with a new ledger; {STARTS_ANEW}"
        )


def clock_trouble(now: float, newest: float) -> str | None:
    """What is wrong if the clock is behind a time that this gateway has already read from it."""
    if now >= newest:
        return None
    moment = datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
    return (
        f"The clock went back: it was {moment} before. Set the clock right; releases go on by themselves once it is "
        "past that. If it is right now and was ahead before, restart the gateway and run `reticent ledger holds lift "
        "LEDGER --clock`."
    )
