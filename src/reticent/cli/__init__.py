"""The command line: one frozen dataclass per command, one help line per field.

Results go to stdout (with --json, one object), progress and messages to stderr. Bad input ends with one sentence and
exit code 2. Heavy imports stay inside the commands, so that --help is quick.
"""

import signal
import sys
from typing import Any

import tyro

from reticent.cli.audit import AuditCommand
from reticent.cli.certify import Certify
from reticent.cli.data import Data
from reticent.cli.evaluate import Evaluate
from reticent.cli.export import Export
from reticent.cli.fit import Fit
from reticent.cli.ledger import LedgerCommand
from reticent.cli.report import ReportCommand
from reticent.cli.serve import Serve
from reticent.cli.simulate import Simulate
from reticent.cli.solve import Solve
from reticent.cli.study import Demo, Reproduce
from reticent.cli.sweep import SweepCommand
from reticent.cli.train import Train
from reticent.errors import InputError

COMMANDS: dict[str, Any] = {
    "demo": Demo,
    "reproduce": Reproduce,
    "solve": Solve,
    "train": Train,
    "evaluate": Evaluate,
    "certify": Certify,
    "audit": AuditCommand,
    "sweep": SweepCommand,
    "report": ReportCommand,
    "export": Export,
    "data": Data,
    "fit": Fit,
    "serve": Serve,
    "simulate": Simulate,
    "ledger": LedgerCommand,
}
RESUMED = (Demo, Reproduce, SweepCommand, Train)
DESCRIPTION = """Decides, reading by reading, which sensor may speak, so that a service learns the useful thing
and not the secret one. Start with `reticent demo`."""


def main() -> None:
    """Entry point of the `reticent` command."""
    command = tyro.extras.subcommand_cli_from_dict(
        COMMANDS, prog="reticent", description=DESCRIPTION, config=(tyro.conf.FlagCreatePairsOff,)
    )
    # A polite kill ends like Ctrl-C: workers are ended, what was finished is kept.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        command.run()
    except InputError as error:
        print(f"reticent: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        kept = " What was finished is kept; the same command goes on from there."
        print(f"\nreticent: interrupted.{kept if isinstance(command, RESUMED) else ''}", file=sys.stderr)
        raise SystemExit(128 + signal.SIGINT) from None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
