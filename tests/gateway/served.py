"""Requests to a page that is served, and the pictures that it streams."""

import http.client
import json
from contextlib import closing

OURS = {"X-Reticent": "page"}


def ask(page, method="GET", path="/", **headers):
    """Status, headers and body of one request."""
    with closing(http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)) as connection:
        connection.request(method, path, headers={"Host": f"127.0.0.1:{page.port}", **headers})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def pictures(page, path="/events", **headers):
    """What the stream shows, one picture after the other."""
    with closing(http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)) as connection:
        connection.request("GET", path, headers={"Host": f"127.0.0.1:{page.port}", **headers})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.getheader("Content-Type") == "text/event-stream"
        while line := answer.readline():
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))
