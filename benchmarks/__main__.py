"""`python -m benchmarks` lists the benchmarks; with names, or `all`, it measures those and records their numbers.

Several run one after the other, each in a process of its own: what one has compiled or allocated is not measured in
the next.
"""

import subprocess
import sys

from benchmarks.catalogue import BENCHMARKS, BY_NAME
from benchmarks.page import table


def main(names: list[str]) -> int:
    """Zero if all could be measured."""
    if unknown := [name for name in names if name not in (*BY_NAME, "all")]:
        print(f"Unknown: {', '.join(unknown)}. `python -m benchmarks` lists the names.", file=sys.stderr)
        return 2
    if not names:
        print(*(f"{benchmark.name:24}{benchmark.title}" for benchmark in BENCHMARKS), sep="\n")
        return 0
    if len(names) == 1 and names != ["all"]:
        measure(names[0])
        return 0
    chosen = list(BY_NAME) if "all" in names else names
    ends = {name: subprocess.run([sys.executable, "-m", "benchmarks", name]).returncode for name in chosen}
    failed = [name for name, end in ends.items() if end]
    print(f"Not measured: {', '.join(failed)}." if failed else "All are measured.", file=sys.stderr)
    return 1 if failed else 0


def measure(name: str) -> None:
    """One benchmark, here and now."""
    from benchmarks.record import record

    rows, notes = BY_NAME[name].function()
    path = record(name, rows, notes)
    print(table(rows), f"Recorded in {path}; `make bench-page` writes the page anew.", sep="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
