"""A learned value function in numpy, and its tangent planes: see `reticent.policy.lookahead`."""

from typing import Any

import numpy as np

from reticent.gateway.networks import Description, Network, largest
from reticent.policy.settings import check_network, described, lookahead_settings
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Bound


class Used:
    """The share of the bound that is used up."""

    def __init__(self, bound: Bound, secrets: int) -> None:
        self.on_spending, self.bits = bound.on_spending, bound.number
        limits = None if bound.on_spending or bound.number is None else bound.secret_limits(secrets)
        # Without a bound nothing is used up.
        self.of_secret = np.zeros(secrets) if limits is None else 1 / np.asarray(limits)

    def __call__(self, by_secret: Any, spent_bits: Any) -> Any:
        """For one standing, or for many at once: beliefs in secrets [... S], bits spent [...]."""
        if self.on_spending:
            return spent_bits / self.bits
        return (np.asarray(by_secret) * self.of_secret).max(-1)


class Value:
    """V(beta) = min(stop cost, learned cost of going on), for many beliefs at once."""

    def __init__(self, file: PolicyFile) -> None:
        secrets, useful = file.task.model.prior.shape
        width, self.kernels = lookahead_settings(file, file.task.enforcement)
        check_network(file, described(secrets, useful), 1, width)
        self.describe = Description(secrets, useful)
        self.network = Network(file.arrays, self.describe.first_weight(file.arrays["layers.0.weight"]))
        self.used = Used(file.task.bound, secrets)
        self.time_cost, self.error_penalty = file.task.objective.time_cost, file.task.objective.error_penalty

    def weighted(self, joint: np.ndarray, spent_bits: np.ndarray | None = None) -> np.ndarray:
        """p V(joint / p) for each joint [A Y P] of mass p; zero for one without mass.

        `spent_bits` [A] is the ledger after a release of each sensor, which only matters to a bound on it.
        """
        flat = joint.reshape(-1, joint.shape[-1])
        mass = flat.sum(1)
        stop = self.error_penalty * (mass - self.describe.marginals(flat)[1].max(1))
        spent = None if spent_bits is None else np.repeat(spent_bits, joint.shape[1])
        going_on = mass * self.going_on(flat / np.where(mass > 0, mass, 1.0)[:, None], spent)
        return np.minimum(stop, going_on).reshape(joint.shape[:-1])

    def going_on(self, beliefs: np.ndarray, spent_bits: np.ndarray | None = None) -> np.ndarray:
        """Learned cost of releasing at least once more [N], at beliefs [N P]."""
        by_secret, by_useful = self.describe.marginals(beliefs)
        seen = self.describe.many(beliefs, self.used(by_secret, spent_bits), by_useful.max(1))
        return self.error_penalty * self.network(seen)[:, 0].astype(np.float64)

    def going_on_plane(self, beliefs: np.ndarray) -> np.ndarray:
        """The tangent plane [N P] of p times the cost of going on, at beliefs [N P]; for a bound on confidence."""
        by_secret, by_useful = self.describe.marginals(beliefs)
        seen = self.describe.many(beliefs, self.used(by_secret, None), by_useful.max(1))
        learned, gradient = self.network.with_gradient(seen)
        of_belief, of_used = self.describe.pull_back(seen, by_useful, gradient)
        shares = by_secret * self.used.of_secret
        of_belief = of_belief + self.describe.spread(of_used[:, None] * self.used.of_secret * largest(shares))
        # Of p f(joint / p), which is homogeneous: f + f' - <f', beta>.
        plane = learned[:, None] + of_belief - (of_belief * beliefs).sum(1, keepdims=True)
        return self.error_penalty * plane

    def plane(self, beliefs: np.ndarray) -> np.ndarray:
        """The tangent plane of p V: of whichever is less, stopping or going on."""
        by_useful = self.describe.marginals(beliefs)[1]
        stop = self.error_penalty * (1 - by_useful.max(1))
        of_stop = self.error_penalty * (1 - np.tile(largest(by_useful), self.describe.secrets))
        return np.where((stop < self.going_on(beliefs))[:, None], of_stop, self.going_on_plane(beliefs))
