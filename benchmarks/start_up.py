"""How long a user waits before anything happens."""

import subprocess
import sys
import time
from statistics import median

from benchmarks.record import save

COMMANDS = {
    "`import numpy`, for scale": ["-c", "import numpy"],
    "`import reticent`": ["-c", "import reticent"],
    "`reticent --help`": ["-m", "reticent", "--help"],
    "`import jax`, for scale": ["-c", "import jax"],
    "`from reticent import train`": ["-c", "from reticent import train"],
}


def main() -> None:
    rows = []
    for name, words in COMMANDS.items():
        seconds = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            seconds.append(time.perf_counter() - started)
        rows.append([name, f"{median(seconds):.2f} s"])
    save("start_up", "Start-up", ["what", "median of 5"], rows, [])
