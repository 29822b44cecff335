"""Readings as lines of JSON from one file descriptor, releases as lines of JSON to another.

Whatever has queued up in the pipe is handled together, in one transaction of the ledger. The pipe is the queue: when
the gateway is slower than the sensors, it fills up and the sender waits. It brings every line once, so that a line
without a time is of now.
"""

import os
import select
from collections.abc import Callable

from reticent.errors import InputError
from reticent.gateway.messages import LONGEST_MESSAGE, Message, Outgoing, Refused, parse_line
from reticent.gateway.service import Gateway

AT_ONCE = 65_536
# Seconds between looks at trouble that resolves itself, and at whether to end, while nothing comes in.
IDLE_SECONDS = 0.25


class Lines:
    """Cuts what comes in into lines; of a line that is too long no more is kept than shows that."""

    def __init__(self) -> None:
        self._begun = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that are complete now."""
        *lines, begun = (self._begun + piece).split(b"\n")
        self._begun = begun[: LONGEST_MESSAGE + 1]
        return [line for line in lines if line.strip()]

    def rest(self) -> list[bytes]:
        """The last line, if nothing ended it."""
        return self.feed(b"\n")


class Sink:
    """Where releases go, one line each: perhaps a file or a pipe that was there before this process.

    A predecessor that was killed within a line has left the first part of it. What it was writing is on disk as not
    delivered, so that it is what comes first now; unless another gateway has delivered it meanwhile.
    """

    def __init__(self, gateway: Gateway, descriptor: int) -> None:
        self._gateway, self._descriptor = gateway, descriptor
        self._written = False

    def send(self, sent: list[Outgoing]) -> None:
        """Write all of it, then say so."""
        if not sent:
            return
        cut_off = not self._written and (self._gateway.needs_time or self._gateway.counters["sent again"] > 0)
        self._written = True
        self._write((b"\n" if cut_off else b"") + b"".join(out.to_json() + b"\n" for out in sent))
        self._gateway.delivered(sent)

    def _write(self, lines: bytes) -> None:
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            gone = isinstance(error, BrokenPipeError)
            why = "Nobody reads the releases any more" if gone else f"The releases cannot be written ({error.strerror})"
            raise InputError(f"{why}. What did not get through is on disk and sent again at the next start.") from None


def serve_stdio(gateway: Gateway, source: int, sink: int, ended: Callable[[], bool]) -> None:
    """Until the source ends, the gateway is stopped, or it is time to end: what was begun is always finished."""
    try:
        _serve(gateway, source, Sink(gateway, sink), ended)
    finally:
        gateway.remember()


def _serve(gateway: Gateway, source: int, sink: Sink, ended: Callable[[], bool]) -> None:
    lines = Lines()
    sink.send(gateway.resend())
    while not (ended() or gateway.stopped):
        ready, _, _ = select.select([source], [], [], IDLE_SECONDS)
        piece = os.read(source, AT_ONCE) if ready else None
        found = lines.rest() if piece == b"" else lines.feed(piece or b"")
        sink.send(gateway.handle(_messages(gateway, found)))
        if piece == b"":
            return


def _messages(gateway: Gateway, lines: list[bytes]) -> list[Message]:
    messages = []
    for line in lines:
        try:
            messages.append(parse_line(line, gateway.needs_time))
        except Refused as refused:
            gateway.refuse(refused)
    return messages
