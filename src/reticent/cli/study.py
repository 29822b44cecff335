"""`reticent reproduce`."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from reticent.cli.data import RecordingsName, What, Where, check_codes, reading_of, source_of
from reticent.cli.terminal import stages
from reticent.errors import InputError
from reticent.study.choices import USUAL_CHOICES, Choices

if TYPE_CHECKING:
    from reticent.study.cell import Problem


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
    """Training runs per bound, by default 3 (to the letter on the first draw, 1 on the others); on recordings,
    rotations of who is measured, by default until everybody was."""
    steps: int | None = None
    """Environment steps per training run; by default 1,000,000, on recordings 200,000."""
    episodes: int | None = None
    """Episodes per evaluation; by default 100,000, on recordings 8,192."""
    draws: int | None = None
    """Draws of the problem's standard deviations, by default 5 to the letter, else 1 (synthetic)."""
    z_range: tuple[float, float] | None = None
    """The first and the last of the fifty symbols, which the paper leaves open; by default -4.5 and 7.5 (synthetic)."""
    look_back: int | None = None
    """How many of the last readings the learned belief sees; by default all, in the paper 2 (recordings)."""
    quick: bool = False
    """Fewer bounds, methods and steps, on recordings one rotation: under ten minutes on two cores."""
    to_the_letter: bool = False
    """The paper's agent, its printed cost and, on recordings, its readings and belief; the corrected ones beside."""
    choices: Annotated[Choices, arg(name="")] = USUAL_CHOICES
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Train, evaluate, draw."""
        self._check()
        out = self.out or Path(f"reticent-{self.study}{'-letter' if self.to_the_letter else ''}")
        problem = None if self.study == "synthetic" else self._recordings(self.study)
        run_shipped(self._spec, out, self.json, self._given, problem)

    def _check(self) -> None:
        for name in ("seeds", "steps", "episodes", "look_back", "draws"):
            given = getattr(self, name)
            if given is not None and given < (2 if name == "episodes" else 1):
                raise InputError(f"--{name.replace('_', '-')} is {given}, which is too few.")
        if self.choices != USUAL_CHOICES and not self.to_the_letter:
            raise InputError("What the paper leaves open is chosen for its own agent and cost: add --to-the-letter.")
        if self.study != "synthetic":
            if self.draws is not None or self.z_range is not None:
                raise InputError("--draws and --z-range are of the synthetic problem; recordings are what they are.")
        elif self.look_back is not None or self.where != Where() or self.what != What():
            raise InputError("The synthetic study reads no recordings: leave out what is said of them.")

    @property
    def _spec(self) -> str:
        """The name of the shipped spec."""
        recorded, quick = self.study != "synthetic", "-quick" if self.quick else ""
        if self.to_the_letter:
            return f"letter{'-recordings' if recorded else ''}{quick}"
        return f"{'recordings' if recorded else 'synthetic'}{quick}"

    @property
    def _given(self) -> dict[str, Any]:
        """What replaces that of the spec."""
        efforts = ("seeds", "steps", "episodes", "draws")
        given = {name: value for name in efforts if (value := getattr(self, name)) is not None}
        given |= {} if self.z_range is None else {"z_ranges": [list(self.z_range)]}
        chosen = {name: value for name, value in asdict(self.choices).items() if value is not None}
        return {**given, "choices": chosen}

    def _recordings(self, name: RecordingsName) -> "Problem":
        from reticent.study.learned import Conditions
        from reticent.study.recordings import Recordings

        check_codes(codes := self.what.codes)
        if codes == "learned":
            raise InputError(
                "Studies code readings by k-means: give --codes a number, or fit a model by `reticent fit`."
            )
        source, choices = source_of(name, self.where), self.choices
        draws = {"hidden_pairs": choices.hidden_pairs, "readings_per_pair": choices.readings_per_pair}
        conditions = Conditions(10, self.look_back, codes, **draws)
        with stages("reading the recordings"):
            return Recordings.of(source, reading_of(self.what), conditions)


def run_shipped(
    name: str, out: Path, as_json: bool, given: Mapping[str, Any] | None = None, problem: "Problem | None" = None
) -> None:
    """Run a spec that is shipped, and draw its page."""
    from reticent.cli.running import run_shown
    from reticent.report.write import write_report
    from reticent.study.plan import plan
    from reticent.study.run import on_all_cores
    from reticent.study.spec import SHIPPED, read_spec

    study, started = plan(read_spec(SHIPPED / f"{name}.toml", problem, given)), time.perf_counter()
    run_shown(study, out, on_all_cores)
    with stages("drawing the report"):
        page = write_report(out)
    seconds = time.perf_counter() - started
    if as_json:
        record = {"report": str(page), "results": str(out / "results" / "*.parquet"), "cells": len(study.cells)}
        print(json.dumps({**record, "seconds": seconds}))
    else:
        _print_recordings(out) if problem else _print_synthetic(out)
        _print_verdicts(out)
        print(f"Report: {page.resolve()} ({seconds:.0f} s)")


def _print_recordings(out: Path) -> None:
    from reticent.report.recordings import recordings_rows, recordings_table
    from reticent.report.results import read_results

    shown = {"policy": 0, "bound": 1, "tau": 2, "U": 3, "S": 4, "gap": 5, "over": 6, "U fix": 9, "S fix": 12}
    # Intervals are on the page: there is no room for them here.
    table = recordings_table(recordings_rows(read_results(out)))
    rows = [[row[place].partition(" [")[0] for place in shown.values()] for row in table]
    _print_table("Balanced accuracies in %, on people whom nothing was learned from", list(shown), 2, rows)
    print("U, S: by the best attacker that was trained on the policy's own traces. gap: U minus S.")
    print("fix: by an LSTM that was trained on random traces, as in the paper. over: episodes that crossed the bound.")


def _print_synthetic(out: Path) -> None:
    from reticent.report.results import read_results
    from reticent.report.tables import summary

    results = read_results(out)
    headings = ["bound", "kept by", "method", "cost", "tau", "U right", "S right", "over"]
    _print_table("Estimates, mean over draws and seeds", headings, 3, summary(results.rows))
    print("cost: tau + 50 x chance of a wrong guess of U + C_B if the bound was crossed; kept by paper: as printed.")
    print("tau: readings released. U right, S right: accuracy of the provider's best guess.")
    print("over: episodes that ever crossed the bound.")
    for name, promised in results.promises.items():
        print(f"{name}: {promised}.")


def _print_verdicts(out: Path) -> None:
    """What a study to the letter says of each claim of the paper, one word first."""
    from reticent.report.paper.studies import found
    from reticent.report.results import read_results

    for claim, letter, corrected in found(read_results(out).rows):
        print(f"{letter.word} to the letter, {corrected.word} corrected: {claim.says}")


def _print_table(title: str, headings: list[str], words: int, rows: list[list[str]]) -> None:
    """The first columns are words, the others numbers."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
