"""Policy files that nobody trained: networks drawn at random, of any inputs and sizes."""

from itertools import pairwise
from typing import Any

import numpy as np

from reticent.policy.settings import Inputs, KernelChoice, described, seen
from reticent.policy.store import PolicyFile
from reticent.problem.task import Task


def network(rng: np.random.Generator, inputs: int, outputs: int, width: int) -> dict[str, Any]:
    """Weights that keep the size of what passes through."""
    arrays = {}
    for layer, (before, after) in enumerate(pairwise([inputs, width, width, outputs])):
        arrays[f"layers.{layer}.weight"] = (rng.normal(size=(after, before)) / np.sqrt(before)).astype(np.float32)
        arrays[f"layers.{layer}.bias"] = rng.normal(size=after).astype(np.float32) / 4
    return arrays


def actor(
    task: Task, inputs: Inputs = "rich", seed: int = 0, stops: float = 0.0, greedy: bool = True, width: int = 16
) -> PolicyFile:
    """An actor; `stops` is added to what speaks for the stop."""
    sensors, secrets, useful, _ = task.model.channel.shape
    rng = np.random.default_rng(seed)
    arrays = network(rng, seen(inputs, secrets, useful, sensors), sensors + 1, width)
    arrays["layers.2.weight"] *= 4
    arrays["layers.2.bias"][-1] += stops
    return PolicyFile("actor", task, {"inputs": inputs, "width": width, "greedy": greedy}, arrays, {})


def lookahead(task: Task, kernels: KernelChoice = "label", seed: int = 0, width: int = 16) -> PolicyFile:
    """A value of around a third of the error penalty, up and down."""
    rng = np.random.default_rng(seed)
    arrays = network(rng, described(*task.model.prior.shape), 1, width)
    arrays["layers.2.weight"] /= 4
    arrays["layers.2.bias"][:] = 0.3
    return PolicyFile("lookahead", task, {"kernels": kernels, "width": width}, arrays, {})
