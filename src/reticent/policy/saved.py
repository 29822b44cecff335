"""From a policy file to the policy, whichever kind it is, and the process it acts in; and back."""

import math
from dataclasses import fields, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from reticent.errors import InputError
from reticent.policy.actor import Actor, Features
from reticent.policy.answer import Answer, AnswerRule, private_task
from reticent.policy.lookahead import Lookahead, lookahead_policy, outputs
from reticent.policy.network import Network, network_arrays, network_of
from reticent.policy.policy import Policy
from reticent.policy.settings import WIDEST, actor_settings, described, lookahead_settings
from reticent.policy.store import PolicyFile
from reticent.problem.enforcement import Enforcement
from reticent.problem.task import Task
from reticent.process.process import Process

RULE_ARRAYS = tuple(field.name for field in fields(AnswerRule))


def policy_file(policy: Policy | Answer, task: Task, provenance: dict[str, Any]) -> PolicyFile:
    """The file that holds a policy; an `InputError` for one of a kind that a file cannot hold."""
    match policy:
        case Actor(features=Features() as features):
            network = policy.network
            settings = {"inputs": features.inputs, "width": _width(network), "greedy": policy.greedy}
            settings |= _price(features.process)
            return PolicyFile("actor", task, settings, network_arrays(network), provenance)
        case Lookahead():
            network = policy.value.network
            settings = {"width": _width(network), "kernels": policy.process.enforcement.kernel_choice}
            settings |= _price(policy.process)
            return PolicyFile("lookahead", task, settings, network_arrays(network), provenance)
        case Answer():
            network = policy.private.value.network
            arrays = {name: np.ascontiguousarray(getattr(policy.rule, name)) for name in RULE_ARRAYS}
            return PolicyFile("answer", task, {"width": _width(network)}, network_arrays(network) | arrays, provenance)
    raise InputError(
        "A policy file can hold what the methods ppo, a2c, value-iteration and answer make, but not a "
        f"{type(policy).__name__}. Keep its code, and what it was made from, and make it anew."
    )


def policy_of(file: PolicyFile, enforcement: Enforcement | None = None) -> tuple[Process, Policy]:
    """The policy that a file holds and the process that it acts in, with the enforcement it was made for or another."""
    process = made_for = _process(file)
    if enforcement is not None:
        process = Process.of(replace(file.task, enforcement=enforcement))
    match file.kind:
        case "actor":
            inputs, width, greedy = actor_settings(file)
            features = Features(process, inputs)
            return process, Actor(network_of(file, features.size, process.sensors + 1, width), features, greedy)
        case "lookahead":
            width, kernels = lookahead_settings(file, process.enforcement)
            network = network_of(file, described(*process.prior.shape), outputs(made_for), width)
            policy = lookahead_policy(process, network, kernels, made_for)
            return policy.process, policy
    raise InputError(f"This file holds a policy of kind {file.kind!r}, which this version does not know.")


def answer_of(file: PolicyFile) -> Answer:
    """The private policy and the public rule that a file of kind "answer" holds."""
    if file.kind != "answer" or file.task.enforcement.releases:
        name = file.task.enforcement.name
        raise InputError(f"This file holds a policy of kind {file.kind!r} that enforces by {name!r}.")
    match file.settings:
        case {"width": int(width)} if 1 <= width <= WIDEST:
            pass
        case _:
            raise InputError(f"The policy file's settings {file.settings!r} do not describe a value.")
    rule = _rule(file)
    process = Process.of(private_task(file.task))
    file = replace(file, arrays={name: array for name, array in file.arrays.items() if name not in RULE_ARRAYS})
    network = network_of(file, described(*process.prior.shape), outputs(process), width)
    return Answer(file.task, lookahead_policy(process, network, "label"), rule)


def _rule(file: PolicyFile) -> AnswerRule:
    """The rule, if its arrays fit each other and the model; what they say is checked by the rule itself."""
    found = {name: file.arrays[name] for name in RULE_ARRAYS if name in file.arrays}
    secrets, useful = file.task.model.prior.shape
    times = len(found["times"]) if found.get("times", np.zeros(())).ndim == 1 else 0
    answers = times, useful
    shapes = ((times,), (*answers, *answers), (*answers, secrets, useful), (times, secrets, useful), answers, (times,))
    fits = [found[name].shape == shape for name, shape in zip(found, shapes, strict=False)]
    kinds = [array.dtype == (np.int64 if name == "times" else np.float64) for name, array in found.items()]
    if len(found) < len(RULE_ARRAYS) or times == 0 or not all(fits + kinds):
        raise InputError("The policy file does not hold the arrays of an answer rule for its problem.")
    if not all(np.isfinite(array).all() for array in found.values()):
        raise InputError("The policy file holds numbers that are not finite.")
    return AnswerRule(**found)


def _width(network: Network) -> int:
    return len(network.layers[0].weight)


def _price(process: Process) -> dict[str, float]:
    """The learned multiplier, in cost per bit: it belongs to the policy, not to the task."""
    return {"multiplier": float(process.enforcement.price)} if process.enforcement.priced else {}


def _process(file: PolicyFile) -> Process:
    process = Process.of(file.task)
    if not process.enforcement.priced:
        return process
    match file.settings:
        case {"multiplier": float(price)} if math.isfinite(price) and price >= 0:
            return process.with_multiplier(jnp.asarray(price, float))
    raise InputError(f"The policy file's settings {file.settings!r} do not name a multiplier of zero or more.")
