"""What the file of a policy for a problem that goes on says beside its numbers: its kernels, and its few settings.

No JAX here, so that those who play a policy without it read the same.
"""

import math
from dataclasses import replace
from typing import Any

from reticent.errors import InputError
from reticent.guard.long_run import LongRunKernels
from reticent.guard.quadratic import QuadraticKernels
from reticent.policy.store import PolicyFile
from reticent.problem.enforcement import Enforcement, KernelRule, LabelKernels
from reticent.problem.monitoring import Monitoring
from reticent.problem.task import record_from_json, record_to_json

# Kernels that need no network, by name.
KERNELS: dict[str, type[KernelRule]] = {kind.name: kind for kind in (LabelKernels, QuadraticKernels, LongRunKernels)}


def kernels_of(enforcement: Enforcement) -> dict[str, Any]:
    """The setting that says how merged symbols are priced; nothing where nothing is merged."""
    rule = enforcement.kernel_rule
    if rule is None:
        return {}
    return {"kernels": record_to_json(rule, KERNELS)}


def task_with_kernels(file: PolicyFile) -> Monitoring:
    """The task of a file, under the kernels that its settings name."""
    task = file.monitoring
    if not task.enforcement.replaces:
        return task
    rule = record_from_json("rule for kernels", file.settings.get("kernels"), KERNELS)
    return replace(task, enforcement=task.enforcement.with_rule(rule))


def rhythm(file: PolicyFile) -> tuple[int, int]:
    """Which sensor speaks, and every how many steps."""
    match file.settings:
        case {"sensor": int(sensor), "period": int(period)} if (
            0 <= sensor < len(file.monitoring.model.sensors) and 1 <= period < 2**31
        ):
            return sensor, period
    raise InputError(f"The policy file's settings {file.settings!r} do not name a sensor and a number of steps.")


def threshold_setting(threshold: Any) -> dict[str, float | None]:
    """The setting that says from which probability of the best guess of U on nothing is sent; None for never."""
    value = float(threshold)
    return {"threshold": value if math.isfinite(value) else None}


def threshold_of(file: PolicyFile) -> float:
    """From which probability of the best guess of U on nothing is sent."""
    match file.settings:
        case {"threshold": None}:
            return math.inf
        case {"threshold": float(threshold)} if math.isfinite(threshold):
            return threshold
    raise InputError(f"The policy file's settings {file.settings!r} do not name a threshold.")


def weight_of(file: PolicyFile, name: str) -> float:
    """One of the weights of a policy."""
    weight = file.settings.get(name)
    if not isinstance(weight, float) or not math.isfinite(weight):
        raise InputError(f"The policy file's settings {file.settings!r} have no weight {name!r}.")
    return weight
