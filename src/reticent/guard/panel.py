"""What the providers of a panel believe, and what the readings of each sensor would tell them.

`reticent.problem.panel` says what a panel is. Its providers stand along an axis P.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from reticent.belief.bayes import update
from reticent.errors import InputError
from reticent.problem.bound import Prospect
from reticent.problem.model import Model
from reticent.types import Index, Kernels

Beliefs = Float[Any, "P S U"]


class Panel(NamedTuple):
    """What each provider takes for true: p(s, u) and q(z | a, s, u)."""

    prior: Beliefs
    channel: Float[Any, "P A S U Z"]

    @classmethod
    def of(cls, models: Sequence[Model], asarray: Callable[[np.ndarray], Any] = np.asarray) -> "Panel | None":
        """Of these models, as arrays of some namespace; None where there are none."""
        if not models:
            return None
        return cls(*(asarray(np.stack([getattr(each, table) for each in models])) for table in cls._fields))


class PanelProspect(Prospect):
    """What one reading of each sensor would tell each provider."""

    def __init__(self, panel: Panel, belief: Beliefs) -> None:
        self.belief, self._channel = belief, panel.channel

    @cached_property
    def secret(self) -> Float[Any, "S P A Z"]:
        """P(s, z)."""
        return (self.belief[:, None, :, :, None] * self._channel).sum(3).swapaxes(1, 2).swapaxes(0, 1)

    @cached_property
    def law(self) -> Float[Any, "P A Z"]:
        """P(z)."""
        return self.secret.sum(0)

    @cached_property
    def everywhere(self) -> Bool[Any, " A"]:
        return self.belief.__array_namespace__().ones(self._channel.shape[1], bool)


def told(panel: Panel | None, belief: Beliefs | None) -> PanelProspect | None:
    """What one reading of each sensor would tell the panel's providers, who believe this."""
    if (panel is None) != (belief is None):
        raise InputError(
            "The bound of this task is kept for a panel of providers, whose beliefs are not followed here. Leave the "
            "panel out: a model without one is `model.with_panel([])`."
        )
    return None if panel is None or belief is None else PanelProspect(panel, belief)


def heard(
    panel: Panel, belief: Beliefs, sensor: Index | int, chances: Float[Any, " Z"]
) -> tuple[Beliefs, Bool[Any, " P"]]:
    """What each provider believes once the sensor has sent a symbol, and whether it holds that possible.

    `chances` are those of each reading to be sent as that symbol.
    """
    return update(belief, panel.channel[:, sensor] @ chances)


def chances_of(
    channel: Float[Any, "A S U Z"], kernels: Kernels | None, sensor: Index | int, symbol: Index | int
) -> Float[Any, " Z"]:
    """The chance of each reading of a sensor to be sent as this symbol."""
    xp, readings = channel.__array_namespace__(), channel.shape[-1]
    alone = xp.arange(readings) == symbol
    if kernels is None:
        return alone * 1.0
    kernel = kernels[sensor]
    return xp.where(symbol < readings, alone * kernel[0], kernel[xp.maximum(symbol - readings + 1, 0)])
