"""What must be right before anything is released, and the sentences that say how to mend it."""

import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from reticent.gateway.holds import STARTS_ANEW
from reticent.gateway.ledger import LedgerTrouble
from reticent.gateway.subjects import Place

_log = logging.getLogger("reticent.gateway")

# The first one that holds comes first in what is shown.
KINDS = ("stopped", "paused", "policy", "clock", "ledger", "broker")
STOPPED = "The gateway was stopped: nothing is released any more. Start it again with `reticent serve`."


class Troubles:
    """Why nothing is released now. Every change is logged once, and told."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._now: dict[str, str] = {}
        self._tell = tell

    def put(self, kind: str, sentence: str | None) -> None:
        """This is the trouble of this kind now, or none."""
        assert kind in KINDS
        if self._now.get(kind) == sentence:
            return
        if sentence is None:
            del self._now[kind]
            _log.warning("No more trouble with the %s." if kind not in ("paused", "stopped") else "No longer %s.", kind)
        else:
            self._now[kind] = sentence
            _log.warning("Nothing is released. %s", sentence)
        self._tell()

    def has(self, kind: str) -> bool:
        """Whether there is trouble of this kind."""
        return kind in self._now

    def beside(self, *kinds: str) -> bool:
        """Whether there is trouble of any other kind."""
        return bool(self._now.keys() - set(kinds))

    @property
    def sentence(self) -> str | None:
        """All of them, the worst first."""
        return " ".join(self._now[kind] for kind in KINDS if kind in self._now) or None


class PolicyFileGuard:
    """Is the policy file still the one that was loaded? Read again only when something about the file changed."""

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
            f"Put the file with SHA-256 {self._digest[:12]}... back, and releases go on by themselves; to use another "
            f"policy, start the gateway anew with a ledger of its own; {STARTS_ANEW}"
        )


def clock_trouble(now: float, newest: float) -> str | None:
    """What is wrong if the clock is behind what this gateway has seen on it."""
    if now >= newest:
        return None
    moment = datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
    return (
        f"The clock went back: it was {moment} before. Set the clock right; releases go on by themselves once it is "
        "past that. If it is right now and was ahead before, start the gateway again and lift what is ahead: "
        "`reticent ledger holds`."
    )


def no_older(name: str, known: Place, found: Place) -> Place:
    """The place that a ledger says, if it says no less than was known; else an older copy was put in its place."""
    if (found.number, found.hash) == (known.number, known.hash):
        return known
    if found.number > known.number:
        return replace(found, tallies=known.tallies)
    raise LedgerTrouble(
        f"The ledger says less of subject {name!r} than it did: an older copy was put in its place. Put the newest one "
        "back, and releases go on by themselves."
    )
