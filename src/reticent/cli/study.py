"""`reticent demo` and `reticent reproduce`."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import Positional

from reticent.cli.terminal import progress_bar
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.study.synthetic import Setting


@dataclass(frozen=True)
class Demo:
    """Run the paper's synthetic study in a quick setting: about five minutes on two cores."""

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
    """Reproduce a study of the paper: figures, tables and a self-contained report."""

    study: Positional[Literal["synthetic"]]
    """Which study."""
    out: Path = Path("reticent-synthetic")
    """Folder for the report, figures and results; finished parts found there are not run again."""
    seeds: int = 3
    """Training runs per bound."""
    steps: int = 1_000_000
    """Environment steps per training run."""
    episodes: int = 100_000
    """Episodes per evaluation."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Train, evaluate, draw."""
        from reticent.study.synthetic import BASELINES, EXTRAS, Setting

        for name in ("seeds", "steps", "episodes"):
            if getattr(self, name) < (2 if name == "episodes" else 1):
                raise InputError(f"--{name} is {getattr(self, name)}, which is too few.")
        setting = Setting(self.seeds, self.steps, self.episodes, BASELINES, EXTRAS)
        _study("The synthetic study of the paper", setting, self.out, self.json)


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

    from reticent.report.tables import GUARANTEED, summary

    table = Table(title="Estimates, mean over seeds", box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for heading in ("bound", "policy", "cost", "tau", "U right", "S right", "over"):
        table.add_column(heading, justify="left" if heading in ("bound", "policy") else "right", no_wrap=True)
    rows = summary(pl.read_parquet(results)).rows()
    for bound, enforce, policy, *numbers in rows:
        table.add_row(bound, f"{enforce}: {policy}" if enforce in GUARANTEED else policy, *numbers)
    Console().print(table)
    print("cost: tau + 50 x chance of a wrong guess of U + 50 if the bound was crossed.")
    print("tau: readings released. U right, S right: accuracy of the provider's best guess.")
    print("over: episodes that ever crossed the bound. withhold, coarsen: the guarantee, which never does.")
    if any(enforce == "answer" for _, enforce, *_ in rows):
        print("answer: no readings, one guess of U; made so that it does not, with a chance of error of 0.1 %.")
