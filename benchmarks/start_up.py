"""How long a user waits before anything happens; and the second time, when compiled programs are on disk."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.catalogue import Measured

REPEATS = 5
COMMANDS = {
    "`import numpy`, for scale": ["-c", "import numpy"],
    "`import reticent`": ["-c", "import reticent"],
    "`reticent --help`": ["-m", "reticent", "--help"],
    "`import jax`, for scale": ["-c", "import jax"],
    "`from reticent import solve`": ["-c", "from reticent import solve"],
}
# One update of the agent: all the rest is start-up and compilation.
SHORT_TRAINING = ["-m", "reticent", "train", "synthetic", "--confidence", "0.9", "--steps", "1", "-o"]


def start_up() -> Measured:
    rows = [{"what": name, "seconds": _median(words)} for name, words in COMMANDS.items()]
    with tempfile.TemporaryDirectory() as folder:
        cached = {**os.environ, "XDG_CACHE_HOME": folder}
        train = [*SHORT_TRAINING, str(Path(folder) / "policy.safetensors")]
        rows.append(
            {"what": "`reticent train` of one update, nothing compiled yet", "seconds": _seconds(train, cached)}
        )
        rows.append({"what": "the same again, with compiled programs on disk", "seconds": _median(train, cached)})
    return rows, [f"Medians of {REPEATS}; the first training is one run, because it fills the cache."]


def _median(words: list[str], environment: dict[str, str] | None = None) -> float:
    return median(_seconds(words, environment) for _ in range(REPEATS))


def _seconds(words: list[str], environment: dict[str, str] | None = None) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
    return time.perf_counter() - started
