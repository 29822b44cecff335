"""Rows: the events whose probability must stay below the bound, as the guard's programs see them.

A row is an event E with weights w(x) = P(E, X_t = x | sent) and the belief b(x) of the provider it belongs to, 0 <= w
<= b. After a symbol y with likelihood l that provider holds E for true with sum_x w(x) l(y | x) / sum_x b(x) l(y | x),
so whether a kernel is safe is linear in it: for each sensor a row is P(E, z) and P(z) of the sensor's readings. The
secret of the present is such an event for each of its values; that of any other moment is another.
"""

from typing import Any, NamedTuple

from jaxtyping import Float

from reticent.belief.bayes import secret_marginal
from reticent.belief.prospect import Joint
from reticent.guard.panel import PanelProspect
from reticent.problem.merging import CLOSEST, MARGIN, PACE, SHARE, STEP

# Of one belief, or of each of many.
PerRow = Float[Any, "J *N"]


class Rows(NamedTuple):
    """Rows J: `event` is P(E_j, z), `law` is P(z) by the row's own provider (one for all where they share it), `value`
    is P(E_j) now, `limits` what it must stay below, and `theta` what the programs keep to."""

    event: Float[Any, "J *N A Z"]
    law: Float[Any, "L *N A Z"]
    value: PerRow
    limits: PerRow
    theta: PerRow

    @property
    def highest(self) -> PerRow:
        """What the posterior of a symbol is checked against: halfway from theta to the limit."""
        return (self.theta + self.limits) / 2


def present_rows(readings: Joint, limits: Float[Any, " S"], panel: PanelProspect | None = None) -> Rows:
    """The secret of now, for a pair that stands still, by the model and by each provider of the panel."""
    own = _of_secrets(readings, limits)
    if panel is None:
        return own
    return joined(own, Rows(*(each.swapaxes(0, 1) for each in _of_secrets(panel, limits))))


def _of_secrets(told: Joint | PanelProspect, limits: Float[Any, " S"]) -> Rows:
    """Near the bound, theta leaves each of many a share of the way there."""
    value = secret_marginal(told.belief).swapaxes(0, -1)
    xp = value.__array_namespace__()
    limits = xp.broadcast_to(limits.reshape(-1, *(1,) * (value.ndim - 1)), value.shape)
    headroom = (limits - value).min(0, keepdims=True)
    return Rows(told.secret, told.law[None], value, limits, limits - xp.minimum(MARGIN, (1 - SHARE) * headroom))


def joined(own: Rows, others: Rows) -> Rows:
    """The rows of the model's provider and those of others, which stand along the axes P and J: all along one."""
    xp = own.value.__array_namespace__()
    own, others = (rows._replace(law=xp.broadcast_to(rows.law, rows.event.shape)) for rows in (own, others))
    pairs = zip(own, others, strict=True)
    return Rows(*(xp.concatenate([mine, rest.reshape(-1, *rest.shape[2:])]) for mine, rest in pairs))


def paced(value: PerRow, limits: PerRow) -> PerRow:
    """Theta of rows that are to last: one release may use up a share of what is left of the way to the limit."""
    xp = value.__array_namespace__()
    return xp.minimum(xp.maximum(value + PACE * (limits - MARGIN - value), value + STEP), limits - CLOSEST)
