"""Quadratic kernels: merged symbols that keep what weak readings say of U, not only the best guess.

Where no single reading changes the provider's best guess of U, "how often is it right" is the same for every kernel,
and everything might as well be withheld. The quadratic score of a posterior still tells them apart: with the weighted
posterior p(u) = P(u, y) of a symbol y the kernel maximises the sum over symbols of

    phi(p) = sum_u p(u)^2 / sum_u p(u).

It is convex and homogeneous, so it lies above its tangents, phi(p) >= sum_u (2 a(u) - sum_v a(v)^2) p(u) at any law a:
each merged symbol is priced by one. Under coarsening the anchors a are, for each u, the mean posterior of the readings
whose best guess is u, and the present belief for a symbol more; under withholding the present belief alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float

from reticent.belief.bayes import useful_marginal
from reticent.guard.safety import Safety
from reticent.guard.score import score, tangents
from reticent.problem.enforcement import Guard, KernelRule
from reticent.problem.merging import LEAST_MASS, RAW_BONUS, quadratic_symbols
from reticent.types import Kernels


@dataclass(frozen=True)
class QuadraticKernels(KernelRule):
    """Kernels whose symbols have the largest expected quadratic score of U, for readings that are weak one by one.

    Example:
        >>> rt.Coarsen(rt.QuadraticKernels()).merged_symbols(["sit", "walk"])
        ('merged: sit', 'merged: walk', 'withheld')
    """

    name: ClassVar[str] = "quadratic"

    def kernels(self, guard: Guard, safety: Safety) -> Kernels:
        xp, useful = safety.xp, safety.readings.useful
        law = useful.sum(0)
        anchors = _anchors(safety) if guard.declares else _present(safety)
        raw = (1 - RAW_BONUS) * law - score(useful)
        return safety.cheapest(xp.concatenate([raw[None], law[None] - tangents(anchors, useful)]))

    def merged_symbols(self, declares: bool, useful: Sequence[str]) -> tuple[str, ...]:
        return tuple(quadratic_symbols(declares, useful))


def _present(safety: Safety) -> Float[Any, "M U *N A"]:
    """The present belief about U, as the one anchor."""
    now = useful_marginal(safety.readings.belief).swapaxes(0, -1)
    return safety.xp.broadcast_to(now[None, ..., None], (1, len(now), *safety.readings.law.shape[:-1]))


def _anchors(safety: Safety) -> Float[Any, "M U *N A"]:
    """For each u the mean posterior of the readings whose best guess is u, then the present belief."""
    xp, useful = safety.xp, safety.readings.useful
    votes = xp.arange(len(useful)).reshape(-1, *(1,) * (useful.ndim - 1)) == useful.argmax(0)[None]
    # P(u', z votes for u), [M U *N A].
    joint = (votes[:, None] * useful[None]).sum(-1)
    mass, now = joint.sum(1, keepdims=True), _present(safety)
    means = xp.where(mass > LEAST_MASS, joint / xp.where(mass > 0, mass, 1.0), now)
    return xp.concatenate([means, now])
