"""`reticent sweep`."""

import json
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from reticent.cli.terminal import console
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.study.run import Runner


@dataclass(frozen=True)
class SweepCommand:
    """Train and evaluate every combination of a sweep file, here or on a Ray cluster: see `reticent docs sweep`."""

    spec: Annotated[Positional[Path], arg(metavar="SPEC.toml")]
    """Problems, bounds, enforcements, methods, prices and seeds."""
    on: Literal["local", "ray"] = "local"
    """`local`: one worker per core of this machine. `ray`: one task per core of a Ray cluster."""
    address: str | None = None
    """The Ray cluster's address; by default one is started on this machine, and ended."""
    out: Path | None = None
    """Folder for the results; what is finished there is not run again. By default reticent-SPEC."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Run what is missing, showing how it goes."""
        from reticent.cli.sweep_table import shown
        from reticent.study.run import Done
        from reticent.study.sweep import prepare, read_sweep, run_sweep

        if self.address is not None and self.on != "ray":
            raise InputError("--address is that of a Ray cluster: add --on ray.")
        sweep, started = read_sweep(self.spec), time.perf_counter()
        out, run = self.out or Path(f"reticent-{self.spec.stem}"), self._runner()
        messages = [f"Left out: {reason}" for reason in sweep.left_out]
        if aside := prepare(sweep, out):
            messages.append(f"{aside} results in {out} are of other cells or settings: moved to {out / 'set-aside'}.")
        for message in messages:
            console().print(message, highlight=False, soft_wrap=True)
        new = 0
        with shown(sweep.cells) as show, closing(run_sweep(sweep, out, run)) as events:
            for event in events:
                new += isinstance(event, Done) and not event.kept
                show(event)
        self._print(out, len(sweep.cells), new, sweep.left_out, time.perf_counter() - started)

    def _runner(self) -> "Runner":
        from reticent.study.cluster import on_ray
        from reticent.study.run import on_all_cores

        return on_ray(self.address) if self.on == "ray" else on_all_cores

    def _print(self, out: Path, cells: int, new: int, left_out: list[str], seconds: float) -> None:
        results = str(out / "results" / "*.parquet")
        if self.json:
            record = {"results": results, "cells": cells, "new": new, "left_out": left_out, "seconds": seconds}
            print(json.dumps(record))
        else:
            print(f"{cells} cells, of which {new} new ({seconds:.0f} s): {results}")
            print(f"Next: reticent report {out}")
