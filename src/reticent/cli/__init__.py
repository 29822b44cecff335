"""The command line: one frozen dataclass per command, one help line per field.

Results go to stdout (with --json, one object), progress and notes to stderr (with --quiet, not at all). Invalid
input ends with one sentence and exit code 2. Heavy imports stay inside the commands, so that --help is quick.
"""

import os
import signal
import sys
from typing import Any

import tyro

from reticent import __version__
from reticent.cli.audit import AuditCommand
from reticent.cli.calibrate import Calibrate
from reticent.cli.certify import Certify
from reticent.cli.configuration import with_configured
from reticent.cli.data import Data
from reticent.cli.demo import Demo
from reticent.cli.docs import Docs
from reticent.cli.evaluate import Evaluate
from reticent.cli.export import Export
from reticent.cli.fit import Fit
from reticent.cli.ledger import LedgerCommand
from reticent.cli.overview import check_words, overview, without_empty_defaults
from reticent.cli.report import ReportCommand
from reticent.cli.serve import Serve
from reticent.cli.simulate import Simulate
from reticent.cli.solve import Solve
from reticent.cli.study import Reproduce
from reticent.cli.sweep import SweepCommand
from reticent.cli.terminal import be_quiet
from reticent.cli.train import Train
from reticent.errors import InputError

COMMANDS: dict[str, Any] = {
    "demo": Demo,
    "reproduce": Reproduce,
    "solve": Solve,
    "train": Train,
    "evaluate": Evaluate,
    "certify": Certify,
    "calibrate": Calibrate,
    "audit": AuditCommand,
    "sweep": SweepCommand,
    "report": ReportCommand,
    "export": Export,
    "data": Data,
    "fit": Fit,
    "serve": Serve,
    "simulate": Simulate,
    "ledger": LedgerCommand,
    "docs": Docs,
}
RESUMED = (Demo, Reproduce, SweepCommand, Train)
QUIET = "--quiet"


def main() -> None:
    """Entry point of the `reticent` command."""
    words = [word for word in sys.argv[1:] if word != QUIET]
    be_quiet(len(words) < len(sys.argv) - 1)
    if words == ["--version"]:
        print(f"reticent {__version__}")
        return
    if words in ([], ["-h"], ["--help"]):
        print(overview(), end="")
        return
    # Attackers run side by side, one thread each: OpenMP threads that wait for a core would spin.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # SIGTERM ends like Ctrl-C: workers are ended, what was finished is kept.
    signal.signal(signal.SIGTERM, _interrupt)
    command = None
    try:
        check_words(words, COMMANDS)
        command = _parsed(words)
        command.run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads has seen enough (`| head`). What Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
    except InputError as error:
        print(f"reticent: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        kept = " What was finished is kept; run the same command to continue."
        print(f"\nreticent: interrupted.{kept if isinstance(command, RESUMED) else ''}", file=sys.stderr)
        raise SystemExit(128 + signal.SIGINT) from None


def _parsed(words: list[str]) -> Any:
    if words[:1] == ["serve"]:
        words = with_configured(words, Serve.options())
    commands = {name: without_empty_defaults(command) for name, command in COMMANDS.items()}
    config = (tyro.conf.FlagCreatePairsOff,)
    return tyro.extras.subcommand_cli_from_dict(commands, prog="reticent", args=words, config=config)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
