"""Metrics and health over HTTP: /metrics for Prometheus, /healthz (it runs), /readyz (it releases)."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from reticent.errors import InputError
from reticent.gateway.metrics import Metrics
from reticent.gateway.service import Gateway

PORT = 9470
# Without a turn of the gateway's loop for so long, it counts as dead. A turn takes a quarter of a second at rest.
DEAD_SECONDS = 30.0
PLAIN = "text/plain; charset=utf-8"
Answer = tuple[int, str, bytes]


class Health:
    """The endpoint, served until it is closed. Nothing can be changed through it."""

    def __init__(self, gateway: Gateway, host: str = "127.0.0.1", port: int = PORT) -> None:
        self._gateway, self._metrics = gateway, Metrics(gateway)
        self._answers: dict[str, Callable[[], Answer]] = {
            "/metrics": lambda: (200, CONTENT_TYPE_LATEST, self._metrics.text()),
            "/healthz": self._alive,
            "/readyz": self._ready,
        }
        try:
            self._server = ThreadingHTTPServer((host, port), self._handler())
        except (OSError, OverflowError) as error:
            self._metrics.close()
            reason = str(getattr(error, "strerror", None) or error).rstrip(".")
            raise InputError(
                f"Metrics cannot be served on {host}:{port}: {reason}. Choose another --metrics or --metrics-host."
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it is served on."""
        return self._server.server_address[1]

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._metrics.close()

    def answer(self, path: str) -> Answer:
        """Status, type and body of the answer to a GET of this path."""
        return self._answers.get(path.partition("?")[0], _nothing)()

    def _alive(self) -> Answer:
        silent = self._gateway.seconds_since_turn
        if silent > DEAD_SECONDS:
            return 503, PLAIN, f"The gateway's loop has not turned for {silent:.0f} s. Restart it.\n".encode()
        return 200, PLAIN, b"alive\n"

    def _ready(self) -> Answer:
        trouble = self._gateway.trouble
        return (200, PLAIN, b"ready\n") if trouble is None else (503, PLAIN, f"{trouble}\n".encode())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        health = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version, server_version, sys_version = "HTTP/1.1", "reticent", ""
            timeout = 10

            def do_GET(self) -> None:
                """One of the three."""
                status, kind, body = health.answer(self.path)
                self.send_response(status)
                for name, value in (("Content-Type", kind), ("Content-Length", len(body)), ("Connection", "close")):
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Probes come every few seconds: they are not logged."""

        return Handler


def _nothing() -> Answer:
    return 404, PLAIN, b"There is /metrics, /healthz and /readyz.\n"
