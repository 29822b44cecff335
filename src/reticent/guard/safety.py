"""The guarantee: what is withheld or merged, so that no symbol ever lifts the confidence in a secret to the bound.

The device reads z before it sends anything, and sends z as it is or one of a few merged symbols, drawn from a kernel
that everybody knows: it depends on the public belief and the sensor only. The provider updates its belief by Bayes on
what is sent, merged symbols included, so silence leaks only what Bayes says it leaks. With P(z, s, u) = beta(s, u)
q(z | a, s, u), r(z) the chance of "as it is" and k(m | z) that of the merged symbol m, a kernel is safe if

    r(z) = 0 where P(s | z) >= theta for some s,
    sum_z k(m | z) (P(z, s) - theta P(z)) <= 0 for every m and s.

Both are linear, so the cheapest safe kernel is a linear program. The same holds for any other event than "the secret is
s": `reticent.guard.rows` says which there are. `theta` lies between the event's probability and its limit, so that
merging everything is always a solution, by more than rounding can bridge. What the solver returns is checked and, if
it fails, replaced by exactly that solution: the promise does not depend on the solver.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.belief.bayes import inward, sent_joint
from reticent.belief.prospect import Joint
from reticent.guard.panel import PanelProspect
from reticent.guard.program import cheapest_kernels
from reticent.guard.rows import Rows, present_rows
from reticent.problem.merging import BLEND, KERNEL_SUM_TOLERANCE, ROUNDS, ROWS
from reticent.types import Kernels


class Safety:
    """What is safe to send of these readings: all rows must hold. `xp` is the namespace of the arrays.

    Of one belief, or of many at once.
    """

    def __init__(self, readings: Joint, rows: Rows) -> None:
        self.xp: Any = readings.belief.__array_namespace__()
        self.readings, self.rows = readings, rows

    @classmethod
    def of(cls, readings: Joint, limits: Float[Any, " S"], panel: PanelProspect | None = None) -> "Safety":
        """Of a pair that stands still, with these limits on the posterior of each secret, for each provider."""
        return cls(readings, present_rows(readings, limits, panel))

    def cheapest(self, cost: Float[Any, "O *N A Z"]) -> Kernels:
        """The safe kernels of least cost, where cost[0] is of sending z as it is and cost[m] of merging it into m."""
        xp, options = self.xp, cost.shape[0]
        kernels = self._solution(inward(cost))
        kernels = kernels / kernels.sum(-2, keepdims=True)
        # A merged symbol that is hardly ever used has no more than rounding errors to balance its rows with. A
        # little of every reading corrects that.
        safe = self.holds(kernels)
        if _all_of(safe):
            return kernels
        merged = xp.arange(options) > 0
        blended = (1 - BLEND) * kernels + BLEND * self._same_for_all(merged / (options - 1))
        safest = xp.where(self.holds(blended)[..., None, None], blended, self.merge_everything(options))
        return xp.where(safe[..., None, None], kernels, safest)

    def _solution(self, cost: Float[Any, "*N A O Z"]) -> Kernels:
        """What the solver returns for all rows; where there are many, for those that matter."""
        excess = self.rows.event - self.rows.theta[..., None, None] * self.rows.law
        raw = (excess < 0).all(0)
        if len(excess) <= ROWS:
            return cheapest_kernels(cost, inward(excess), raw)
        chosen = self._most_violable(excess)
        kernels = self._solved(cost, excess, raw, chosen)
        for _ in range(ROUNDS):
            if _all_of(self.holds(kernels)):
                return kernels
            # The row that each merged symbol adds up to most in, [*N A M].
            worst = (inward(excess) @ kernels[..., 1:, :].swapaxes(-1, -2)).argmax(-2)
            chosen = self.xp.concatenate([chosen, self.xp.moveaxis(worst, -1, 0)])
            kernels = self._solved(cost, excess, raw, chosen)
        return kernels

    def _most_violable(self, excess: Float[Any, "J *N A Z"]) -> Int[Any, "R *N A"]:
        """The rows that could be violated most, of each sensor."""
        return (-self.xp.maximum(excess, 0.0).sum(-1)).argsort(axis=0)[:ROWS]

    def _solved(self, cost: Any, excess: Any, raw: Any, chosen: Int[Any, "R *N A"]) -> Kernels:
        """What the solver returns for the chosen rows of each sensor."""
        rows = self.xp.take_along_axis(excess, chosen[..., None], axis=0)
        return cheapest_kernels(cost, inward(rows), raw)

    def holds(self, kernels: Kernels) -> Bool[Any, "*N A"]:
        """Whether these are kernels, none of whose symbols lifts a row beyond halfway from theta to its limit."""
        event, law = sent_joint(self.rows.event, kernels), sent_joint(self.rows.law, kernels)
        safe = (event <= self.rows.highest[..., None, None] * law).all((0, -1))
        # A comparison with something that is not a number is false.
        whole = (abs(kernels.sum(-2) - 1) < KERNEL_SUM_TOLERANCE).all(-1)
        return safe & (kernels >= 0).all((-2, -1)) & whole

    def merge_everything(self, options: int) -> Kernels:
        """The kernels that say nothing: every reading becomes the first merged symbol."""
        return self._same_for_all((self.xp.arange(options) == 1) * 1.0)

    def _same_for_all(self, chances: Float[Any, " O"]) -> Kernels:
        """Every reading of every sensor becomes each option with the same chance."""
        *sensors, symbols = self.readings.law.shape
        return self.xp.broadcast_to(chances[:, None], (*sensors, len(chances), symbols))


def _all_of(safe: Bool[Any, "*N A"]) -> bool:
    """Whether every sensor is known to be safe already; compiled code never knows."""
    return isinstance(safe, np.ndarray) and bool(safe.all())
