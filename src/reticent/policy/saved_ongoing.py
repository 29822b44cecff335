"""Policies of problems that go on: from a file to the policy and its process, and back."""

from typing import Any

import jax.numpy as jnp

from reticent.errors import InputError
from reticent.policy.actor import Actor, OngoingFeatures
from reticent.policy.heuristics import InformationGain
from reticent.policy.network import network_arrays, network_of
from reticent.policy.ongoing import CheapestStep, EverySteps, LongRunLookahead
from reticent.policy.ongoing_settings import (
    kernels_of,
    rhythm,
    task_with_kernels,
    threshold_of,
    threshold_setting,
    weight_of,
)
from reticent.policy.policy import Policy, RandomSensor
from reticent.policy.settings import actor_settings
from reticent.policy.store import PolicyFile
from reticent.problem.monitoring import Monitoring
from reticent.process.ongoing import OngoingProcess


def ongoing_file(policy: Policy, task: Monitoring, provenance: dict[str, Any]) -> PolicyFile:
    """The file that holds a policy; an `InputError` for one of a kind that a file cannot hold."""
    settings, arrays = kernels_of(task.enforcement), {}
    match policy:
        case Actor(features=OngoingFeatures() as features):
            kind, arrays = "actor", network_arrays(policy.network)
            width = len(policy.network.layers[0].weight)
            settings |= {"inputs": features.inputs, "width": width, "greedy": policy.greedy}
        case CheapestStep():
            kind = "cheapest-step"
        case LongRunLookahead():
            kind = "long-run"
            settings |= {"omega": float(policy.omega), "kappa": float(policy.kappa)}
        case EverySteps():
            kind = "every-steps"
            settings |= {"sensor": int(policy.sensor), "period": int(policy.period)}
        case RandomSensor():
            kind = "random-sensor"
            settings |= threshold_setting(policy.threshold)
        case InformationGain():
            kind = "information-gain"
            settings |= {"kappa": float(policy.kappa), **threshold_setting(policy.threshold)}
        case _:
            raise InputError(
                "A policy file of a problem that goes on can hold what ppo, a2c and lookahead make, and the baselines, "
                f"but not a {type(policy).__name__}. Keep its code, and what it was made from, and make it anew."
            )
    return PolicyFile(kind, task, settings, arrays, provenance)


def ongoing_policy_of(file: PolicyFile) -> tuple[OngoingProcess, Policy]:
    """The policy that a file holds and the process that it acts in."""
    process = OngoingProcess(task_with_kernels(file))
    match file.kind:
        case "actor":
            inputs, width, greedy = actor_settings(file)
            features = OngoingFeatures(process, inputs)
            return process, Actor(network_of(file, features.size, process.sensors + 1, width), features, greedy)
        case "cheapest-step":
            return process, CheapestStep(process)
        case "long-run":
            omega, kappa = (jnp.asarray(weight_of(file, name)) for name in ("omega", "kappa"))
            return process, LongRunLookahead(process, omega, kappa)
        case "every-steps":
            sensor, period = rhythm(file)
            return process, EverySteps(jnp.asarray(sensor), jnp.asarray(period))
        case "random-sensor":
            return process, RandomSensor(jnp.asarray(threshold_of(file)))
        case "information-gain":
            kappa, threshold = jnp.asarray(weight_of(file, "kappa")), jnp.asarray(threshold_of(file))
            return process, InformationGain(process, kappa, threshold)
    raise InputError(f"This file holds a policy of kind {file.kind!r}, which this version does not know.")
