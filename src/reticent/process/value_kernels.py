"""Value kernels: merged symbols that carry what going on is worth, not only what to declare.

Under coarsening, beside the |U| symbols "stop and declare u", whose readings cost lambda P(z, not u), there are |U|
symbols "go on". The cost of going on is not linear, so each of those is priced by the tangent plane of the learned cost
to go at a reference posterior: first those of the label kernels' merged symbols, then those that the last program made.
Under withholding the one merged symbol is priced so. The cost to go is not concave here, so tangents are a heuristic:
per sensor, the kernel of least expected cost to go among all is kept.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.bayes import normalise
from reticent.problem.enforcement import Guard, KernelChoice, KernelRule
from reticent.problem.merging import LEAST_MASS, REFINEMENTS, value_symbols
from reticent.process.guarantee import Safety
from reticent.types import Array, Belief, Kernels, PerSensor, Scalar

ContinuationValue = Callable[[Belief, Scalar], Scalar]


class ValueKernels(eqx.Module, KernelRule):
    """Kernels of least expected cost to go, given the continuation value at a belief.

    Without `refinements` they are label kernels in the shape of value kernels: for a value that is still raw.
    """

    name: ClassVar[KernelChoice] = "value"
    going_on: ContinuationValue
    error_penalty: Scalar
    refinements: int = eqx.field(static=True, default=REFINEMENTS)

    def kernels(self, guard: Guard, safety: Safety) -> Kernels:
        joint = jnp.moveaxis(safety.belief[None, :, :, None] * safety.channel, -1, 1)
        raw = jax.vmap(jax.vmap(self._weighted_value))(joint)
        costs = guard.label_costs(safety)
        stops = self.error_penalty * costs[1:] if guard.declares else costs[:0]
        # A symbol that cannot declare anything may be worth stopping at, too.
        priced = self._weighted_going_on if len(stops) else self._weighted_value

        label = safety.cheapest(costs)
        best = jnp.pad(label, ((0, 0), (0, len(stops)), (0, 0)))
        least = self._expected(best, joint, raw)
        reference = self._posteriors(label[:, 1:], joint, safety.belief)
        for _ in range(self.refinements):
            tangents = jax.vmap(jax.vmap(jax.grad(priced)))(reference)
            going_on = jnp.einsum("azsu,amsu->maz", joint, tangents)
            kernels = safety.cheapest(jnp.concatenate([raw[None], stops, going_on]))
            expected = self._expected(kernels, joint, raw)
            better = expected < least
            best = jnp.where(better[:, None, None], kernels, best)
            least = jnp.minimum(least, expected)
            reference = self._posteriors(kernels[:, 1 + len(stops) :], joint, safety.belief)
        return best

    def merged_symbols(self, declares: bool, useful: Sequence[str]) -> tuple[str, ...]:
        return tuple(value_symbols(declares, useful))

    def _weighted_going_on(self, joint: Belief) -> Scalar:
        """p times the cost of going on at joint / p: homogeneous, so that its gradient is the tangent plane."""
        mass = jnp.sum(joint)
        return mass * self.going_on(joint / mass, jnp.zeros(()))

    def _weighted_value(self, joint: Belief) -> Scalar:
        """p V(joint / p); zero for a joint without mass."""
        mass = jnp.sum(joint)
        stop = self.error_penalty * (mass - jnp.max(joint.sum(0)))
        belief = joint / jnp.where(mass > 0, mass, 1.0)
        return jnp.minimum(stop, mass * self.going_on(belief, jnp.zeros(())))

    def _expected(self, kernels: Kernels, joint: Array, raw: Float[Array, "A Z"]) -> PerSensor:
        """sum_y p(y) V(beta_y) over all symbols that a sensor may send."""
        merged = jnp.einsum("amz,azsu->amsu", kernels[:, 1:], joint)
        return jnp.sum(kernels[:, 0] * raw, axis=1) + jnp.sum(jax.vmap(jax.vmap(self._weighted_value))(merged), axis=1)

    def _posteriors(self, merged: Array, joint: Array, belief: Belief) -> Float[Array, "A M S U"]:
        """Beliefs after each merged symbol; one that is hardly ever sent leaves the belief as it was."""
        after = jnp.einsum("amz,azsu->amsu", merged, joint)
        return jax.vmap(jax.vmap(lambda one: jnp.where(jnp.sum(one) > LEAST_MASS, normalise(one), belief)))(after)
