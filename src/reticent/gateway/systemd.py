"""Telling systemd that the gateway is ready, alive and ending: the protocol of sd_notify(3), one datagram each.

Without systemd, which names a socket in NOTIFY_SOCKET, nothing is told.
"""

import os
import socket
import time


class Systemd:
    """The service manager. Its watchdog, if it has one, is told a few times per period that the loop turns."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        for_us = os.environ.get("WATCHDOG_PID") in (None, str(os.getpid()))
        period = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6 if for_us else 0.0
        self._between, self._next = period / 4, 0.0

    def ready(self, status: str) -> None:
        """Serving has begun."""
        self._tell(f"READY=1\nSTATUS={status}")

    def turned(self) -> None:
        """The loop has turned: it is alive."""
        if self._between and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._between
            self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """The end has begun."""
        self._tell("STOPPING=1")

    def _tell(self, message: str) -> None:
        if not self._address:
            return
        # A leading @ stands for an address in the abstract name space.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.settimeout(1.0)
            try:
                manager.sendto(message.encode(), address)
            except OSError:
                # Who does not listen is not told; the watchdog then does its work.
                return
