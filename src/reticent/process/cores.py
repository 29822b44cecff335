"""Which processor cores this process may use."""

import os


def cores() -> list[int]:
    """Their numbers: those that the operating system leaves to this process, where it says so."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
