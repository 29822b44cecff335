"""The guarantee on the synthetic problem: cost at each bound, and how near the agent comes to value iteration."""

import sys
import tempfile
from pathlib import Path

from benchmarks.catalogue import Measured
from reticent.study.plan import plan
from reticent.study.run import Done, on_all_cores, prepare, run_study
from reticent.study.spec import read_spec

NUMBERS = ("cost", "cost_low", "cost_high", "violation_rate", "violation_rate_low", "violation_rate_high", "releases")
NUMBERS += ("effort", "episodes", "make_seconds", "evaluate_seconds")


def guarantee() -> Measured:
    study, found = plan(read_spec(Path(__file__).with_suffix(".toml"))), {}
    with tempfile.TemporaryDirectory() as folder:
        prepare(study, Path(folder))
        for event in run_study(study, Path(folder), on_all_cores):
            if isinstance(event, Done):
                found[event.cell] = event.row
                print(event.cell.name, file=sys.stderr)
    rows = []
    for row in (found[cell] for cell in study.cells):
        what = {"confidence_limit": row["limit"], "enforcement": row["enforcement"], "policy": row["method"]}
        rows.append({**what, **{number: row[number] for number in NUMBERS}})
    notes = [
        "Lambda 50, C_T 1, C_B 50, seed 0. Costs are estimates, over episodes of a seed of their own. Effort is "
        "rounds of value iteration, or environment steps of the agent. The one-step lookahead has its stopping "
        "threshold tuned.",
        "Seconds are of one core, with compilation.",
    ]
    return rows, notes
