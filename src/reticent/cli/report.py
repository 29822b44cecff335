"""`reticent report`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from reticent.cli.terminal import console
from reticent.errors import InputError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ReportCommand:
    """Draw the report of what a folder holds: a sweep, finished or not, with its best settings; a study; an audit."""

    folder: Annotated[Positional[Path], arg(metavar="DIR")]
    """The folder that `sweep`, `demo`, `reproduce` or `audit` has written."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Draw from what is saved; nothing is run again."""
        if (self.folder / "audit.json").is_file():
            from reticent.report.audit import write_audit_report

            return self._print(write_audit_report, {})
        provenance = _provenance(self.folder)
        if "sweep" in provenance:
            return self._sweep()
        if "about" in provenance:
            from reticent.report.recordings import write_recordings_report

            return self._print(write_recordings_report, {})
        from reticent.report.page import write_report

        return self._print(write_report, {})

    def _sweep(self) -> None:
        from reticent.report.sweep import read_results, with_fronts, write_sweep_report

        if not any((self.folder / "results").glob("*.parquet")):
            raise InputError(f"No cell of the sweep in {str(self.folder)!r} is finished yet.")
        settings = with_fronts(read_results(self.folder))
        if not self.json:
            _print_fronts(settings)
        self._print(write_sweep_report, {"settings": settings.to_dicts()})

    def _print(self, write: Any, found: dict[str, Any]) -> None:
        with console().status("Drawing the report ..."):
            page = write(self.folder)
        if self.json:
            print(json.dumps({"report": str(page), **found}))
        else:
            print(f"Report: {page.resolve()}")


def _provenance(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "provenance.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{str(folder)!r} is not a folder of a sweep, a study or an audit.") from error


def _print_fronts(settings: "pl.DataFrame") -> None:
    import polars as pl
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from reticent.report.sweep import APART, FRONTS, sweep_table

    best = settings.filter(pl.col("fronts") != "").sort(*APART, "accuracy_secret", "spent_bits")
    headings, rows = sweep_table(best)
    title = "Settings that no other beats, mean over seeds"
    table = Table(title=title, box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    numbers = headings.index("cost")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < numbers else "right", no_wrap=place >= numbers)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    for front in FRONTS:
        print(f"{front.letter}: {front.words}.")
    print("Estimates. U, S: right guesses in %. bits: said about S. over: episodes that crossed the bound, in %.")
