"""Observation and action spaces, and what happens to actions that are not allowed."""

from typing import Any, Literal, get_args

import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Bool, Int

from reticent.belief.filter import ExactFilter
from reticent.errors import InputError
from reticent.policy.actor import Features, Inputs
from reticent.problem.enforcement import Promise
from reticent.process.process import Process

Forbidden = Literal["stop", "error"]
# Observations are 32-bit floats: sums of probabilities may miss their limits by rounding.
ROUNDING = 1e-5
# What `policy.features.describe` puts under a probability before its logarithm, and under a doubt before its root.
LEAST_PROBABILITY, LEAST_DOUBT = 1e-9, 1e-6


def features_of(process: Process, inputs: Inputs) -> Features:
    """What an agent sees of a process, if there is such a thing."""
    if inputs not in get_args(Inputs):
        raise InputError(f"inputs is one of {list(get_args(Inputs))}, not {inputs!r}.")
    if inputs == "rich" and not isinstance(process.filter, ExactFilter):
        raise InputError("inputs='rich' looks one step ahead, which needs a finite model: take 'described'.")
    return Features(process, inputs)


def check_playable(process: Process, forbidden: Forbidden) -> None:
    """Refuse what would not be the problem it looks like."""
    if forbidden not in get_args(Forbidden):
        raise InputError(f"forbidden is one of {list(get_args(Forbidden))}, not {forbidden!r}.")
    if process.enforcement.priced and not float(process.enforcement.price) > 0:
        raise InputError(
            "A bound on expected information is kept by a price, and this process has none yet: "
            "give it one with `process.with_multiplier(price)`."
        )


def action_space(process: Process) -> Discrete:
    """A sensor, or one past the last sensor to stop."""
    return Discrete(process.sensors + 1)


def observation_space(features: Features) -> Box:
    """The limits of each number that an agent sees, in the order of `Features`."""
    secrets, useful = features.process.prior.shape
    pairs, sensors = secrets * useful, features.process.sensors
    parts = [(0.0, 1.0, pairs)]
    if features.inputs != "belief":
        least_log, doubts = np.log(LEAST_PROBABILITY) / 5, np.sqrt([LEAST_DOUBT, 1 - 1 / useful])
        parts += [(least_log, 0.0, pairs), (0.0, 1.0, secrets + useful), (*_used(features.process), 1)]
        parts += [(doubts.min(), doubts.max(), 1), (0.0, 1.0, sensors)]
    if features.inputs == "rich":
        parts += [(-1.0, 1.0, sensors)]
    low, high = (np.concatenate([np.full(part[2], part[end]) for part in parts]) for end in (0, 1))
    return Box((low - ROUNDING).astype(np.float32), (high + ROUNDING).astype(np.float32), dtype=np.float32)


def _used(process: Process) -> tuple[float, float]:
    """Limits of the share of the bound that is used up: at most one where nothing can cross the bound."""
    never = process.enforcement.promise is Promise.NEVER
    return process.bound.range_used(np.asarray(process.prior), int(process.horizon), never)


def played(
    asked: Any, allowed: Bool[np.ndarray, "*N A_plus_stop"], forbidden: Forbidden
) -> tuple[Int[np.ndarray, "*N"], Bool[np.ndarray, "*N"]]:
    """The actions that are played for those that were asked for, and which of these were not allowed.

    A sensor that is not allowed is never played: it counts as a stop, or is an error.
    """
    actions, stop = np.asarray(asked), allowed.shape[-1] - 1
    if actions.shape != allowed.shape[:-1] or actions.dtype.kind not in "iu":
        raise InputError(f"Actions are whole numbers of shape {allowed.shape[:-1]}, not {asked!r}.")
    if ((actions < 0) | (actions > stop)).any():
        raise InputError(f"Actions lie between 0 and {stop}, which is stop, unlike {asked!r}.")
    refused = np.asarray(~np.take_along_axis(allowed, actions[..., None].astype(np.int64), -1)[..., 0])
    if forbidden == "error" and refused.any():
        raise InputError(
            f"Sensor {actions[refused].flat[0]} is not allowed here: choose among those of action_masks(), or make the "
            "environment with forbidden='stop', for which it counts as a stop."
        )
    return np.where(refused, stop, actions).astype(np.int64), refused
