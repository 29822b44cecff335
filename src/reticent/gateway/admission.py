"""Who may stay connected to the page, and whose tokens are looked at: so that nobody can shut the operator out."""

import contextlib
import ipaddress
import logging
import secrets
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_log = logging.getLogger("reticent.gateway")

MOST_CONNECTIONS, MOST_VIEWERS = 64, 16
# A viewer that takes longer to take a picture does not read.
STUCK_SECONDS = 1.0
MOST_WRONG, WRONG_SECONDS, MOST_ADDRESSES, MOST_PASSES = 10, 60.0, 1_000, 64


@dataclass(eq=False)
class Connection:
    """One connection: silent until it has asked; then it may look on.

    `writing`: since when it has been taking a picture. `news`: something has changed that it should know, such as that
    it was cut.
    """

    socket: socket.socket
    since: float = field(default_factory=time.monotonic)
    asked: bool = False
    looks: bool = False
    writing: float | None = None
    news: threading.Event = field(default_factory=threading.Event)
    is_cut: bool = False

    @contextlib.contextmanager
    def taking(self) -> Iterator[None]:
        """While something is written to it."""
        self.writing = time.monotonic()
        try:
            yield
        finally:
            self.writing = None

    def cut(self) -> None:
        """End it, whatever its thread waits for."""
        self.is_cut = True
        self.news.set()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def patience(self, now: float) -> tuple[int, float]:
        """The least of these makes room first: who does not read, then who has looked longest."""
        stuck = self.writing is not None and now - self.writing > STUCK_SECONDS
        return (0, self.writing or 0.0) if stuck else (1, self.since)


class Connections:
    """Those that are open. There is always room for one more: another one makes it.

    Of too many connections the one that has been silent longest goes, of too many viewers one that does not read or
    the oldest. A browser that looks on connects again by itself.
    """

    def __init__(self, most: int = MOST_CONNECTIONS, viewers: int = MOST_VIEWERS) -> None:
        self._most, self._viewers = most, viewers
        self._open: OrderedDict[socket.socket, Connection] = OrderedDict()
        self._lock = threading.Lock()

    def enter(self, client: socket.socket) -> None:
        """One more."""
        with self._lock:
            if len(self._open) >= self._most:
                self._cut(min(self._open.values(), key=lambda each: (each.looks, each.asked, each.since)))
            self._open[client] = Connection(client)

    def leave(self, client: socket.socket) -> None:
        """It has ended."""
        with self._lock:
            self._open.pop(client, None)

    def asks(self, client: socket.socket, looks: bool = False) -> Connection:
        """It has sent a request and, with `looks`, looks on from now."""
        with self._lock:
            # One that was cut meanwhile is no longer among them, and its next word ends it.
            found = self._open.get(client) or Connection(client)
            if looks:
                self._make_room_to_look()
            found.asked, found.looks = True, looks
            return found

    def _make_room_to_look(self) -> None:
        viewers = [each for each in self._open.values() if each.looks]
        if len(viewers) >= self._viewers:
            now = time.monotonic()
            self._cut(min(viewers, key=lambda each: each.patience(now)))

    def _cut(self, connection: Connection) -> None:
        del self._open[connection.socket]
        connection.cut()


class Guesses:
    """Wrong tokens, by the address they came from. After too many within a minute its tokens are not looked at.

    A browser that has shown the right token carries a pass, by which it is never held up: guesses from the same
    address, such as by way of the same proxy, do not shut it out. The pass opens nothing without the token.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._passes: deque[str] = deque(maxlen=MOST_PASSES)
        self._lock = threading.Lock()

    def seconds_to_wait(self, address: str, shown: str | None) -> float:
        """How long tokens from this address are not looked at."""
        with self._lock:
            times = self._wrong.get(_network(address))
            if times is None or len(times) < MOST_WRONG or shown in self._passes:
                return 0.0
            return max(times[0] + WRONG_SECONDS - self._clock(), 0.0)

    def wrong(self, address: str) -> None:
        """A wrong token has come from there."""
        with self._lock:
            times = self._wrong.setdefault(_network(address), deque(maxlen=MOST_WRONG))
            times.append(self._clock())
            self._wrong.move_to_end(_network(address))
            while len(self._wrong) > MOST_ADDRESSES:
                self._wrong.popitem(last=False)
        if len(times) == MOST_WRONG:
            _log.warning("The page gets wrong tokens from %s: further ones are not looked at for a while.", address)

    def right(self, shown: str | None) -> str | None:
        """The right token has come: a pass for who has none yet."""
        with self._lock:
            if shown in self._passes:
                return None
            self._passes.append(secrets.token_urlsafe(24))
            return self._passes[-1]


def _network(address: str) -> str:
    """Whoever has one address of IPv6 has all that share its first half."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))
