"""Provenance of a result: enough to reproduce it."""

import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from reticent import __version__

PACKAGES = ("jax", "equinox", "optax", "numpy", "scipy", "scikit-learn", "polars")


def provenance() -> dict[str, str]:
    """Command, time and versions."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    packages = {name: version(name) for name in PACKAGES}
    return {
        "command": command,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        # That of this code: an editable installation remembers the version that it was made with.
        "reticent": __version__,
        **packages,
    }
