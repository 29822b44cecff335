"""The page: shows what was released and nothing else, and only itself may press its buttons."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

import pytest

from reticent.errors import InputError
from reticent.gateway.page import FILES, Page
from reticent.gateway.sessions import ASSUMPTION, EXHAUSTED
from reticent.problem.bound import Confidence
from tests.gateway.parts import Place, coarsened, task
from tests.gateway.served import OURS, ask, pictures

CHROMIUM = Path("/usr/bin/chromium")


@pytest.mark.parametrize("path", FILES)
def test_files_are_served_with_strict_headers(page, path):
    status, headers, body = ask(page, path=path)
    assert status == 200
    assert body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_page_needs_nothing_from_elsewhere():
    """No script, style or handler inline, and no address but those of its own files."""
    folder = Path(sys.modules[Page.__module__].__file__).parent  # type: ignore[arg-type]
    html = (folder / "page.html").read_text()
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=", html)
    sources = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert set(sources) == {"page.svg", "page.css", "page.js", "#subject"}
    for name in ("page.html", "page.css", "page.js"):
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", (folder / name).read_text())


def test_other_names_are_refused(page):
    """Against DNS rebinding: a foreign page that points its own name at this machine gets nothing."""
    for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1", "", "localhost:1"):
        assert ask(page, Host=host)[0] == 403
        assert ask(page, path="/events", Host=host)[0] == 403
        assert ask(page, "POST", "/pause", Host=host, Origin=f"http://{host}", **OURS)[0] == 403
    assert ask(page, Host=f"localhost:{page.port}")[0] == 200


def test_behind_a_proxy_with_tls_the_buttons_work(place):
    """It passes the name on that the browser asked for, and the browser says https."""
    with closing(Page(place.gateway, port=0, token="sesame")) as page:
        told = {"Host": "hub.example", "Origin": "https://hub.example", "X-Reticent-Token": "sesame", **OURS}
        assert ask(page, "POST", "/pause", **told)[0] == 200
        assert "Paused" in str(place.gateway.trouble)
        assert ask(page, "POST", "/resume", **told | {"X-Reticent-Token": "open"})[0] == 403
        assert ask(page, "POST", "/resume", **told | {"Origin": "https://evil.example"})[0] == 403


def test_it_is_served_by_ipv6_too(place):
    try:
        page = Page(place.gateway, "::1", 0)
    except InputError:
        pytest.skip("this machine has no IPv6")
    with closing(page), closing(http.client.HTTPConnection("::1", page.port, timeout=20)) as connection:
        assert page.address == f"http://[::1]:{page.port}/"
        connection.request("GET", "/", headers={"Host": f"[::1]:{page.port}"})
        assert connection.getresponse().status == 200


def test_only_the_page_itself_may_press_buttons(place, page):
    origin = f"http://127.0.0.1:{page.port}"
    for headers in (
        {},
        OURS,
        {"Origin": origin},
        {"Origin": "http://evil.example", **OURS},
        {"Origin": "null", **OURS},
        {"Origin": "https://evil.example", **OURS},
        {"Origin": f"ftp://127.0.0.1:{page.port}", **OURS},
    ):
        assert ask(page, "POST", "/pause", **headers)[0] == 403
    assert place.gateway.trouble is None
    assert ask(page, "GET", "/pause", Origin=origin, **OURS)[0] == 404
    assert ask(page, "POST", "/pause", Origin=origin, **OURS)[0] == 200
    assert "Paused" in str(place.gateway.trouble)
    assert ask(page, "POST", "/resume", Origin=origin, **OURS)[0] == 200
    assert place.gateway.trouble is None
    assert ask(page, "POST", "/anything", Origin=origin, **OURS)[0] == 404
    assert ask(page, "PUT", "/pause", Origin=origin, **OURS)[0] == 501
    assert ask(page, "POST", "/stop", Origin=origin, **OURS)[0] == 200
    assert place.gateway.stopped


def test_a_token_is_needed_where_others_can_reach_it(place):
    with closing(Page(place.gateway, "0.0.0.0", 0)) as page:
        token = page.address.partition("#token=")[2]
        assert len(token) >= 32
        assert ask(page, path="/events")[0] == 403
        assert ask(page, path="/events?token=wrong")[0] == 403
        assert next(pictures(page, f"/events?token={token}"))["trouble"] is None
        origin = {"Origin": f"http://127.0.0.1:{page.port}", **OURS}
        assert ask(page, "POST", "/pause", **origin)[0] == 403
        assert ask(page, "POST", "/pause", **origin, **{"X-Reticent-Token": "wrong"})[0] == 403
        assert ask(page, "POST", "/pause", **origin, **{"X-Reticent-Token": token})[0] == 200


def test_a_token_may_be_asked_for_here_too(place):
    with closing(Page(place.gateway, port=0, token="open sesame")) as page:
        assert ask(page, path="/events")[0] == 403
        assert next(pictures(page, f"/events?token={quote('open sesame')}"))["counters"]["received"] == 0
        # Whoever asks under whatever name, such as a proxy, needs the token.
        assert ask(page, path="/events", Host="evil.example")[0] == 403


def test_the_stream_shows_releases_as_they_come(place, page):
    stream = pictures(page, "/events?subject=ada")
    assert next(stream)["chosen"] is None
    [sent] = place.tick()
    picture = next(each for each in stream if each["chosen"])
    assert picture["chosen"]["history"][-1]["symbol"] == sent.symbol
    assert picture["counters"]["released"] == 1
    for secret in place.runtime.task.model.secrets:
        assert json.dumps(secret) not in json.dumps(picture)
    stream.close()


def test_closing_ends_the_streams(place):
    page = Page(place.gateway, port=0)
    stream = pictures(page)
    next(stream)
    page.close()
    place.gateway.pause()
    assert len(list(stream)) <= 1


def test_a_port_that_is_taken_is_told(place, page):
    with pytest.raises(InputError, match="another --page"):
        Page(place.gateway, port=page.port)
    with pytest.raises(InputError, match="another --page"):
        Page(place.gateway, port=99999)


def test_requests_that_make_no_sense_do_no_harm(place, page):

    for nonsense in (b"\xff\xfe\n\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70_000 + b"\r\n\r\n"):
        with closing(socket.create_connection(("127.0.0.1", page.port), 20)) as connection:
            try:
                connection.sendall(nonsense)
                connection.recv(100)
            except ConnectionError:
                pass
    assert ask(page)[0] == 200


@pytest.fixture(scope="module")
def chromium():
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM}, the browser, is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright, which drives the browser, is missing")
    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
        with closing(playwright.chromium.launch(executable_path=str(CHROMIUM), args=options)) as browser:
            yield browser


class Looked:
    """A page in the browser; whatever it asks of others or complains about is kept."""

    def __init__(self, browser, address, **options) -> None:
        self.complaints: list[str] = []
        self.strange: list[str] = []
        self._context = browser.new_context(**options)
        self.tab = self._context.new_page()
        self.tab.on("console", lambda message: message.type != "log" and self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        ours = address.partition("#")[0]

        def route(request):
            if request.request.url.startswith(ours):
                return request.continue_()
            self.strange.append(request.request.url)
            return request.abort()

        self.tab.route("**/*", route)
        self.tab.goto(address)

    def says(self, selector, words, seconds=10.0):
        """Wait until an element says it."""
        self.tab.wait_for_function(
            "([selector, words]) => document.querySelector(selector).innerText.includes(words)",
            arg=[selector, words],
            timeout=1000 * seconds,
        )

    def close(self) -> None:
        self._context.close()


@pytest.fixture
def looked(chromium, page):
    with closing(Looked(chromium, page.address)) as found:
        found.says("#status", "Releasing", 20)
        yield found
    assert found.complaints == []
    assert found.strange == []


def test_a_release_shows_within_a_second(place, looked):
    looked.says("#empty", "Nobody has been heard yet")
    [sent] = place.tick()
    looked.says("#said", sent.symbol, 1.0 + 2.0)  # The first one also has to be chosen.
    for _ in range(2):
        [sent] = place.tick()[:1]
        looked.says("#log li:first-child", sent.symbol, 1.0)
        looked.says("#name", "ada")
    entry = place.ledger.last("ada")
    likeliest = max(range(3), key=lambda u: sum(row[u] for row in entry.belief))
    assert looked.tab.inner_text("#useful .most .label") == place.runtime.task.model.useful[likeliest]
    assert "limit 1.4 bits" in looked.tab.text_content("#chart")
    assert f"{entry.spent_bits:.2f} bits" in looked.tab.inner_text("#secret-hint")


def test_pausing_on_the_page_stops_releases(place, looked):
    place.tick()
    looked.tab.click("#pause")
    looked.says("#status", "Paused")
    looked.says("#trouble", "Resume it to go on")
    assert place.tick() == []
    looked.tab.click("#pause")
    looked.says("#status", "Releasing")
    assert len(place.tick()) == 1


def test_trouble_is_a_banner_and_goes_away(place, looked):
    place.gateway.report("broker", "The broker is gone. Start it.")
    looked.says("#trouble", "The broker is gone. Start it.")
    looked.says("#status", "Held back")
    assert looked.tab.get_attribute("#trouble", "role") == "alert"
    place.gateway.report("broker", None)
    looked.says("#status", "Releasing")
    assert looked.tab.is_hidden("#trouble")


def test_nothing_left_to_say_is_a_state_of_its_own(place, looked):
    """Neither resting nor green: in words, in its own colour, for the one and for the gateway as a whole."""
    place.tick()
    looked.says("#status", "Releasing")
    assert looked.tab.inner_text("#assumption") == ASSUMPTION
    green = looked.tab.evaluate("getComputedStyle($('status')).backgroundColor")
    while not place.gateway.counters["nothing left"]:
        place.tick(seconds=100)
    looked.says("#status", "Nothing left to say")
    looked.says("#exhausted", EXHAUSTED)
    looked.says("#subjects .silent .state", "nothing left to say")
    looked.says("#silent", "1 of 1 shown")
    looked.says("#left", "nothing")
    assert looked.tab.evaluate("getComputedStyle($('status')).backgroundColor") != green
    assert "rests" not in looked.tab.inner_text("#note")
    place.tick("bob")
    looked.says("#status", "Releasing")
    looked.says("#silent", "1 of 2 shown")


def test_who_is_not_shown_and_why(place, looked):
    looked.says("#empty", "Nobody has been heard yet")
    looked.tab.evaluate("choose('bob')")
    looked.says("#empty", "bob is not in memory. Of the 10,000 subjects that were heard last")
    place.gateway.pause()
    place.tick("bob")
    looked.says("#empty", "bob is not shown: readings are dropped unread while nothing is released.")
    place.gateway.resume()
    place.tick("bob")
    looked.says("#name", "bob")
    place.tick("ada")
    looked.says("#subjects", "ada")
    # Until the picture of who was just chosen is there, nothing is said of it.
    assert looked.tab.evaluate("choose('ada'), $('empty').hidden")
    looked.says("#name", "ada")


def test_rounding_looks_neither_like_certainty_nor_like_nothing(looked):
    shares = [0, 0.004, 0.005, 0.5, 0.994, 0.995, 0.9999, 1]
    said = ["0 %", "<1 %", "1 %", "50 %", "99 %", ">99 %", ">99 %", "100 %"]
    assert looked.tab.evaluate("shares => shares.map(percent)", shares) == said


def test_stopping_needs_a_second_thought(place, looked):
    looked.tab.click("#stop")
    looked.tab.click("#stay")
    assert not place.gateway.stopped
    looked.tab.focus("#stop")
    looked.tab.keyboard.press("Enter")
    looked.tab.focus("#really")
    looked.tab.keyboard.press("Enter")
    looked.says("#status", "Stopped")
    assert place.gateway.stopped


@pytest.mark.slow
def test_another_subject_is_chosen_by_keyboard(place, looked):
    place.tick("ada")
    looked.says("#name", "ada")
    place.tick("bob")
    looked.says("#subjects", "bob")
    looked.tab.focus("#subjects li:nth-child(2) button")
    looked.tab.keyboard.press("Enter")
    looked.says("#name", "bob")
    assert looked.tab.get_attribute("#subjects li:nth-child(2) button", "aria-current") == "true"


@pytest.mark.slow
def test_names_are_shown_and_not_run(place, looked):
    name = "<img src=x onerror=alert(1)>".replace("/", "")
    place.tick(name)
    looked.says("#name", name)
    assert looked.tab.locator("main img").count() == 0


@pytest.mark.slow
def test_a_lost_connection_is_told_and_found_again(chromium, place):
    page = Page(place.gateway, port=0)
    with closing(Looked(chromium, page.address)) as looked:
        looked.says("#status", "Releasing", 20)
        page.close()
        looked.says("#status", "No connection", 20)
        assert looked.tab.is_disabled("#pause")
        with closing(Page(place.gateway, port=page.port)):
            looked.says("#status", "Releasing", 30)


@pytest.mark.slow
def test_with_a_token_in_the_address(chromium, place):
    with closing(Page(place.gateway, "0.0.0.0", 0)) as page:
        token = page.address.partition("#")[2]
        with closing(Looked(chromium, f"http://127.0.0.1:{page.port}/#{token}")) as looked:
            looked.says("#status", "Releasing", 20)
            looked.tab.click("#pause")
            looked.says("#status", "Paused", 5)
            assert looked.complaints == []


@pytest.mark.slow
def test_a_limit_is_shown_as_it_is(chromium, tmp_path):
    place = Place(tmp_path, task(Confidence(0.995), "withhold"))
    with closing(Page(place.gateway, port=0)) as page, closing(Looked(chromium, page.address)) as looked:
        looked.says("#status", "Releasing", 20)
        place.tick()
        looked.says("#secret-hint", "the limit is 99.5 %")
        assert "limit 99.5 %" in looked.tab.text_content("#chart")
    place.ledger.close()


@pytest.mark.slow
def test_a_wrong_token_is_told(chromium, place):
    with closing(Page(place.gateway, port=0, token="open sesame")) as page, ExitStack() as opened:
        looked = opened.enter_context(closing(Looked(chromium, f"http://127.0.0.1:{page.port}/#token=wrong")))
        looked.says("#status", "Refused", 20)
        looked.says("#trouble", "its token is missing or wrong")


@pytest.mark.slow
def test_merged_symbols_and_the_bound_on_a_phone_in_the_dark(chromium, tmp_path):
    place = Place(tmp_path, coarsened())
    options = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}
    with closing(Page(place.gateway, port=0)) as page, closing(Looked(chromium, page.address, **options)) as looked:
        looked.says("#status", "Releasing", 20)
        merged = [
            out for code in (1, 48, 2) for out in place.tick(reading=code) if str(out.symbol).startswith("merged")
        ]
        looked.says("#said", merged[-1].symbol)
        looked.says("#secret-hint", "the limit is 80 %")
        assert looked.tab.locator("#chart .hollow").count() == len(merged)
        limit = float(looked.tab.get_attribute("#chart .limit", "y1"))
        heights = looked.tab.eval_on_selector_all(
            "#chart circle", "dots => dots.map(dot => Number(dot.getAttribute('cy')))"
        )
        assert min(heights) > limit - 1e-6
        width = looked.tab.evaluate("document.documentElement.scrollWidth")
        assert width <= 390
        assert looked.complaints == []
    place.ledger.close()


@pytest.mark.slow
def test_the_demo_in_one_command(chromium):
    words = [sys.executable, "-m", "reticent", "serve", "--demo", "--page", "0"]
    with subprocess.Popen(words, stdout=-1, stderr=-1, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as command:
        assert command.stderr is not None
        address = next(found[0] for line in command.stderr if (found := re.findall(rb"http://\S+", line))).decode()
        with closing(Looked(chromium, address)) as looked:
            looked.says("#said", "was sent", 30)
            assert "visitor" in looked.tab.inner_text("#name")
            looked.tab.click("#stop")
            looked.tab.click("#really")
            out, _ = command.communicate(timeout=30)
            looked.says("#trouble", "was stopped")
            looked.says("#status", "Stopped")
    assert command.returncode == 0
    told = [json.loads(line) for line in out.splitlines()]
    assert told
    assert all(set(line) <= {"subject", "session", "step", "sensor", "symbol"} for line in told)
