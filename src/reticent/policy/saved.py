"""From a policy file to the policy, whichever kind it is, and the process it acts in; and back."""

from typing import Any

from reticent.errors import InputError
from reticent.policy.actor import Actor, Features, Inputs
from reticent.policy.lookahead import KernelChoice, Lookahead, lookahead_policy
from reticent.policy.network import described, network_arrays, network_of
from reticent.policy.policy import Policy
from reticent.policy.store import PolicyFile
from reticent.problem.task import GUARANTEED, Task
from reticent.process.release import ReleaseProcess

WIDEST = 2**14


def policy_file(policy: Actor | Lookahead, task: Task, settings: dict[str, Any], provenance: dict[str, Any]):
    """The file that holds a policy; of the settings that it was made with, those that it is rebuilt from."""
    match policy:
        case Actor():
            kept = {"inputs": policy.features.inputs, "width": settings["width"], "greedy": policy.greedy}
            return PolicyFile("actor", task, kept, network_arrays(policy.network), provenance)
        case Lookahead():
            kept = {"width": settings["width"], "kernels": settings["kernels"]}
            return PolicyFile("lookahead", task, kept, network_arrays(policy.value.network), provenance)


def policy_of(file: PolicyFile) -> tuple[ReleaseProcess, Policy]:
    """The policy that a file holds and the process that it acts in."""
    process = ReleaseProcess(file.task)
    match file.kind:
        case "actor":
            inputs, width, greedy = _actor_settings(file.settings)
            features = Features(process, inputs)
            return process, Actor(network_of(file, features.size, process.sensors + 1, width), features, greedy)
        case "lookahead":
            width, kernels = _lookahead_settings(file)
            network = network_of(file, described(*process.prior.shape), 1, width)
            policy = lookahead_policy(process, network, kernels)
            return policy.process, policy
    raise InputError(f"This file holds a policy of kind {file.kind!r}, which this version does not know.")


def _actor_settings(settings: Any) -> tuple[Inputs, int, bool]:
    match settings:
        case {"inputs": ("belief" | "rich") as inputs, "width": int(width), "greedy": bool(greedy)} if (
            1 <= width <= WIDEST
        ):
            return inputs, width, greedy
    raise InputError(f"The policy file's settings {settings!r} do not describe a network.")


def _lookahead_settings(file: PolicyFile) -> tuple[int, KernelChoice]:
    match file.settings:
        case {"kernels": ("label" | "value") as kernels, "width": int(width)} if 1 <= width <= WIDEST:
            if kernels == "value" and file.task.enforce not in GUARANTEED:
                raise InputError(f"The policy file asks for value kernels, but enforces by {file.task.enforce!r}.")
            return width, kernels
    raise InputError(f"The policy file's settings {file.settings!r} do not describe a value.")
