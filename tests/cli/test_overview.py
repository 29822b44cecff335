"""`reticent --help`, the nearest match of what is mistyped, and what help says of defaults."""

import re
import shlex
import sys

import pytest

from reticent import cli
from reticent.cli import COMMANDS
from reticent.cli.overview import JOBS, check_words, options, overview
from reticent.cli.train import Train
from reticent.errors import InputError


@pytest.fixture
def reticent(monkeypatch, capsys):
    """Run a command; returns exit code, stdout, stderr."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["reticent", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return call


def test_every_command_has_one_job_and_one_example_that_its_parser_knows():
    named = [name for commands in JOBS.values() for name in commands]
    assert sorted(named) == sorted(COMMANDS)
    for commands in JOBS.values():
        for name, (_, example) in commands.items():
            program, *words = shlex.split(example.partition("|")[0])
            assert (program, words[0]) == ("reticent", name)
            check_words(words, COMMANDS)
    assert max(map(len, overview().splitlines())) <= 95


def test_options_of_nested_records_are_known():
    found = list(options(Train))
    assert {"--out", "--confidence", "--time-cost", "--quick"} <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["trian"], "Did you mean train?"),
        (["train", "x.json", "--confidnce", "0.8"], "Did you mean --confidence?"),
        (["train", "x.json", "--confidence=0.8", "--time_cots=1"], "Did you mean --time-cost?"),
        (["serve", "--demo", "--pgae"], "Did you mean --page?"),
    ],
)
def test_what_is_mistyped_gets_one_line_with_the_nearest_match(reticent, words, nearest):
    code, out, err = reticent(*words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert nearest in err


def test_what_is_like_nothing_has_no_match():
    with pytest.raises(InputError, match=r"has no option --xyzzy. `reticent train --help`"):
        check_words(["train", "--xyzzy"], COMMANDS)


@pytest.mark.parametrize("command", list(COMMANDS))
def test_help_shows_defaults_as_values(reticent, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = reticent(command, "--help")
    assert code == 0
    assert re.findall(r"\(default:\s*(None|False|)\)|\{None", out) == []
    # The box of the options; the sentence above it is wrapped by the terminal.
    assert max(map(len, out.partition("options")[2].splitlines())) <= 80
