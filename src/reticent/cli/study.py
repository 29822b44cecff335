"""`reticent demo` and `reticent reproduce`."""

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from reticent.cli.data import RecordingsName, What, Where, check_codes, reading_of, source_of
from reticent.cli.terminal import console, progress_bar, shown_beside
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.study.synthetic import Setting


@dataclass(frozen=True)
class Demo:
    """Run the paper's synthetic study in a quick setting: some ten minutes on two cores."""

    out: Path = Path("reticent-demo")
    """Folder for the report, figures and results; finished parts found there are not run again."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Train, evaluate, draw."""
        from reticent.study.synthetic import LOOKAHEAD, QUICK_EXTRAS, Setting

        setting = Setting(1, 250_000, 20_000, (LOOKAHEAD, "random sensor"), QUICK_EXTRAS)
        _study("The synthetic study, quick setting", setting, self.out, self.json)


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a study of the paper, synthetic or on recordings: figures, tables and a self-contained report."""

    study: Annotated[
        Positional[Literal["synthetic", "motionsense", "dsa", "smoking", "ut-complex", "table"]], arg(metavar="STUDY")
    ]
    """synthetic, or recordings: motionsense, dsa, smoking (the paper's), ut-complex, table (your own)."""
    where: Annotated[Where, arg(name="")] = field(default_factory=Where)
    what: Annotated[What, arg(name="")] = field(default_factory=What)
    out: Path | None = None
    """Folder for the report, figures and results; finished parts found there are not run again. By default
    reticent-STUDY."""
    seeds: int | None = None
    """Training runs per bound; on recordings, rotations of who is measured. By default 3, or until everybody was."""
    steps: int | None = None
    """Environment steps per training run; by default 1,000,000, on recordings 200,000."""
    episodes: int | None = None
    """Episodes per evaluation; by default 100,000, on recordings 8,192."""
    look_back: int | None = None
    """How many of the last readings the learned belief sees; by default all. The paper has 2 (recordings)."""
    quick: bool = False
    """One rotation, fewer bounds and steps: under ten minutes on two cores (recordings)."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Train, evaluate, draw."""
        for name in ("seeds", "steps", "episodes", "look_back"):
            given = getattr(self, name)
            if given is not None and given < (2 if name == "episodes" else 1):
                raise InputError(f"--{name.replace('_', '-')} is {given}, which is too few.")
        out = self.out or Path(f"reticent-{self.study}")
        if self.study == "synthetic":
            self._synthetic(out)
        else:
            self._recordings(self.study, out)

    def _synthetic(self, out: Path) -> None:
        from reticent.policy.heuristics import BASELINES
        from reticent.study.synthetic import EXTRAS, Setting

        if self.quick or self.look_back is not None or self.where != Where() or self.what != What():
            raise InputError("The synthetic study reads no recordings; for a quick one, run `reticent demo`.")
        efforts = (self.seeds or 3, self.steps or 1_000_000, self.episodes or 100_000)
        _study("The synthetic study of the paper", Setting(*efforts, BASELINES, EXTRAS), out, self.json)

    def _recordings(self, name: RecordingsName, out: Path) -> None:
        from reticent.report.recordings import write_recordings_report
        from reticent.study.recordings import QUICK, Setting, recorded_readings, study_recordings
        from reticent.study.run import PROGRESS

        setting = QUICK if self.quick else Setting()
        check_codes(self.what.codes)
        given = {"steps": self.steps, "episodes": self.episodes, "look_back": self.look_back, "codes": self.what.codes}
        setting = replace(setting, **{name: value for name, value in given.items() if value is not None})
        source, started = source_of(name, self.where), time.perf_counter()
        turns, reading = self.seeds or (1 if self.quick else None), reading_of(self.what)
        with console().status("Reading the recordings ..."):
            recorded_readings(source, reading)
        with progress_bar() as progress:
            bar = progress.add_task("Cells", total=None)

            def tell(cell: Any, was_there: bool, total: int) -> None:
                progress.console.print(f"{'kept' if was_there else 'done'}  {cell.title}", highlight=False)
                progress.update(bar, advance=1, total=total)

            with shown_beside(bar, progress, PROGRESS):
                results = study_recordings(source, reading, setting, turns, out, tell)
            progress.console.print("Drawing the report ...")
        page = write_recordings_report(out)
        seconds = time.perf_counter() - started
        if self.json:
            print(json.dumps({"report": str(page), "results": str(results), "seconds": seconds}))
        else:
            _print_recordings(results)
            print(f"Report: {page.resolve()} ({seconds:.0f} s)")


def _print_recordings(results: Path) -> None:
    import polars as pl
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from reticent.report.recordings import recordings_table

    shown = {"policy": 0, "bound": 1, "tau": 2, "U": 3, "S": 4, "gap": 5, "over": 6, "U fixed": 9, "S fixed": 12}
    title = "Balanced accuracies in %, on people never learned from"
    table = Table(title=title, box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for heading in shown:
        table.add_column(heading, justify="left" if heading in ("policy", "bound") else "right", no_wrap=True)
    for row in recordings_table(pl.read_parquet(results)):
        # Intervals are on the page: there is no room for them here.
        table.add_row(*(row[place].partition(" [")[0] for place in shown.values()))
    Console().print(table)
    print("U, S: by the best attacker that was trained on the policy's own traces. gap: U minus S.")
    print(
        "fixed: by an LSTM that was trained on random traces, as in the paper. over: episodes that crossed the bound."
    )


def _study(title: str, setting: "Setting", out: Path, as_json: bool) -> None:
    from reticent.report.page import write_report
    from reticent.study.run import run_study
    from reticent.study.synthetic import plan

    cells, started = plan(setting), time.perf_counter()
    with progress_bar() as progress:
        bar = progress.add_task("Cells", total=len(cells))

        def tell(cell: Any, was_there: bool) -> None:
            progress.console.print(f"{'kept' if was_there else 'done'}  {cell.policy}, {cell.title}", highlight=False)
            progress.advance(bar)

        results = run_study(cells, out, title, tell)
        progress.console.print("Drawing the report ...")
    page = write_report(out)
    seconds = time.perf_counter() - started
    if as_json:
        print(json.dumps({"report": str(page), "results": str(results), "cells": len(cells), "seconds": seconds}))
    else:
        _print_study(results)
        print(f"Report: {page.resolve()} ({seconds:.0f} s)")


def _print_study(results: Path) -> None:
    import polars as pl
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from reticent.report.tables import REPLACING, summary

    table = Table(title="Estimates, mean over seeds", box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for heading in ("bound", "policy", "cost", "tau", "U right", "S right", "over"):
        table.add_column(heading, justify="left" if heading in ("bound", "policy") else "right", no_wrap=True)
    rows = summary(pl.read_parquet(results)).rows()
    for bound, enforce, policy, *numbers in rows:
        table.add_row(bound, f"{enforce}: {policy}" if enforce in REPLACING else policy, *numbers)
    Console().print(table)
    print("cost: tau + 50 x chance of a wrong guess of U + 50 if the bound was crossed.")
    print("tau: readings released. U right, S right: accuracy of the provider's best guess.")
    print("over: episodes that ever crossed the bound. withhold, coarsen: the guarantee, which never does.")
    if any(enforce == "answer" for _, enforce, *_ in rows):
        print("answer: no readings, one guess of U; made so that it does not, with a chance of error of 0.1 %.")
