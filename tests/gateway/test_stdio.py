"""Lines in, lines out: nothing else on standard output, and every end is a clean one."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from dataclasses import fields
from pathlib import Path

import pytest

from reticent.cli.broker import BrokerOptions
from reticent.cli.serve import Serve
from reticent.errors import InputError
from reticent.gateway.messages import LONGEST_MESSAGE
from reticent.gateway.stdio import Lines, Sink, serve_stdio
from tests.gateway.parts import Place, write_policy
from tests.gateway.places import FilePlace

SERVE = [sys.executable, "-m", "reticent", "serve"]


def reading(subject="ada", symbol="1.87", **more) -> bytes:
    """What every sensor says, as lines."""
    fields = {"subject": subject, "symbol": symbol, **more}
    return b"".join(json.dumps({"sensor": sensor, **fields}).encode() + b"\n" for sensor in ("a0", "a1", "a2"))


def test_lines_are_put_together_and_long_ones_cut():
    lines = Lines()
    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o\n\n \nthree") == [b"two"]
    assert lines.rest() == [b"three"]
    for _ in range(100):
        assert lines.feed(b"x" * LONGEST_MESSAGE) == []
        assert len(lines._begun) <= LONGEST_MESSAGE + 1
    [long] = lines.feed(b"\n")
    assert len(long) > LONGEST_MESSAGE
    assert lines.feed(b"next\n") == [b"next"]


class Piped(Place):
    """A gateway between two pipes."""

    def serve(self, *pieces: bytes, ended=lambda: False) -> list[dict]:
        source, writes = os.pipe()
        reads, sink = os.pipe()
        for piece in pieces:
            os.write(writes, piece)
        os.close(writes)
        try:
            serve_stdio(self.gateway, source, sink, ended)
        finally:
            os.close(sink)
            os.close(source)
        with os.fdopen(reads, "rb") as out:
            return [json.loads(line) for line in out.read().splitlines() if line]


def test_readings_in_releases_out(tmp_path):
    place = Piped(tmp_path)
    told = place.serve(reading() * 8)
    assert [line["step"] for line in told] == [0, 1, 2, 3, 4]
    assert told[-1] == {"subject": "ada", "session": 0, "step": 4, "sensor": "stop"}
    assert all(set(line) == {"subject", "session", "step", "sensor", "symbol"} for line in told[:-1])
    assert place.ledger.undelivered().entries == []
    place.ledger.close()


def test_garbage_is_counted_and_does_no_harm(tmp_path):
    place = Piped(tmp_path)
    garbage = b'\n\xff\xfe\n{"subject": \n[]\n{"subject": "a/b", "sensor": "a0", "symbol": "1.87"}\n'
    told = place.serve(garbage, b"x" * (LONGEST_MESSAGE + 5) + b"\n", reading(symbol="nothing like it"), reading())
    assert place.gateway.counters["malformed"] == 4
    assert place.gateway.counters["oversized"] == 1
    assert place.gateway.counters["unknown"] == 1
    assert len(told) >= 1
    place.ledger.close()


def test_with_a_shared_ledger_a_line_must_say_its_time(tmp_path):
    place = Piped(tmp_path)
    place.ledger.shared = True
    assert place.serve(reading()) == []
    assert place.gateway.counters["malformed"] == 3
    assert len(place.serve(reading(time=place.clock.now))) == 1
    place.ledger.close()


def test_what_was_not_delivered_comes_first(tmp_path):
    place = Piped(tmp_path)
    [lost] = place.gateway.handle([place.message()])
    place.again()
    told = place.serve()
    assert told == [json.loads(lost.to_json())]
    assert place.ledger.undelivered().entries == []
    place.ledger.close()


def lines_of(written: bytes) -> list[dict]:
    """As the guide tells readers: what is empty or no JSON is skipped."""
    found = []
    for line in written.splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def test_what_was_cut_off_is_not_glued_to_what_comes(tmp_path):
    """Killed within a line, on an output that outlives the process."""
    place = Piped(tmp_path)
    [lost] = place.gateway.handle([place.message()])
    whole = lost.to_json()
    for length in range(1, len(whole) + 1):
        place.again()
        with (tmp_path / "out").open("w+b") as out:
            out.write(whole[:length])
            out.flush()
            Sink(place.gateway, out.fileno()).send(place.gateway.resend())
            out.seek(0)
            found = lines_of(out.read())
        assert found[-1] == json.loads(whole)
        assert found[:-1] == ([json.loads(whole)] if length == len(whole) else [])
        # As if the mark had not reached the disk either.
        FilePlace(str(place.where)).raw("DELETE FROM delivered")
    place.ledger.close()


def test_with_a_shared_ledger_another_may_have_delivered_what_was_cut_off(tmp_path):
    place = Piped(tmp_path)
    place.ledger.shared = True
    sink = Sink(place.gateway, os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))
    for _ in range(2):
        sink.send(place.gateway.handle([place.message(time=place.clock.now)]))
        place.clock.now += 1
    written = (tmp_path / "out").read_bytes()
    assert written.startswith(b"\n{")
    assert written.count(b"\n") == 3
    os.close(sink._descriptor)
    place.ledger.close()


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="this system cannot make a pipe small")
def test_killed_while_a_pipe_is_full(policy):
    """It waits in the middle of a line until it is killed; the next one writes into the same pipe."""
    reads, sink = os.pipe()
    fcntl.fcntl(reads, fcntl.F_SETPIPE_SZ, 4096)
    everybody = b"".join(reading(f"subject {i}") for i in range(80))
    with subprocess.Popen([*SERVE, policy], stdin=-1, stdout=sink, stderr=subprocess.DEVNULL) as running:
        assert running.stdin is not None
        running.stdin.write(everybody)
        running.stdin.flush()
        while int.from_bytes(fcntl.ioctl(reads, termios.FIONREAD, bytes(4)), sys.byteorder) < 4096:
            time.sleep(0.02)
        running.kill()
    written = os.read(reads, 8192)
    assert not written.endswith(b"\n")
    with subprocess.Popen([*SERVE, policy], stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.DEVNULL):
        os.close(sink)
        with os.fdopen(reads, "rb") as rest:
            written += rest.read()
    assert {line["subject"] for line in lines_of(written)} == {f"subject {i}" for i in range(80)}


def test_a_reader_that_is_gone_ends_it_and_nothing_is_lost(tmp_path):
    place = Piped(tmp_path)
    source, writes = os.pipe()
    reads, sink = os.pipe()
    os.close(reads)
    os.write(writes, reading())
    with pytest.raises(InputError, match="sent again"):
        serve_stdio(place.gateway, source, sink, lambda: False)
    assert len(place.ledger.undelivered().entries) >= 1
    for each in (source, writes, sink):
        os.close(each)
    place.ledger.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_ends_it_with_a_sentence(tmp_path):
    policy = write_policy(tmp_path / "policy.safetensors")
    with open("/dev/full", "wb") as full:
        serving = subprocess.run([*SERVE, policy], input=reading(), stdout=full, stderr=-1, check=False)
        words = [sys.executable, "-m", "reticent", "simulate", "synthetic", "--episodes", "1"]
        playing = subprocess.run(words, stdout=full, stderr=-1, check=False)
    assert (serving.returncode, playing.returncode) == (2, 2)
    assert b"The releases cannot be written (No space left on device). What did not get through" in serving.stderr
    assert b"The readings cannot be written (No space left on device)" in playing.stderr
    assert b"Traceback" not in serving.stderr + playing.stderr


def test_a_stop_or_a_signal_ends_it_although_the_input_goes_on(tmp_path):
    place = Piped(tmp_path)
    source, writes = os.pipe()
    asked = threading.Event()
    for end in (asked.set, place.gateway.stop):
        asked.clear()
        timer = threading.Timer(0.3, end)
        timer.start()
        serve_stdio(place.gateway, source, writes, asked.is_set)
        # It went on until then.
        assert asked.is_set() or place.gateway.stopped
        timer.join()
    place.ledger.close()


@pytest.fixture
def policy(tmp_path):
    return write_policy(tmp_path / "policy.safetensors")


def test_the_command(policy):
    done = subprocess.run([*SERVE, policy], input=reading() * 8, capture_output=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["step"] for line in told] == [0, 1, 2, 3, 4]
    assert str(policy.with_suffix(".ledger.db")) in done.stderr.decode()
    assert "released 4" in done.stderr.decode()
    again = subprocess.run([*SERVE, policy], input=reading(), capture_output=True, check=True)
    assert again.stdout == b""
    assert b"resting 3" in again.stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(policy, how):
    with subprocess.Popen([*SERVE, policy], stdin=-1, stdout=-1, stderr=-1) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(reading())
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["step"] == 0
        running.send_signal(how)
        assert running.wait(20) == 0
        assert b"ended" in running.stderr.read()


def test_the_command_says_what_is_wrong(policy, tmp_path):
    for words, sentence in [
        ({}, "Give either a policy file"),
        ({"policy": tmp_path / "none.safetensors"}, "There is no policy file"),
        ({"policy": policy, "rest": -1.0}, "--rest"),
        ({"policy": policy, "ledger": str(tmp_path)}, "not a regular file"),
        ({"policy": policy, "demo": True}, "Give either a policy file"),
        ({"demo": True, "ledger": "mine.db"}, "leave out --ledger"),
        ({"policy": policy, "home_assistant": True}, "--on mqtt"),
        ({"policy": policy, "page": (1, 2)}, "one port"),
    ]:
        with pytest.raises(InputError, match=sentence):
            Serve(**words).run()


def test_every_option_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
    names = {field.name for kind in (Serve, BrokerOptions) for field in fields(kind)} - {"policy", "mqtt"}
    missing = [name for name in names if f"--{name.replace('_', '-')}" not in page]
    assert missing == []


def test_a_second_gateway_on_the_same_ledger_is_refused(policy):
    with subprocess.Popen([*SERVE, policy], stdin=-1, stdout=-1, stderr=-1) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(reading())
        running.stdin.flush()
        running.stdout.readline()
        second = subprocess.run([*SERVE, policy], input=reading(), capture_output=True, check=False)
        assert second.returncode == 2
        assert second.stdout == b""
        running.stdin.close()
        assert running.wait(20) == 0


def test_only_numpy_and_what_belongs_to_python_is_loaded(policy):
    """Serving lines takes none of the heavy packages, nor those of other transports."""
    code = (
        "import sys; from reticent.cli import main; sys.argv[1:] = sys.argv[2:]; "
        "main(); heavy = 'jax equinox scipy polars sklearn altair paho psycopg'.split(); "
        "sys.exit(','.join(name for name in heavy if name in sys.modules) or 0)"
    )
    words = [sys.executable, "-c", code, "reticent", "serve", str(policy)]
    done = subprocess.run(words, input=reading(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert len(done.stdout.splitlines()) >= 1
