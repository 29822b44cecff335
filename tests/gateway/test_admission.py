"""Nobody shuts the operator out: neither by connections that say nothing, nor by not reading, nor by guessing."""

import http.client
import socket
import time
from contextlib import ExitStack, closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.gateway import admission
from reticent.gateway.admission import MOST_CONNECTIONS, MOST_VIEWERS, MOST_WRONG, WRONG_SECONDS, Connections, Guesses
from reticent.gateway.page import Page
from tests.gateway.parts import Place
from tests.gateway.served import OURS, ask, pictures


def connect(page, words=b""):
    found = socket.create_connection(("127.0.0.1", page.port), 20)
    found.sendall(words)
    return found


def press(page, button, **headers):
    return ask(page, "POST", button, Origin=f"http://127.0.0.1:{page.port}", **OURS, **headers)[0]


@pytest.mark.parametrize("words", [b"", b"GET /events HTTP/1.1\r\nHost: "], ids=["idle", "half a request"])
def test_connections_that_ask_for_nothing_make_room(place, page, words):
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(connect(page, words))
        assert ask(page)[0] == 200
        assert press(page, "/pause") == 200
        assert "Paused" in str(place.gateway.trouble)
        assert next(pictures(page))["paused"]


def test_readers_that_never_read_make_room(place, page):
    for number in range(100):
        place.tick(f"a name that fills the picture, number {number}")
    with ExitStack() as held:
        for _ in range(MOST_VIEWERS + 4):
            held.enter_context(connect(page, f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode()))
        stream = pictures(page)
        assert next(stream)["in_memory"] == 100
        assert press(page, "/pause") == 200
        assert next(each for each in stream if each["paused"])
        stream.close()


def test_the_oldest_viewer_makes_room_for_one_more(place, page):
    streams = [pictures(page) for _ in range(MOST_VIEWERS + 1)]
    for stream in streams:
        next(stream)
    place.gateway.pause()
    assert [each["paused"] for each in streams[0]] in ([], [True])
    for stream in streams[1:]:
        assert next(each for each in stream if each["paused"])
        stream.close()


def test_who_does_not_read_goes_before_who_looks_longer(monkeypatch):
    connections = Connections(viewers=2)
    pairs = [socket.socketpair() for _ in range(3)]
    for ours, _ in pairs:
        connections.enter(ours)
    first, second = (connections.asks(ours, looks=True) for ours, _ in pairs[:2])
    monkeypatch.setattr(admission, "STUCK_SECONDS", -1.0)
    with second.taking():
        connections.asks(pairs[2][0], looks=True)
    assert (first.is_cut, second.is_cut) == (False, True)
    assert pairs[1][1].recv(1) == b""
    for pair in pairs:
        for each in pair:
            each.close()


def test_who_asks_stays_and_who_is_silent_goes():
    connections = Connections(most=3)
    pairs = [socket.socketpair() for _ in range(5)]
    for ours, _ in pairs[:3]:
        connections.enter(ours)
    first = connections.asks(pairs[0][0])
    for ours, _ in pairs[3:]:
        connections.enter(ours)
    assert not first.is_cut
    assert [theirs.recv(1) for _, theirs in pairs[1:3]] == [b"", b""]
    for pair in pairs:
        for each in pair:
            each.close()


def test_connections_that_come_and_go_leave_no_trace(page):
    for _ in range(2 * MOST_CONNECTIONS):
        connect(page).close()
    assert ask(page)[0] == 200
    end = time.monotonic() + 20
    while page.connections._open and time.monotonic() < end:
        time.sleep(0.01)
    assert not page.connections._open


def test_guesses_of_the_token_are_limited(place, caplog):
    with closing(Page(place.gateway, port=0, token="sesame")) as page:
        assert [ask(page, path=f"/events?token={i}")[0] for i in range(MOST_WRONG)] == [403] * MOST_WRONG
        status, _, body = ask(page, path="/events?token=sesame")
        assert status == 429
        assert b"try again in" in body
        assert press(page, "/pause", **{"X-Reticent-Token": "sesame"}) == 429
        assert place.gateway.trouble is None
        assert len([each for each in caplog.messages if "wrong tokens from 127.0.0.1" in each]) == 1


