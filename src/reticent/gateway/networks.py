"""The networks of policy files in numpy, what they see of beliefs, and the gradient of both by hand.

The same 32-bit numbers as in `reticent.policy.network`, but for rounding. What is linear in the belief there (the
marginals, the scale of the logarithm) is part of the first layer here. A belief is a row of P pairs.
"""

import math

import numpy as np

from reticent.policy.settings import LEAST_BELIEF, LEAST_DOUBT, LOG_SCALE, SLOPE


class Network:
    """Two hidden layers with leaky ReLU. The bias is one more weight, for an input that is always one."""

    def __init__(self, arrays: dict[str, np.ndarray], first_weight: np.ndarray) -> None:
        weights = [first_weight, *(arrays[f"layers.{i}.weight"] for i in (1, 2))]
        *hidden, last = [np.vstack([weight.T, arrays[f"layers.{i}.bias"]]) for i, weight in enumerate(weights)]
        self.hidden = [_with_one(layer) for layer in hidden]
        self.last = np.ascontiguousarray(last)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The outputs [... O] for inputs [... I] that end in a one."""
        for layer in self.hidden:
            x = np.dot(x, layer)
            x = np.maximum(x, SLOPE * x)
        return np.dot(x, self.last)

    def with_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first output [N], and its gradient by the inputs [N I]."""
        before = []
        for layer in self.hidden:
            x = np.dot(x, layer)
            before.append(x)
            x = np.maximum(x, SLOPE * x)
        gradient = np.broadcast_to(self.last[:, 0], x.shape)
        for layer, sums in zip(reversed(self.hidden), reversed(before), strict=True):
            gradient = np.where(sums >= 0, gradient, SLOPE * gradient) @ layer.T
        return (x @ self.last)[:, 0], gradient


def _with_one(layer: np.ndarray) -> np.ndarray:
    """A layer that also hands the input that is always one on."""
    column = np.zeros((len(layer), 1), np.float32)
    column[-1] = 1.0
    return np.hstack([layer, column])


class Description:
    """What a network sees: the belief, its logarithm, the share of the bound used up, the doubt about U, then more."""

    def __init__(self, secrets: int, useful: int) -> None:
        self.secrets, self.useful, self.pairs = secrets, useful, secrets * useful
        self._of_secret = np.kron(np.eye(secrets), np.ones((useful, 1)))
        self._of_useful = np.kron(np.ones((secrets, 1)), np.eye(useful))

    def first_weight(self, stored: np.ndarray) -> np.ndarray:
        """The weight of the first layer for what is seen here, from that of what `describe` shows there."""
        pairs, after = self.pairs, 2 * self.pairs + self.secrets + self.useful
        stored = stored.astype(np.float64)
        marginals = np.vstack([self._of_secret.T, self._of_useful.T])
        belief = stored[:, :pairs] + stored[:, 2 * pairs : after] @ marginals
        logarithm = stored[:, pairs : 2 * pairs] / LOG_SCALE
        return np.hstack([belief, logarithm, stored[:, after:]]).astype(np.float32)

    def one(self, belief: np.ndarray, used: float, likeliest: float, more: list[float]) -> np.ndarray:
        """Of one belief [P], whose likeliest useful value has this probability."""
        pairs = self.pairs
        seen = np.empty(2 * pairs + 3 + len(more), np.float32)
        seen[:pairs] = belief
        np.log(np.maximum(seen[:pairs], LEAST_BELIEF), out=seen[pairs : 2 * pairs])
        # The doubt is rounded as 32-bit sums are.
        unsure = math.sqrt(max(1 - float(np.float32(likeliest)), LEAST_DOUBT))
        seen[2 * pairs :] = [used, unsure, *more, 1.0]
        return seen

    def many(self, beliefs: np.ndarray, used: np.ndarray, likeliest: np.ndarray) -> np.ndarray:
        """Of many beliefs [N P]."""
        pairs = self.pairs
        seen = np.empty((len(beliefs), 2 * pairs + 3), np.float32)
        seen[:, :pairs] = beliefs
        np.log(np.maximum(seen[:, :pairs], LEAST_BELIEF), out=seen[:, pairs : 2 * pairs])
        seen[:, 2 * pairs] = used
        np.sqrt(np.maximum(1 - likeliest.astype(np.float32), LEAST_DOUBT), out=seen[:, 2 * pairs + 1])
        seen[:, -1] = 1.0
        return seen

    def marginals(self, beliefs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """beta(s) [N S] and beta(u) [N U]."""
        return np.dot(beliefs, self._of_secret), np.dot(beliefs, self._of_useful)

    def pull_back(self, seen: np.ndarray, by_useful: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From the gradient by what is seen of many to those by the beliefs [N P] and by the share used [N]."""
        pairs = self.pairs
        belief, unsure = seen[:, :pairs], seen[:, 2 * pairs + 1]
        logarithm = gradient[:, pairs : 2 * pairs] / np.maximum(belief, LEAST_BELIEF)
        of_belief = gradient[:, :pairs] + np.where(belief > LEAST_BELIEF, logarithm, 0)
        in_doubt = unsure > math.sqrt(LEAST_DOUBT)
        falls = np.where(in_doubt, gradient[:, 2 * pairs + 1] / (2 * unsure), 0)
        of_useful = falls[:, None] * largest(by_useful)
        return of_belief - of_useful @ self._of_useful.T, gradient[:, 2 * pairs]

    def spread(self, by_secret: np.ndarray) -> np.ndarray:
        """What belongs to secrets [N S], for each of their pairs [N P]."""
        return np.dot(by_secret, self._of_secret.T)


def largest(values: np.ndarray) -> np.ndarray:
    """The gradient of each row's maximum: one at the largest, shared where several are."""
    top = values == values.max(-1, keepdims=True)
    return top / top.sum(-1, keepdims=True)
