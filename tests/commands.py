"""The command line in this process, as a user meets it."""

import subprocess
import sys
from pathlib import Path

from reticent.cli import main


def commands(monkeypatch, capsys, *first):
    """Something that runs `reticent FIRST... WORDS...` and returns exit code, stdout, stderr."""

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["reticent", *first, *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def run_python(code):
    """What a fresh interpreter prints."""
    words, root = [sys.executable, "-c", code], Path(__file__).parents[1]
    return subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout
