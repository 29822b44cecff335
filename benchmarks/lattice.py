"""The exact solver: the reference problem's values, and ten million nodes."""

import resource
import time

from benchmarks.record import save
from reticent import Confidence, Objective, Task, Unbounded, solve_lattice
from reticent.problem.synthetic import two_binary_sensors
from reticent.solve.lattice import Bracket

REFERENCE = {0.6: 12.883022, 0.7: 7.740456, 0.8: 7.342248, 0.9: 7.197961, None: 7.189754}


def main() -> None:
    rows = []
    for limit, value in REFERENCE.items():
        bound = Unbounded() if limit is None else Confidence(limit)
        name = "no bound" if limit is None else f"L_B {limit:g}"
        row, bracket = _timed(f"P1, {name}, reference {value}", Task(two_binary_sensors(), bound))
        row.append(f"{max(abs(bracket.lower - value), abs(bracket.upper - value)):.0e}")
        rows.append(row)
    cheap = Task(two_binary_sensors(), Unbounded(), Objective(time_cost=0.02))
    row, _ = _timed("P1 without bound, C_T 0.02, 214 releases", cheap, horizon=214)
    rows.append([*row, "-"])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    headings = ["problem", "lower (exact)", "upper (exact)", "nodes", "time", "largest distance to reference"]
    save("lattice", "Exact lattice solver", headings, rows, [f"Peak memory of the whole process: {memory:.2f} GB."])


def _timed(name: str, task: Task, horizon: int | None = None) -> tuple[list[str], Bracket]:
    started = time.perf_counter()
    bracket = solve_lattice(task, horizon, max_nodes=20_000_000)
    seconds = time.perf_counter() - started
    return [name, f"{bracket.lower:.7f}", f"{bracket.upper:.7f}", f"{bracket.nodes:,}", f"{seconds:.1f} s"], bracket


if __name__ == "__main__":
    main()
