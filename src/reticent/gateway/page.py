"""A page that shows the gateway live, and lets an operator pause and stop it. It works offline, from these files alone.

It is served on this machine only, unless told otherwise; then a token is needed. Foreign pages in the same browser can
neither read it (the Host header must be ours, against DNS rebinding) nor press its buttons (the Origin header must be
ours, and a header must be there that no foreign page can set). Nobody can take up all the room: see `admission`.
"""

import hmac
import ipaddress
import json
import logging
import secrets
import socket
import sys
import threading
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from reticent.errors import InputError
from reticent.gateway.admission import MOST_CONNECTIONS, Connections, Guesses
from reticent.gateway.service import Gateway

_log = logging.getLogger("reticent.gateway")

PORT = 8470
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.svg": ("page.svg", "image/svg+xml"),
}
BUTTONS = {"/pause": Gateway.pause, "/resume": Gateway.resume, "/stop": Gateway.stop}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    # Between two requests nobody keeps room.
    "Connection": "close",
}
# Between two looks at whether to end.
POLL_SECONDS = 0.1
# Between two pictures at least, and at most.
SECONDS, IDLE_SECONDS = 0.2, 5.0


class Page:
    """The page of a gateway, served until it is closed."""

    def __init__(self, gateway: Gateway, host: str = "127.0.0.1", port: int = PORT, token: str | None = None) -> None:
        self.gateway, self.host = gateway, host
        self.token = token or ("" if _on_loopback(host) else secrets.token_urlsafe(24))
        self.closing = threading.Event()
        self.connections, self.guesses = Connections(), Guesses()
        try:
            self._server = _Server(self, port)
        except (OSError, OverflowError) as error:
            reason = str(getattr(error, "strerror", None) or error).rstrip(".")
            where = f"on {host}:{port}: {reason}. Choose another --page or --page-host."
            raise InputError(f"The page cannot be served {where}") from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), name="page", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it is served on."""
        return self._server.server_address[1]

    @property
    def cookie(self) -> str:
        """The name of the pass. Cookies do not tell ports apart."""
        return f"reticent-{self.port}"

    @property
    def address(self) -> str:
        """What to open in a browser. The token stands behind the #, which browsers send to nobody."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/{f'#token={self.token}' if self.token else ''}"

    def names(self, host: str) -> bool:
        """Whether a Host header means this page. Behind a token any name will do: nobody guesses the token."""
        if self.token:
            return True
        return host in {f"{name}:{self.port}" for name in ("localhost", "127.0.0.1", "[::1]", self.host)}

    def knows(self, token: str) -> bool:
        """Whether a token is ours, if one is needed."""
        return not self.token or hmac.compare_digest(token.encode(), self.token.encode())

    def close(self) -> None:
        """Serve no more."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Viewers that stay connected do not hold up the end.
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, page: Page, port: int) -> None:
        self.page = page
        self.address_family = socket.AF_INET6 if ":" in page.host else socket.AF_INET
        super().__init__((page.host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own; another one makes room if there are too many."""
        self.page.connections.enter(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who breaks off is nobody's trouble."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.page.connections.leave(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "reticent", ""
    timeout = 10

    @property
    def _page(self) -> Page:
        assert isinstance(self.server, _Server)
        return self.server.page

    def do_GET(self) -> None:
        """A file of the page, or the stream of what happens."""
        self._page.connections.asks(self.connection)
        try:
            where = urlsplit(self.path)
        except ValueError:
            return self._say(400, "This is no address.")
        if not self._page.names(self.headers.get("Host", "")):
            return self._say(403, "This page is not served under that name.")
        if where.path in FILES:
            name, kind = FILES[where.path]
            return self._send(200, kind, Path(__file__).with_name(name).read_bytes())
        if where.path != "/events":
            return self._say(404, "There is nothing here.")
        asked = {name: values[0] for name, values in parse_qs(where.query).items()}
        if self._admitted(asked.get("token", "")):
            self._stream(asked.get("subject"))
        return None

    def do_POST(self) -> None:
        """A button."""
        page, button = self._page, BUTTONS.get(self.path)
        page.connections.asks(self.connection)
        host = self.headers.get("Host", "")
        if button is None:
            return self._say(404, "There is nothing here.")
        # Behind a proxy with TLS the browser says https, and we cannot see which it was.
        if not page.names(host) or self.headers.get("Origin") not in (f"http://{host}", f"https://{host}"):
            return self._say(403, "Only the page itself may do that.")
        if self.headers.get("X-Reticent") != "page":
            return self._say(403, "Only the page itself may do that.")
        if not self._admitted(self.headers.get("X-Reticent-Token", "")):
            return None
        button(page.gateway)
        _log.warning("The page was told to %s.", self.path.strip("/"))
        return self._say(200, "done")

    def _admitted(self, token: str) -> bool:
        """Whether the token is ours, if one is needed; else it was answered. To send none is no guess."""
        page, address = self._page, str(self.client_address[0])
        if not page.token:
            return True
        if wait := page.guesses.seconds_to_wait(address, self._shown_pass()):
            self._say(429, f"Too many wrong tokens came from your address: try again in {wait:.0f} seconds.")
        elif not page.knows(token):
            if token:
                page.guesses.wrong(address)
            self._say(403, "The token is missing or wrong: open the address that was printed at the start.")
        else:
            return True
        return False

    def _shown_pass(self) -> str | None:
        try:
            found = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return None
        return found[self._page.cookie].value if self._page.cookie in found else None

    def _stream(self, subject: str | None) -> None:
        """What the gateway looks like now, again and again: never more often than it can be looked at."""
        page = self._page
        connection = page.connections.asks(self.connection, looks=True)
        end = page.gateway.subscribe(lambda event: connection.news.set())
        try:
            self._begin(200, "text/event-stream", self._new_pass())
            self.wfile.write(b"retry: 1000\n\n")
            while not (page.closing.is_set() or connection.is_cut):
                connection.news.clear()
                picture = json.dumps(page.gateway.snapshot(subject), separators=(",", ":"))
                with connection.taking():
                    self.wfile.write(b"data: " + picture.encode() + b"\n\n")
                page.closing.wait(SECONDS)
                connection.news.wait(IDLE_SECONDS)
        except (OSError, ValueError):
            pass  # The viewer has gone.
        finally:
            end()

    def _new_pass(self) -> dict[str, str]:
        """The header that gives a pass to a browser that has none and has shown the right token."""
        page = self._page
        found = page.guesses.right(self._shown_pass()) if page.token else None
        return {"Set-Cookie": f"{page.cookie}={found}; HttpOnly; SameSite=Strict; Path=/"} if found else {}

    def _say(self, status: int, sentence: str) -> None:
        self._send(status, "text/plain; charset=utf-8", sentence.encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self._begin(status, kind, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _begin(self, status: int, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: an address may hold a token."""


def _on_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
