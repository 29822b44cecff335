"""Progress where output is not a terminal: lines, with the time that is left."""

import time

import pytest

from reticent.cli import terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


def test_parts_say_what_is_done_and_how_long_the_rest_takes(clock, capsys):
    with terminal.parts_shown("loading", 4) as tell:
        tell("first")
        clock[0] = 10.0
        tell("second")
        clock[0] = 20.0
        tell("third")
    assert capsys.readouterr().err.splitlines() == [
        "    0 s  loading",
        "    0 s  First",
        "   10 s  Second, about 30 s left",
        "   20 s  Third, about 20 s left",
    ]


def test_work_is_shown_every_other_second_at_most(clock, capsys):
    with terminal.work_shown("compiling") as show:
        for second in range(1, 9):
            clock[0] = float(second)
            show("training", 100 * second, 1_000, "cost 20")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "    0 s  compiling"
    assert lines[-1] == "    8 s  Training, cost 20: 800 of 1,000, about 2 s left"
    assert len(lines) == 5


def test_what_came_too_early_is_said_a_little_later_unless_there_is_something_newer(capsys):
    with terminal.stages("reading", between=0.2) as tell:
        tell("dropped")
        tell("a long one")
        time.sleep(0.6)
    said = [line.partition("s  ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["reading", "a long one"]
