"""The exact solver: the reference problem's values, and ten million nodes."""

import resource
import time
from typing import Any

from benchmarks.catalogue import Measured
from reticent import Confidence, Objective, Task, Unbounded
from reticent.problem.synthetic import two_binary_sensors
from reticent.solve.lattice import solve_lattice

REFERENCE = {0.6: 12.883022, 0.7: 7.740456, 0.8: 7.342248, 0.9: 7.197961, None: 7.189754}


def lattice() -> Measured:
    rows = []
    for limit, value in REFERENCE.items():
        bound = Unbounded() if limit is None else Confidence(limit)
        row = _timed("P1", Task(two_binary_sensors(), bound))
        distance = max(abs(row["lower"] - value), abs(row["upper"] - value))
        rows.append({**row, "confidence_limit": limit, "reference": value, "distance_to_reference": distance})
    cheap = Task(two_binary_sensors(), Unbounded(), Objective(time_cost=0.02))
    rows.append(_timed("P1, C_T 0.02, 214 releases", cheap, horizon=214))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return rows, [f"Lower and upper are exact. Peak memory of the whole process: {memory:.2f} GB."]


def _timed(name: str, task: Task, horizon: int | None = None) -> dict[str, Any]:
    started = time.perf_counter()
    found = solve_lattice(task, horizon, max_nodes=20_000_000)
    seconds = time.perf_counter() - started
    return {"problem": name, "lower": found.lower, "upper": found.upper, "nodes": found.nodes, "seconds": seconds}
