"""Value kernels: merged symbols that carry the continuation value, not only what to declare.

Under coarsening, beside the |U| symbols "stop and declare u", whose readings cost lambda P(z, not u), there are |U|
symbols "go on". The continuation value is not linear, so each of those is priced by its tangent plane at a reference
posterior: first those of the label kernels' merged symbols, then those that the last program made. Under withholding
the one merged symbol is priced so. The value is not concave here, so tangents are a heuristic: per sensor, the kernel
of least expected cost among all is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxtyping import Float, Inexact

from reticent.belief.bayes import outward
from reticent.guard.safety import Safety
from reticent.guard.tangent import gradients
from reticent.problem.enforcement import Guard, KernelChoice, KernelRule
from reticent.problem.merging import LEAST_MASS, REFINEMENTS, value_symbols
from reticent.types import Kernels

# Cost of releasing at least once more and acting well from then on: [*N S U] -> [*N].
ContinuationValue = Callable[[Any], Any]


@dataclass(frozen=True)
class ValueKernels(KernelRule):
    """Kernels of least expected cost to go, given the continuation value at beliefs.

    Without `refinements` they are label kernels in the shape of value kernels: for a value that is still raw.
    """

    name: ClassVar[str] = "value"
    continuation: ContinuationValue
    error_penalty: Any
    refinements: int = field(default=REFINEMENTS, metadata={"static": True})

    @property
    def choice(self) -> KernelChoice:
        return "value"

    def kernels(self, guard: Guard, safety: Safety) -> Kernels:
        xp = safety.xp
        belief = safety.readings.belief
        # P(s, u, z), [*N A Z S U].
        joint = belief[..., None, None, :, :] * safety.readings.channel.swapaxes(-1, -2).swapaxes(-2, -3)
        raw = self._weighted_value(joint)
        costs = guard.label_costs(safety)
        stops = self.error_penalty * costs[1:] if guard.declares else costs[:0]
        # A symbol that cannot declare anything may be worth stopping at, too.
        priced = self._weighted_continuation if len(stops) else self._weighted_value

        label = safety.cheapest(costs)
        best = xp.concatenate([label, xp.zeros_like(label[..., 1 : 1 + len(stops), :])], axis=-2)
        least = self._expected(best, joint, raw)
        reference = self._posteriors(label[..., 1:, :], joint, belief)
        for _ in range(self.refinements):
            tangents = gradients(priced, reference)
            continuation = outward(_flat(tangents) @ _flat(joint).swapaxes(-1, -2))
            kernels = safety.cheapest(xp.concatenate([raw[None], stops, continuation]))
            expected = self._expected(kernels, joint, raw)
            better = expected < least
            best = xp.where(better[..., None, None], kernels, best)
            least = xp.minimum(least, expected)
            reference = self._posteriors(kernels[..., 1 + len(stops) :, :], joint, belief)
        return best

    def merged_symbols(self, declares: bool, useful: Sequence[str]) -> tuple[str, ...]:
        return tuple(value_symbols(declares, useful))

    def _weighted_continuation(self, joint: Inexact[Any, "*N S U"]) -> Inexact[Any, "*N"]:
        """p times the continuation value at joint / p: homogeneous, so that its gradient is the tangent plane."""
        mass = joint.sum((-2, -1))
        scale = joint.__array_namespace__().where(mass > 0, mass, 1.0)
        return mass * self.continuation(joint / scale[..., None, None])

    def _weighted_value(self, joint: Inexact[Any, "*N S U"]) -> Inexact[Any, "*N"]:
        """p V(joint / p); zero for a joint without mass."""
        stop = self.error_penalty * (joint.sum((-2, -1)) - joint.sum(-2).max(-1))
        return joint.__array_namespace__().minimum(stop, self._weighted_continuation(joint))

    def _expected(
        self, kernels: Kernels, joint: Float[Any, "*N A Z S U"], raw: Float[Any, "*N A Z"]
    ) -> Float[Any, "*N A"]:
        """sum_y p(y) V(beta_y) over all symbols that a sensor may send."""
        merged = _merged(kernels[..., 1:, :], joint)
        return (kernels[..., 0, :] * raw).sum(-1) + self._weighted_value(merged).sum(-1)

    def _posteriors(self, merged: Any, joint: Any, belief: Any) -> Float[Any, "*N A M S U"]:
        """Beliefs after each merged symbol; one that is hardly ever sent leaves the belief as it was."""
        xp = belief.__array_namespace__()
        after = _merged(merged, joint)
        mass = after.sum((-2, -1))[..., None, None]
        before = belief[..., None, None, :, :]
        return xp.where(mass > LEAST_MASS, after / xp.where(mass > 0, mass, 1.0), before)


def _flat(joint: Float[Any, "*N A S U"]) -> Float[Any, "*N A X"]:
    """Pairs as one axis."""
    return joint.reshape(*joint.shape[:-2], -1)


def _merged(kernels: Float[Any, "*N A M Z"], joint: Float[Any, "*N A Z S U"]) -> Float[Any, "*N A M S U"]:
    """P(s, u, m) of what is merged."""
    merged = kernels @ _flat(joint)
    return merged.reshape(*merged.shape[:-1], *joint.shape[-2:])
