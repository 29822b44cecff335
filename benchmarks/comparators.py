"""What else one could do: accuracy on S under the same bounds, and at the same accuracy on U."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.catalogue import Measured, Rows
from benchmarks.record import REPOSITORY
from reticent.report.results import read_results

USEFUL = (0.45, 0.5, 0.55, 0.6, 0.65, 0.7)
NUMBERS = ("cost", "releases", "accuracy_useful", "accuracy_secret", "violation_rate")


def synthetic() -> Measured:
    folder, spec = REPOSITORY / "results" / "comparators", Path(__file__).with_suffix(".toml")
    subprocess.run([sys.executable, "-m", "reticent", "sweep", str(spec), "--out", str(folder)], check=True)
    rows = read_results(folder).rows.sort("method", "enforcement", "limit")
    notes = [
        "Estimates of the provider that is exact Bayes; lambda 50, C_T 1, C_B 50, one seed. Epsilon of the randomised "
        "response is that of one release: n releases have n times as much. Variants have the least cost under "
        "the bound, which mechanisms may cross where it is kept by penalty; coarsen and answer never do.",
        "At the same accuracy on U: accuracy on S read off each curve over the bounds and stopping at once, straight "
        "between its points, which a public coin attains; none beyond its end.",
    ]
    return [*_under_the_bounds(rows), *at_equal_useful(rows)], notes


def _under_the_bounds(rows: pl.DataFrame) -> Rows:
    found = []
    for row in rows.iter_rows(named=True):
        what = {"way": _way(row), "confidence_limit": row["limit"], "variant": row["variant"]}
        found.append(
            {**what, **{f"{name}{end}": row[f"{name}{end}"] for name in NUMBERS for end in ("", "_low", "_high")}}
        )
    return found


def at_equal_useful(rows: pl.DataFrame) -> Rows:
    """One row per way: accuracy on S at each accuracy on U."""
    found = []
    for _, own in rows.group_by("method", "enforcement", maintain_order=True):
        curve = own.sort("accuracy_useful")
        # Stopping at once is a point of every curve; a public coin between two policies attains what is between them.
        useful, secret = (np.append(1 / 3, curve[f"accuracy_{label}"]) for label in ("useful", "secret"))
        useful, secret = useful[useful.argsort()], secret[useful.argsort()]
        at: dict[str, Any] = {
            f"secret_at_useful_{x:g}": float(np.interp(x, useful, secret)) if useful[0] <= x <= useful[-1] else None
            for x in USEFUL
        }
        found.append({"way": _way(own.row(0, named=True)), **at})
    return found


def _way(row: dict[str, Any]) -> str:
    return f"{row['method']}, {row['enforcement']}"
