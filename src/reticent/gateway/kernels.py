"""The guarantee in numpy: what is sent in place of readings at one belief.

`reticent.process.guarantee` says why it holds. What the solver returns is checked and, if it fails, replaced by a rule
that says nothing: the promise does not depend on the solver.
"""

from typing import Protocol

import numpy as np

from reticent.gateway.numeric import Joint, Sensors
from reticent.gateway.program import cheapest_kernels
from reticent.problem.enforcement import Guard
from reticent.problem.merging import BLEND, KERNEL_SUM_TOLERANCE, MARGIN, SHARE


class Safety:
    """What is safe to send at one belief [P]."""

    xp = np

    def __init__(self, belief: np.ndarray, joint: Joint, limits: np.ndarray) -> None:
        headroom = float((limits - joint.by_secret).min())
        self.belief, self.joint, self.limits = belief, joint, limits
        # Of each secret, [S 1].
        self.theta = (limits - min(MARGIN, (1 - SHARE) * headroom))[:, None]

    @property
    def law(self) -> np.ndarray:
        """P(z), [A Z]."""
        return self.joint.law[:, 0]

    @property
    def useful(self) -> np.ndarray:
        """P(u, z), [U A Z]."""
        return self.joint.useful.swapaxes(0, 1)

    def by_sensor(self, costs: np.ndarray) -> np.ndarray:
        """Costs [O A Z] as [A O Z]."""
        return np.ascontiguousarray(costs.swapaxes(0, 1))

    def cheapest(self, cost: np.ndarray) -> np.ndarray:
        """The safe kernels [A O Z] of least cost [A O Z]: option 0 sends a reading as it is, m merges it into m."""
        excess = self.joint.secret - self.theta * self.joint.law
        raw = np.logical_and.reduce(excess < 0, axis=1)
        kernels = cheapest_kernels(cost, excess, raw)
        kernels[:, 0] *= raw
        with np.errstate(all="ignore"):
            kernels /= kernels.sum(1, keepdims=True)
        safe = self.holds(kernels)
        return kernels if safe.all() else np.where(safe[:, None, None], kernels, self._mended(kernels))

    def _mended(self, kernels: np.ndarray) -> np.ndarray:
        """With a little of every reading in each merged symbol, or else everything in the first.

        A merged symbol that is hardly ever used has no more than rounding errors to balance its secrets with.
        """
        even, everything = np.zeros_like(kernels), np.zeros_like(kernels)
        even[:, 1:] = 1 / (kernels.shape[1] - 1)
        everything[:, 1] = 1.0
        blended = (1 - BLEND) * kernels + BLEND * even
        return np.where(self.holds(blended)[:, None, None], blended, everything)

    def holds(self, kernels: np.ndarray) -> np.ndarray:
        """Whether these are kernels, none of whose symbols lifts a secret beyond halfway from theta to L_B."""
        highest = (self.theta + self.limits[:, None]) / 2
        secret = self.joint.secret
        sent = np.concatenate([secret * kernels[:, :1], secret @ kernels[:, 1:].swapaxes(1, 2)], axis=2)
        safe = (sent <= highest * sent.sum(1, keepdims=True)).all((1, 2))
        # A comparison with something that is not a number is false.
        whole = np.abs(kernels.sum(1) - 1) < KERNEL_SUM_TOLERANCE
        return safe & (kernels >= 0).all((1, 2)) & whole.all(1)


class Rule(Protocol):
    """Which of the safe kernels to use."""

    def kernels(self, safety: Safety) -> np.ndarray:
        """A safe kernel for each sensor, [A O Z]."""
        ...


class Labels:
    """The rule that needs nothing learned."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def kernels(self, safety: Safety) -> np.ndarray:
        return safety.cheapest(safety.by_sensor(self._guard.label_costs(safety)))


def movement(belief: np.ndarray, sensors: Sensors, joint: Joint, kernels: np.ndarray) -> np.ndarray:
    """Expected total variation between the belief after a release and before it, of each sensor."""
    apart = sensors.likelihoods - joint.law.swapaxes(1, 2)
    merged = np.abs(kernels[:, 1:] @ apart)
    alone = kernels[:, :1] @ np.abs(apart)
    return 0.5 * (np.concatenate([alone, merged], axis=1) @ belief).sum(1)