def test_guesses_do_not_shut_out_who_has_shown_the_right_token(place):
    """The operator looks already, by way of the same proxy as whoever guesses."""
    with closing(Page(place.gateway, port=0, token="sesame")) as page:
        with closing(http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)) as connection:
            connection.request("GET", "/events?token=sesame")
            cookie = str(connection.getresponse().getheader("Set-Cookie"))
        assert "HttpOnly; SameSite=Strict" in cookie
        shown = {"Cookie": f"other=1; {cookie.partition(';')[0]}"}
        for i in range(MOST_WRONG):
            ask(page, path=f"/events?token={i}")
        assert press(page, "/pause", **{"X-Reticent-Token": "sesame"}) == 429
        assert press(page, "/pause", **{"X-Reticent-Token": "sesame"}, **shown) == 200
        # The pass alone opens nothing, and is no reason for another one.
        assert press(page, "/resume", **shown) == 403
        with closing(http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)) as connection:
            connection.request("GET", "/events?token=sesame", headers=shown)
            assert connection.getresponse().getheader("Set-Cookie") is None


def test_after_a_minute_tokens_are_looked_at_again():
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    for _ in range(MOST_WRONG):
        assert guesses.seconds_to_wait("10.0.0.1", None) == 0
        guesses.wrong("10.0.0.1")
        now[0] += 1
    assert guesses.seconds_to_wait("10.0.0.1", None) == WRONG_SECONDS - MOST_WRONG
    assert guesses.seconds_to_wait("10.0.0.1", "made up") > 0
    assert guesses.seconds_to_wait("10.0.0.2", None) == 0
    now[0] = WRONG_SECONDS
    assert guesses.seconds_to_wait("10.0.0.1", None) == 0
    guesses.wrong("10.0.0.1")
    assert guesses.seconds_to_wait("10.0.0.1", None) == 1


def test_addresses_of_one_network_count_together_and_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(admission, "MOST_ADDRESSES", 3)
    guesses = Guesses(lambda: 0.0)
    for i in range(MOST_WRONG):
        guesses.wrong(f"fe80::{i:x}%eth0")
    assert guesses.seconds_to_wait("fe80::ffff", None) > 0
    assert guesses.seconds_to_wait("fe81::1", None) == 0
    for i in range(10):
        guesses.wrong(f"10.0.0.{i}")
    assert len(guesses._wrong) == 3


def test_no_token_is_no_guess(place):
    """A page that was opened without one asks, and its operator then opens it with one."""
    with closing(Page(place.gateway, port=0, token="sesame")) as page:
        assert [ask(page, path="/events")[0] for _ in range(MOST_WRONG + 1)] == [403] * (MOST_WRONG + 1)
        assert next(pictures(page, "/events?token=sesame"))["paused"] is False


@pytest.fixture(scope="module")
def hardened(tmp_path_factory):
    """A page whose server keeps what it could not handle."""
    place = Place(tmp_path_factory.mktemp("hardened"))
    with closing(Page(place.gateway, port=0, token="sesame")) as page:
        page.crashes = []  # type: ignore[attr-defined]
        page._server.handle_error = lambda *_: page.crashes.append(1)  # type: ignore[attr-defined, method-assign]
        yield page
    place.ledger.close()


NONSENSE = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=30)
PATHS = (
    st.sampled_from(["http://[x/events", "//[", "/events?token=%", "/events?subject=%ff&token=\xe9", "*", ""])
    | NONSENSE
)


@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "HEAD", "get"]),
    path=PATHS,
    headers=st.dictionaries(st.sampled_from(["Host", "Origin", "Cookie", "X-Reticent", "X-Reticent-Token"]), NONSENSE),
)
def test_whatever_is_asked_it_is_answered(hardened, method, path, headers):
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    with connect(hardened, "\r\n".join(lines).encode("latin-1")) as connection:
        answer = connection.recv(65_536)
    assert not hardened.crashes
    # Without a method there is nothing to answer with a status.
    assert answer.startswith((b"HTTP/1.", b"<!DOCTYPE HTML>"))


def test_an_address_that_is_none_is_told(hardened):
    with connect(hardened, b"GET http://[x/events HTTP/1.1\r\nHost: x\r\n\r\n") as connection:
        assert connection.makefile("rb").readline() == b"HTTP/1.1 400 Bad Request\r\n"
    assert not hardened.crashes
