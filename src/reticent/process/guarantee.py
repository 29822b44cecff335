"""The guarantee: what is withheld or merged, so that no symbol ever lifts the confidence in a secret to the bound.

The device reads z before it sends anything, and sends z as it is or one of a few merged symbols, drawn from a kernel
that everybody knows: it depends on the public belief and the sensor only. The provider updates its belief by Bayes on
what is sent, merged symbols included, so silence leaks only what Bayes says it leaks. With P(z, s, u) = beta(s, u)
q(z | a, s, u), r(z) the chance of "as it is" and k(m | z) that of the merged symbol m, a kernel is safe if

    r(z) = 0 where P(s | z) >= theta for some s,
    sum_z k(m | z) (P(z, s) - theta P(z)) <= 0 for every m and s.

Both are linear, so the cheapest safe kernel is a linear program. `theta` lies between max_s beta(s), so that merging
everything is always a solution, and L_B, by more than rounding can bridge. What the solver returns is checked and, if
it fails, replaced by exactly that solution: the promise does not depend on the solver.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Bool, Float

from reticent.belief.bayes import secret_joint, secret_marginal, useful_joint
from reticent.problem.merging import BLEND, KERNEL_SUM_TOLERANCE, MARGIN, RAW_BONUS, SHARE, label_symbols
from reticent.process.linear_program import cheapest_kernels
from reticent.types import Array, Belief, Channel, Kernels, PerSensor, Scalar


def emitted(channel: Channel, kernels: Kernels) -> Float[Array, "A S U Y"]:
    """Law of what leaves the device, [r(z) q(z | a, s, u) for each z, sum_z k(m | z) q(z | a, s, u) for each m]."""
    raw = channel * kernels[:, None, None, 0]
    # One plain matrix product per sensor: faster in a batch than a single einsum.
    merged = [jnp.tensordot(law, kernel[1:], (-1, -1)) for law, kernel in zip(channel, kernels, strict=True)]
    return jnp.concatenate([raw, jnp.stack(merged)], axis=-1)


def movement(belief: Belief, emissions: Channel) -> PerSensor:
    """Expected total variation between the belief after a release and before it."""
    law = useful_joint(belief, emissions).sum(0)
    return 0.5 * jnp.sum(belief[None, :, :, None] * jnp.abs(emissions - law[:, None, None]), axis=(1, 2, 3))


class Safety(eqx.Module):
    """What is safe to send at one belief."""

    belief: Belief
    channel: Channel
    limit: Scalar
    theta: Scalar
    secret: Float[Array, "S A Z"]
    law: Float[Array, "A Z"]

    def __init__(self, belief: Belief, channel: Channel, limit: Scalar) -> None:
        confidence = jnp.max(secret_marginal(belief))
        self.belief, self.channel, self.limit = belief, channel, limit
        self.theta = jnp.maximum(limit - MARGIN, confidence + SHARE * (limit - confidence))
        self.secret = secret_joint(belief, channel)
        self.law = self.secret.sum(0)

    def cheapest(self, cost: Float[Array, "O A Z"]) -> Kernels:
        """The safe kernels of least cost, where cost[0] is of sending z as it is and cost[m] of merging it into m."""
        excess = self.secret - self.theta * self.law[None]
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
        safe = jnp.all(joint <= (self.theta + self.limit) / 2 * joint.sum(0)[None], axis=(0, 2))
        # A comparison with something that is not a number is false.
        whole = jnp.all(jnp.abs(kernels.sum(1) - 1) < KERNEL_SUM_TOLERANCE, axis=1)
        return safe & jnp.all(kernels >= 0, axis=(1, 2)) & whole

    def merge_everything(self, options: int) -> Kernels:
        """The kernels that say nothing: every reading becomes the first merged symbol."""
        sensors, symbols = self.law.shape
        return jnp.zeros((sensors, options, symbols)).at[:, 1].set(1.0)


class Rule(eqx.Module):
    """Which of the safe kernels to use."""

    @abc.abstractmethod
    def kernels(self, safety: Safety) -> Kernels:
        """A safe kernel for each sensor."""

    @abc.abstractmethod
    def merged(self, useful: Sequence[str]) -> list[str]:
        """Names of the merged symbols, given those of the useful values."""


class Labels(Rule):
    """A rule that needs nothing learned: its program depends on the belief only."""

    # Whether each merged symbol stands for the useful value of the same index.
    declares: ClassVar[bool]

    @abc.abstractmethod
    def costs(self, safety: Safety) -> Float[Array, "O A Z"]:
        """What `Safety.cheapest` minimises."""

    def kernels(self, safety: Safety) -> Kernels:
        return safety.cheapest(self.costs(safety))

    def merged(self, useful: Sequence[str]) -> list[str]:
        return label_symbols(self.declares, useful)


class Withhold(Labels):
    """One merged symbol, "withheld": as little as possible is withheld."""

    declares = False

    def costs(self, safety: Safety) -> Float[Array, "O A Z"]:
        return jnp.stack([jnp.zeros_like(safety.law), safety.law])


class Coarsen(Labels):
    """One merged symbol per useful value: the provider's best guess of U is right as often as possible.

    The cost is the chance of z and a wrong guess: the best one after z itself, or the one that the merged symbol
    declares.
    """

    declares = True

    def costs(self, safety: Safety) -> Float[Array, "O A Z"]:
        useful = useful_joint(safety.belief, safety.channel)
        raw = (1 - RAW_BONUS) * safety.law - useful.max(0)
        return jnp.concatenate([raw[None], safety.law[None] - useful])
