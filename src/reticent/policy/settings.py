"""What a policy file's settings may say, which arrays it must hold, and the numbers of what its network sees.

No JAX here, so that those who play or export a policy without it read the same numbers.
"""

from itertools import pairwise
from typing import Literal

import numpy as np

from reticent.errors import InputError
from reticent.policy.store import PolicyFile
from reticent.problem.enforcement import Enforcement, KernelChoice

Inputs = Literal["belief", "described", "rich"]
WIDEST = 2**14
# A network sees log(beta) / LOG_SCALE and the root of the doubt about U, both clipped from below; and a sensor's
# gain by one-step lookahead as tanh(gain / GAIN_SCALE), in releases' worth of cost.
LEAST_BELIEF, LOG_SCALE, LEAST_DOUBT, GAIN_SCALE = 1e-9, 5.0, 1e-6, 4.0


def described(secrets: int, useful: int) -> int:
    """How many numbers describe a belief: itself, its logarithm, its marginals, the share used up, the doubt."""
    return 2 * secrets * useful + secrets + useful + 2


def seen(inputs: Inputs, secrets: int, useful: int, sensors: int) -> int:
    """How many numbers an actor sees."""
    if inputs == "belief":
        return secrets * useful
    return described(secrets, useful) + sensors * (2 if inputs == "rich" else 1)


def actor_settings(file: PolicyFile) -> tuple[Inputs, int, bool]:
    """What an actor sees, its width, and whether it takes the likeliest action."""
    match file.settings:
        case {"inputs": ("belief" | "described" | "rich") as inputs, "width": int(width), "greedy": bool(greedy)} if (
            1 <= width <= WIDEST
        ):
            return inputs, width, greedy
    raise InputError(f"The policy file's settings {file.settings!r} do not describe a network.")


def lookahead_settings(file: PolicyFile, enforcement: Enforcement) -> tuple[int, KernelChoice]:
    """The width of a value network, and which kernels go with it."""
    match file.settings:
        case {"kernels": ("label" | "value") as kernels, "width": int(width)} if 1 <= width <= WIDEST:
            if kernels == "value" and not enforcement.replaces:
                raise InputError(f"The policy file asks for value kernels, but enforces by {enforcement.name!r}.")
            return width, kernels
    raise InputError(f"The policy file's settings {file.settings!r} do not describe a value.")


def check_network(file: PolicyFile, inputs: int, outputs: int, width: int) -> None:
    """Refuse a policy file whose arrays are not those of a network of these sizes."""
    wanted = {}
    for layer, (before, after) in enumerate(pairwise([inputs, width, width, outputs])):
        wanted[f"layers.{layer}.weight"] = ((after, before), "float32")
        wanted[f"layers.{layer}.bias"] = ((after,), "float32")
    found = {name: (array.shape, str(array.dtype)) for name, array in file.arrays.items()}
    if wanted != found:
        raise InputError(f"The policy file holds arrays {found}, but its header calls for {wanted}.")
    if not all(np.isfinite(array).all() for array in file.arrays.values()):
        raise InputError("The policy file holds numbers that are not finite.")
