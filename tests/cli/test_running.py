"""What is shown while a sweep runs."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from reticent.cli.running import Board, shown
from reticent.problem.bound import Confidence
from reticent.problem.enforcement import Penalty
from reticent.study.cell import Setting
from reticent.study.finite import SYNTHETIC, FiniteCell
from reticent.study.methods import METHODS
from reticent.study.run import PROGRESS, Done, Running
from tests.sweeps import made_up

SETTING = Setting(Confidence(0.8), Penalty(), METHODS["ppo"], 50.0)
CELL = FiniteCell(SYNTHETIC, SETTING, 0, 100, 10)


def limited(limit, seed=0):
    return replace(CELL, setting=replace(SETTING, bound=Confidence(limit)), seed=seed)


CELLS = [limited(limit, seed) for seed in range(3) for limit in (0.8, 0.9)]


def done(cell, cost, kept=False):
    return Done(cell, made_up(cell, cost=cost), kept)


def text(table, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]


def test_each_line_counts_what_is_done_running_and_left():
    board = Board(CELLS)
    headings = ["bound", "kept", "by", "method", "done", "running", "left", "best", "cost", "time", "left"]
    assert text(board.table(40))[0] == headings
    assert text(board.table(40))[-1] == ["all", "0", "0", "6", "?"]
    board.tell(done(CELLS[0], 9.0, kept=True)).tell(Running(tuple(CELLS[1:3])))
    board.tell(done(CELLS[2], 8.0)).tell(Running((CELLS[1], CELLS[3])))
    _, _, first, second, everything = text(board.table(40))
    # Three seconds per cell, two at once. What runs comes first.
    assert first == ["L_B", "0.9", "penalty", "PPO", "0", "2", "1", "4", "s"]
    assert second == ["L_B", "0.8", "penalty", "PPO", "2", "0", "1", "8.00", "2", "s"]
    assert everything == ["all", "2", "2", "2", "6", "s"]
    for cell in CELLS[1:2] + CELLS[3:]:
        board.tell(done(cell, 7.0))
    assert text(board.table(40))[-1] == ["all", "6", "0", "0"]


def test_what_does_not_fit_is_counted_and_problems_are_told_apart():
    cells = [limited(limit / 100) for limit in range(50, 99)]
    lines = text(Board(cells).table(24))
    assert len(lines) < 24
    assert lines[-1][:4] == ["all,", "33", "not", "shown"]
    others = [replace(SETTING, error_penalty=20.0), replace(SETTING, method=METHODS["a2c"])]
    several = Board([CELL, *(replace(CELL, setting=other) for other in others)])
    headings, *rows = text(several.table(40))
    assert "lambda" in headings
    assert "problem" not in headings
    assert any("A2C" in row for row in rows)


def test_lines_where_there_is_no_terminal(capsys):
    with shown(CELLS[:2]) as show:
        show(done(CELLS[0], 9.0, kept=True))
        show(Running((CELLS[1],)))
        show(done(CELLS[1], 8.25))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "2 cells; a line for each when it is done.",
        "kept  1 of 2: L_B 0.8, penalty, PPO, seed 0: cost 9.00",
        "done  2 of 2: L_B 0.9, penalty, PPO, seed 0: cost 8.25; 0 running, 0 s left",
    ]


def test_a_table_on_a_terminal(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=90, height=30)
    monkeypatch.setattr("reticent.cli.running.console", lambda: screen)
    with shown(CELLS[:2]) as show:
        show(Running(tuple(CELLS[:2])))
        PROGRESS.warning("belief 0: update 40, loss 1.2")
        show(done(CELLS[0], 9.5))
    drawn = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "best cost" in drawn
    assert "9.50" in drawn
    assert "belief 0: update 40, loss 1.2" in drawn


@pytest.mark.parametrize(("seconds", "words"), [(3.0, "6 s"), (100.0, "3 min"), (9000.0, "5.0 h")])
def test_times_in_words(seconds, words):
    board = Board(CELLS[:6:2])
    row = {**made_up(CELLS[0]), "make_seconds": seconds, "evaluate_seconds": 0.0}
    board.tell(Running((CELLS[0],))).tell(Done(CELLS[0], row))
    assert " ".join(text(board.table(40))[-1]).endswith(words)
