"""`reticent report`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from reticent.cli.terminal import stages

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ReportCommand:
    """Draw the report of a results folder: a sweep, finished or not, with its best settings; a study; or an audit."""

    folder: Annotated[Positional[Path], arg(metavar="DIR")]
    """A folder written by `sweep`, `demo`, `reproduce`, `audit` or `evaluate --out`."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Draw from what is saved; nothing is run again."""
        from reticent.report.write import write_report

        settings = self._settings()
        with stages("drawing the report"):
            page = write_report(self.folder)
        if self.json:
            found = {} if settings is None else {"settings": settings.to_dicts()}
            print(json.dumps({"report": str(page), **found}))
        else:
            if settings is not None:
                _print_fronts(settings)
            print(f"Report: {page.resolve()}")

    def _settings(self) -> "pl.DataFrame | None":
        """Those of a sweep, with their fronts."""
        from reticent.report.results import read_results, read_study
        from reticent.report.sweep import comparable, with_fronts
        from reticent.report.write import AUDIT, DAYS

        if any((self.folder / name).is_file() for name in (AUDIT, DAYS)) or read_study(self.folder)["page"] != "sweep":
            return None
        return with_fronts(comparable(read_results(self.folder)))


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
