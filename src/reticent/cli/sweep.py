"""`reticent sweep`."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

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
    """The Ray cluster's address; by default a cluster of this machine is started and stopped."""
    out: Path | None = None
    """Folder for the results; cells finished there are not run again. By default reticent-SPEC."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Run the missing cells and show progress."""
        from reticent.cli.running import run_shown
        from reticent.study.plan import plan
        from reticent.study.spec import read_spec

        if self.address is not None and self.on != "ray":
            raise InputError("--address is that of a Ray cluster: add --on ray.")
        study, started = plan(read_spec(self.spec)), time.perf_counter()
        out = self.out or Path(f"reticent-{self.spec.stem}")
        new = run_shown(study, out, self._runner())
        self._print(out, len(study.cells), new, study.left_out, time.perf_counter() - started)

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
