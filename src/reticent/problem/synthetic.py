"""The paper's synthetic problem, and small problems whose optimal cost is known by hand or from another solver."""

import math
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.problem.model import Model

# The paper says that there are fifty symbols, but not where: from three deviations below the lowest mean to as many
# above the highest, for the largest deviation.
Z_RANGE = (-4.5, 7.5)


def synthetic(seed: int = 0, noise: float = 1.0, z_range: tuple[float, float] = Z_RANGE) -> Model:
    """Three secrets, three useful values, three sensors, fifty symbols (paper, section V-B).

    Sensor a sees u as a normal of mean 1 + u when the secret is 2 - a, and as pure noise otherwise: whatever
    says something about U says as much about S.

    Args:
        seed: Seed of the standard deviations.
        noise: Scales all standard deviations.
        z_range: The first and the last symbol; the others lie evenly between them.

    Returns:
        The model.

    Example:
        >>> rt.synthetic().channel.shape
        (3, 3, 3, 50)
    """
    if not (all(map(math.isfinite, z_range)) and z_range[0] < z_range[1]):
        raise InputError(f"The range of z must be two numbers, the lower first, but is {z_range}.")
    sensors, secrets, useful, z = 3, 3, 3, np.linspace(*z_range, 50)
    deviation = noise * np.random.default_rng(seed).uniform(0.5, 1.5, (sensors, secrets, useful))
    a, s, u = np.indices(deviation.shape)
    mean = np.where(s == 2 - a, 1.0 + u, 0.0)
    density = np.exp(-0.5 * ((z - mean[..., None]) / deviation[..., None]) ** 2)
    return _uniform(density / density.sum(-1, keepdims=True), [f"{value:.3g}" for value in z])


def two_binary_sensors() -> Model:
    """Problem P1: two secrets, two useful values, two binary sensors.

    With C_T 1, lambda 50 and C_B 50 the optimal cost is 12.883022, 7.740456, 7.342248, 7.197961 and 7.189754
    under the confidence bounds .6, .7, .8, .9 and none.
    """
    return _binary([[[0.12, 0.71], [0.33, 0.93]], [[0.31, 0.62], [0.36, 0.66]]])


def tells_useful() -> Model:
    """The one sensor names U and says nothing about S: release once, then stop. Optimal cost C_T."""
    return _binary([[[0.0, 1.0], [0.0, 1.0]]])


def tells_both() -> Model:
    """The one sensor names the pair (s, u): any release crosses any confidence bound below 1.

    With C_B at least the prior stop cost, stopping at once is optimal: cost lambda / 2.
    """
    return _uniform(np.eye(4).reshape(1, 2, 2, 4), ["00", "01", "10", "11"])


def tells_nothing() -> Model:
    """The one sensor is noise: stop at once. Optimal cost lambda / 2."""
    return _binary([[[0.5, 0.5], [0.5, 0.5]]])


def _binary(chance_of_one: list[Any]) -> Model:
    one = np.asarray(chance_of_one)
    return _uniform(np.stack([1 - one, one], axis=-1), ["0", "1"])


def _uniform(channel: np.ndarray, symbols: list[str]) -> Model:
    sensors, secrets, useful, _ = channel.shape
    return Model(
        prior=np.full((secrets, useful), 1 / (secrets * useful)),
        channel=channel,
        secrets=tuple(f"s{i}" for i in range(secrets)),
        useful=tuple(f"u{i}" for i in range(useful)),
        sensors=tuple(f"a{i}" for i in range(sensors)),
        symbols=tuple(symbols),
    )
