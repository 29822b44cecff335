"""The guarantee: what is withheld or merged, so that no symbol ever lifts the confidence in a secret to the bound.

The device reads z before it sends anything, and sends z as it is or one of a few merged symbols, drawn from a kernel
that everybody knows: it depends on the public belief and the sensor only. The provider updates its belief by Bayes on
what is sent, merged symbols included, so silence leaks only what Bayes says it leaks. With P(z, s, u) = beta(s, u)
q(z | a, s, u), r(z) the chance of "as it is" and k(m | z) that of the merged symbol m, a kernel is safe if

    r(z) = 0 where P(s | z) >= theta for some s,
    sum_z k(m | z) (P(z, s) - theta P(z)) <= 0 for every m and s.

Both are linear, so the cheapest safe kernel is a linear program. `theta` lies between beta(s), so that merging
everything is always a solution, and the limit of s, by more than rounding can bridge. What the solver returns is
checked and, if it fails, replaced by exactly that solution: the promise does not depend on the solver.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from reticent.belief.bayes import secret_marginal, sent_joint
from reticent.belief.prospect import Joint
from reticent.guard.program import cheapest_kernels
from reticent.problem.merging import BLEND, KERNEL_SUM_TOLERANCE, MARGIN, SHARE
from reticent.types import Kernels


class Safety:
    """What is safe to send at one belief, of these readings. `limits` [S] are those on the posterior of each secret.

    `theta` [S] is what the program keeps to; `xp` is the namespace of the arrays.
    """

    def __init__(self, readings: Joint, limits: Float[Any, " S"]) -> None:
        self.xp: Any = readings.belief.__array_namespace__()
        headroom = (limits - secret_marginal(readings.belief)).min()
        self.readings, self.limits = readings, limits
        self.theta = limits - self.xp.minimum(MARGIN, (1 - SHARE) * headroom)

    def cheapest(self, cost: Float[Any, "O A Z"]) -> Kernels:
        """The safe kernels of least cost, where cost[0] is of sending z as it is and cost[m] of merging it into m."""
        xp, options = self.xp, cost.shape[0]
        excess = self.readings.secret - self.theta[:, None, None] * self.readings.law[None]
        raw = (excess < 0).all(0)
        kernels = cheapest_kernels(cost.swapaxes(0, 1), excess.swapaxes(0, 1), raw)
        kernels = kernels / kernels.sum(1, keepdims=True)
        # A merged symbol that is hardly ever used has no more than rounding errors to balance its secrets with. A
        # little of every reading corrects that.
        safe = self.holds(kernels)
        if isinstance(safe, np.ndarray) and safe.all():
            return kernels
        merged = xp.arange(options) > 0
        blended = (1 - BLEND) * kernels + BLEND * self._same_for_all(merged / (options - 1))
        safest = xp.where(self.holds(blended)[:, None, None], blended, self.merge_everything(options))
        return xp.where(safe[:, None, None], kernels, safest)

    def holds(self, kernels: Kernels) -> Bool[Any, " A"]:
        """Whether these are kernels, none of whose symbols lifts a secret beyond halfway from theta to L_B."""
        joint = sent_joint(self.readings.secret, kernels)
        highest = (self.theta + self.limits) / 2
        safe = (joint <= highest[:, None, None] * joint.sum(0)[None]).all((0, 2))
        # A comparison with something that is not a number is false.
        whole = (abs(kernels.sum(1) - 1) < KERNEL_SUM_TOLERANCE).all(1)
        return safe & (kernels >= 0).all((1, 2)) & whole

    def merge_everything(self, options: int) -> Kernels:
        """The kernels that say nothing: every reading becomes the first merged symbol."""
        return self._same_for_all((self.xp.arange(options) == 1) * 1.0)

    def _same_for_all(self, chances: Float[Any, " O"]) -> Kernels:
        """Every reading of every sensor becomes each option with the same chance."""
        sensors, symbols = self.readings.law.shape
        return self.xp.broadcast_to(chances[None, :, None], (sensors, len(chances), symbols))
