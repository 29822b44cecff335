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

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Bool, Float

from reticent.belief.bayes import emitted, secret_joint, secret_marginal, useful_joint
from reticent.problem.merging import BLEND, KERNEL_SUM_TOLERANCE, MARGIN, SHARE
from reticent.process.linear_program import cheapest_kernels
from reticent.types import Array, Belief, Channel, Kernels


class Safety(eqx.Module):
    """What is safe to send at one belief."""

    belief: Belief
    channel: Channel
    # Of each secret: the limit on its posterior, and what the program keeps to.
    limits: Float[Array, " S"]
    theta: Float[Array, " S"]
    secret: Float[Array, "S A Z"]
    law: Float[Array, "A Z"]
    # The namespace that the arrays belong to.
    xp: ClassVar[Any] = jnp

    def __init__(self, belief: Belief, channel: Channel, limits: Float[Array, " S"]) -> None:
        headroom = jnp.min(limits - secret_marginal(belief))
        self.belief, self.channel, self.limits = belief, channel, limits
        self.theta = limits - jnp.minimum(MARGIN, (1 - SHARE) * headroom)
        self.secret = secret_joint(belief, channel)
        self.law = self.secret.sum(0)

    @property
    def useful(self) -> Float[Array, "U A Z"]:
        """P(u, z) of each sensor."""
        return useful_joint(self.belief, self.channel)

    def cheapest(self, cost: Float[Array, "O A Z"]) -> Kernels:
        """The safe kernels of least cost, where cost[0] is of sending z as it is and cost[m] of merging it into m."""
        excess = self.secret - self.theta[:, None, None] * self.law[None]
        raw = jnp.all(excess < 0, axis=0)
        solved = cheapest_kernels(*(jnp.swapaxes(x, -1, -2) for x in (cost, excess, raw)))
        kernels = jnp.moveaxis(solved, -1, 0)
        kernels = kernels.at[:, 0].multiply(raw)
        kernels = kernels / kernels.sum(1, keepdims=True)
        # A merged symbol that is hardly ever used has no more than rounding errors to balance its secrets with. A
        # little of every reading mends that.
        options = cost.shape[0]
        even = jnp.full_like(kernels, 1 / (options - 1)).at[:, 0].set(0.0)
        blended = (1 - BLEND) * kernels + BLEND * even
        safest = jnp.where(self.holds(blended)[:, None, None], blended, self.merge_everything(options))
        return jnp.where(self.holds(kernels)[:, None, None], kernels, safest)

    def holds(self, kernels: Kernels) -> Bool[Array, " A"]:
        """Whether these are kernels, none of whose symbols lifts a secret beyond halfway from theta to L_B."""
        joint = secret_joint(self.belief, emitted(self.channel, kernels))
        highest = (self.theta + self.limits) / 2
        safe = jnp.all(joint <= highest[:, None, None] * joint.sum(0)[None], axis=(0, 2))
        # A comparison with something that is not a number is false.
        whole = jnp.all(jnp.abs(kernels.sum(1) - 1) < KERNEL_SUM_TOLERANCE, axis=1)
        return safe & jnp.all(kernels >= 0, axis=(1, 2)) & whole

    def merge_everything(self, options: int) -> Kernels:
        """The kernels that say nothing: every reading becomes the first merged symbol."""
        sensors, symbols = self.law.shape
        return jnp.zeros((sensors, options, symbols)).at[:, 1].set(1.0)
