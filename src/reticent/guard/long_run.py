"""Kernels priced for the long run: what is known of U keeps its worth for a while, and so does what is said of S.

Which release makes this step cheapest is not the question in a problem that goes on: what is known of U now still helps
in the steps to come, and what is said of S now is headroom that they lack. Two weights stand for both, in the value

    V(p) = lambda (kappa phi_S(p) - omega phi_U(p)),    phi_X = sum_x p(x)^2 / sum_x p(x),

of the (weighted) belief p after a symbol. Kernels minimise the expected cost of this step and V after it. V is not
linear, so merged symbols are priced by tangents of phi: first at the mean posterior of the readings that vote for each
u, then at those that the last program made. Tangents lie below phi, which makes them a heuristic for phi_S: of the
programs, the kernel of least expected value is kept for each sensor. `reticent.policy.ongoing.LongRunLookahead` acts by
the same value, and `reticent.solve.long_run` finds the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxtyping import Float, Int

from reticent.belief.bayes import secret_marginal, useful_marginal
from reticent.guard.safety import Safety
from reticent.guard.score import score, tangents
from reticent.problem.enforcement import Guard, KernelRule
from reticent.problem.merging import LEAST_MASS, RAW_BONUS, quadratic_symbols
from reticent.types import Kernels, PerSensor

# P(s, y) and P(u, y) of some symbols y.
Joints = tuple[Any, Any]


def long_run_value(
    omega: Any, kappa: Any, secret: Float[Any, "S ..."], useful: Float[Any, "U ..."]
) -> Float[Any, "..."]:
    """V / lambda of the weighted beliefs."""
    return kappa * score(secret) - omega * score(useful)


@dataclass(frozen=True)
class LongRunKernels(KernelRule):
    """Kernels of least expected cost of this step and value for those to come.

    Args:
        omega: What the score of U is worth beyond this step, against how often the best guess is right in it.
        kappa: What the score of S costs.
        refinements: How often tangents are taken anew, at the symbols of the program before.

    Example:
        >>> rt.Coarsen(rt.LongRunKernels()).merged_symbols(["sit", "walk"])
        ('merged: sit', 'merged: walk', 'withheld')
    """

    name: ClassVar[str] = "long-run"
    omega: float = 1.0
    kappa: float = 1.0
    refinements: int = field(default=1, metadata={"static": True})

    def kernels(self, guard: Guard, safety: Safety) -> Kernels:
        readings = safety.readings.secret, safety.readings.useful
        declared = _declared(guard, safety)
        raw = (1 - RAW_BONUS) * safety.readings.law - readings[1].max(0) + self._value(readings)
        anchors = _voted(guard, safety)
        best = kernels = self._cheapest(safety, raw, declared, anchors)
        least = self._expected(best, readings)
        for _ in range(self.refinements):
            kernels = self._cheapest(safety, raw, declared, _made(safety, kernels))
            expected = self._expected(kernels, readings)
            best = safety.xp.where((expected < least)[:, None, None], kernels, best)
            least = safety.xp.minimum(expected, least)
        return best

    def merged_symbols(self, declares: bool, useful: Sequence[str]) -> tuple[str, ...]:
        return tuple(quadratic_symbols(declares, useful))

    def _value(self, joints: Joints) -> Float[Any, "A Y"]:
        return long_run_value(self.omega, self.kappa, *joints)

    def _cheapest(self, safety: Safety, raw: Any, declared: Int[Any, " M"], anchors: Any) -> Kernels:
        secret, useful = safety.readings.secret, safety.readings.useful
        wrong = safety.readings.law[None] - useful[declared]
        later = self.kappa * tangents(anchors[0], secret) - self.omega * tangents(anchors[1], useful)
        return safety.cheapest(safety.xp.concatenate([raw[None], wrong + later]))

    def _expected(self, kernels: Kernels, readings: Joints) -> PerSensor:
        """Over all symbols that a sensor may send: how often the best guess is wrong, and V / lambda."""
        merged = _merged(kernels, readings)
        raw = kernels[:, 0] * (self._value(readings) - readings[1].max(0))
        return raw.sum(1) + (self._value(merged) - merged[1].max(0)).sum(1)


def _declared(guard: Guard, safety: Safety) -> Int[Any, " M"]:
    """The useful value that each merged symbol stands for; the present best guess for the one that says nothing."""
    xp, now = safety.xp, useful_marginal(safety.readings.belief)
    guess = now.argmax()[None]
    return xp.concatenate([xp.arange(len(now)), guess]) if guard.declares else guess


def _voted(guard: Guard, safety: Safety) -> tuple[Any, Any]:
    """For each u the mean posteriors of the readings whose best guess is u, and the present beliefs for one more."""
    xp, useful = safety.xp, safety.readings.useful
    symbols = xp.arange(len(useful))[:, None, None] == useful.argmax(0)[None]
    return _posteriors(safety, symbols[: len(useful) if guard.declares else 0] * 1.0, present=True)


def _made(safety: Safety, kernels: Kernels) -> tuple[Any, Any]:
    """The posteriors of the merged symbols of these kernels."""
    return _posteriors(safety, kernels[:, 1:].swapaxes(0, 1), present=False)


def _posteriors(safety: Safety, chances: Float[Any, "M A Z"], present: bool) -> tuple[Any, Any]:
    """Of the secret [M S A] and of the useful value [M U A]; a symbol that is hardly ever sent has the present ones."""
    xp, belief = safety.xp, safety.readings.belief
    marginals = secret_marginal(belief), useful_marginal(belief)
    found = []
    for joint, now in zip((safety.readings.secret, safety.readings.useful), marginals, strict=True):
        mass = (chances[:, None] * joint[None]).sum(-1)
        law, now = mass.sum(1, keepdims=True), xp.broadcast_to(now[None, :, None], (1, *mass.shape[1:]))
        after = xp.where(law > LEAST_MASS, mass / xp.where(law > 0, law, 1.0), now)
        found.append(xp.concatenate([after, now]) if present else after)
    return found[0], found[1]


def _merged(kernels: Kernels, readings: Joints) -> Joints:
    """P(s, m) and P(u, m) of the merged symbols m."""
    secret, useful = ((kernels[None, :, 1:] * joint[:, :, None]).sum(-1) for joint in readings)
    return secret, useful
