"""A real broker (mosquitto), in a folder and on a port of its own."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto, the MQTT broker, is not installed")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Mosquitto:
    """A broker that can be killed and started again."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.port = free_port()
        self._settings = folder / "mosquitto.conf"
        self._log = (folder / "mosquitto.log").open("ab")
        lines = ["persistence false", f"listener {self.port} 127.0.0.1", "max_queued_messages 0"]
        lines += settings or ["allow_anonymous true"]
        # Else it would become a user who may not read this folder.
        lines += ["user root"] if os.geteuid() == 0 else []
        self._settings.write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen | None = None
        self.start()

    def start(self) -> None:
        assert MOSQUITTO is not None
        words = [MOSQUITTO, "-c", str(self._settings)]
        self._process = subprocess.Popen(words, stdout=self._log, stderr=self._log)
        for _ in range(400):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        self.close()
        raise RuntimeError("mosquitto did not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.kill()
        self._log.close()
