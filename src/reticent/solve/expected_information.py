"""Exact solution under a bound on expected information, on the count lattice, for at most T releases.

    minimise E[cost]  subject to  H(S) - E[H(beta_tau(S))] <= L

Both sides are linear in the chances with which a policy visits beliefs, so this is a linear program, and its dual is
the largest value of

    g(mu) = min over policies of  E[cost] + mu (leakage - L),    mu >= 0.

Each policy is a line in mu, so g is concave and made of straight pieces. For one mu the minimum is a back-up over the
lattice with stop cost lambda (1 - max_u beta(u)) + mu (H_0 - H(beta_S)). By strong duality the top of g is what the
best randomised policy costs: it draws one of two policies at the start, and keeps the limit on average.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.special import entr

from reticent.errors import InputError
from reticent.problem.bound import Unbounded
from reticent.problem.enforcement import Penalty
from reticent.problem.task import Task
from reticent.solve.lattice import Lattice, Level, count

# A policy that lies below the others by less than this share of lambda does so by rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class PlainPolicy:
    """A policy without randomisation: what it costs, what it says about the secret, and its first action.

    `first` is a sensor's index, or the number of sensors to stop.
    """

    cost: float
    leakage_bits: float
    first: int


@dataclass(frozen=True)
class Share:
    """A policy of the mixture, and the chance that it is the one that is drawn at the start."""

    weight: float
    policy: PlainPolicy


@dataclass(frozen=True)
class ExpectedSolution:
    """The optimal cost with at most `horizon` releases, exact up to rounding, and a mixture of policies of that cost.

    `multiplier` is what a bit more would save. It is zero if the limit does not bind, and then one policy is enough.
    """

    cost: float
    multiplier: float
    mixture: tuple[Share, ...]
    nodes: int
    horizon: int

    @property
    def leakage_bits(self) -> float:
        """What the mixture says about the secret on average."""
        return sum(share.weight * share.policy.leakage_bits for share in self.mixture)


def solve_expected(
    task: Task,
    horizon: int,
    max_nodes: int = 10_000_000,
    report: Callable[[int, int], None] | None = None,
) -> ExpectedSolution:
    """The least cost that keeps the limit on average, of a small task.

    `report` is called with the depth and the number of nodes after each level.
    """
    if task.bound.pathwise:
        raise InputError(f"solve_expected needs a bound that is kept on average, not {task.bound}.")
    # Nothing is forbidden, and the levels are built without a multiplier. They hold what every multiplier needs: where
    # stopping is optimal at mu = 0, it is at every mu, because releases add mu times the information still to come.
    lattice = Lattice(replace(task, bound=Unbounded(), enforcement=Penalty()), horizon)
    *_, levels = lattice.grow(max_nodes, report)
    multiplier, mixture = _top(_Responses(lattice, levels), task.bound.number)
    cost = sum(share.weight * share.policy.cost for share in mixture)
    return ExpectedSolution(cost, multiplier, mixture, count(levels), horizon)


def _top(responses: "_Responses", bits: float) -> tuple[float, tuple[Share, ...]]:
    """Where g is largest, and the policies that meet there.

    `loud` says more than the limit, so its line rises in mu; `quiet` does not, so its line falls or is level. Their
    crossing lies above g, and on it once no policy lies below. Else the lowest policy there replaces the one on its
    side. Each policy is taken at most once, so this ends.
    """
    loud, quiet = responses.best(0.0), responses.stop_at_once()
    if loud.leakage_bits <= bits:
        return 0.0, (Share(1.0, loud),)
    while True:
        multiplier = (quiet.cost - loud.cost) / (loud.leakage_bits - quiet.leakage_bits)
        lowest = responses.best(multiplier)
        gap = quiet.cost - lowest.cost + multiplier * (quiet.leakage_bits - lowest.leakage_bits)
        if gap <= ROUNDING * responses.lattice.objective.error_penalty:
            return multiplier, _mixture(loud, quiet, bits)
        if lowest.leakage_bits > bits:
            loud = lowest
        else:
            quiet = lowest


def _mixture(loud: PlainPolicy, quiet: PlainPolicy, bits: float) -> tuple[Share, ...]:
    """The weights with which the limit is met exactly; a policy that needs none is left out."""
    weight = (bits - quiet.leakage_bits) / (loud.leakage_bits - quiet.leakage_bits)
    return tuple(share for share in (Share(weight, loud), Share(1 - weight, quiet)) if share.weight > 0)


class _Responses:
    """The best policies against given multipliers, on one lattice."""

    def __init__(self, lattice: Lattice, levels: list[Level]) -> None:
        self.lattice, self.levels = lattice, levels
        self.first_bits = entr(lattice.prior @ lattice.secret_of).sum() / np.log(2)

    def stop_at_once(self) -> PlainPolicy:
        """Says nothing."""
        cost = self.lattice.stop_cost(self.lattice.prior[None])[0]
        return PlainPolicy(float(cost), 0.0, self.lattice.shape[0])

    def best(self, multiplier: float) -> PlainPolicy:
        """The policy of least cost + multiplier * leakage, by backward induction."""
        values, first = self._stops(self.levels[-1]), self.lattice.shape[0]
        for level in reversed(self.levels[:-1]):
            values, first = self._back_up(level, values, multiplier)
        cost, bits = values[:, 0].tolist()
        return PlainPolicy(cost, bits, first)

    def _back_up(
        self, level: Level, following: Float[np.ndarray, "2 L"], multiplier: float
    ) -> tuple[Float[np.ndarray, "2 N"], int]:
        """Cost and leakage of the best action at every node, and the first node's. Stops where both are as good."""
        assert level.live is not None
        assert level.children is not None
        values, prices = self._stops(level), np.array([1.0, multiplier])
        # The two negative codes of `children` point to the padding: nothing follows there.
        padded = np.pad(following, ((0, 0), (0, 2)))
        first, start = self.lattice.shape[0], 0
        for node, beliefs in self.lattice.chunks(level, level.live):
            law = self.lattice.look(level, node, beliefs).law
            child = level.children[start : start + node.size]
            start += node.size
            continuation = np.stack([(law * side[child]).sum(2) for side in padded])
            continuation[0] += self.lattice.objective.time_cost
            sensor = np.tensordot(prices, continuation, 1).argmin(1)
            chosen = continuation[:, np.arange(node.size), sensor]
            pays = prices @ chosen < prices @ values[:, node]
            if node[0] == 0 and pays[0]:
                first = int(sensor[0])
            values[:, node[pays]] = chosen[:, pays]
        return values, first

    def _stops(self, level: Level) -> Float[np.ndarray, "2 N"]:
        """Stop cost without multiplier, and H_0 - H(beta_S) in bits, of every node."""
        values = np.empty((2, level.keys.size))
        for node, beliefs in self.lattice.chunks(level):
            values[0, node] = self.lattice.stop_cost(beliefs)
            values[1, node] = self.first_bits - entr(beliefs @ self.lattice.secret_of).sum(1) / np.log(2)
        return values
