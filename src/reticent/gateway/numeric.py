"""The channel laid out for one belief at a time, and what readings would say at it.

Small arrays cost by the call, not by the number: one matrix product gives the joints of all sensors, and the marginals
of the belief besides. The letters of shapes are those of `reticent.types`; P = S U pairs in a row.
"""

import math

import numpy as np

from reticent.problem.bound import Prospect

# Keeps logarithms finite where something is impossible.
TINY = float(np.finfo(np.float64).tiny)
NATS_PER_BIT = math.log(2)


class Sensors:
    """The laws of all sensors, reading by reading, as `likelihoods` [A Z P]."""

    def __init__(self, channel: np.ndarray) -> None:
        sensors, secrets, useful, readings = channel.shape
        self.sensors, self.secrets, self.useful, self.readings = channel.shape
        laws = channel.reshape(sensors, secrets * useful, readings)
        self.likelihoods = np.ascontiguousarray(laws.swapaxes(1, 2))
        # A last column of ones: what is summed over no reading is the belief itself.
        flat = laws.swapaxes(0, 1).reshape(secrets * useful, -1)
        self._flat = np.hstack([flat, np.ones((secrets * useful, 1))])
        of_secret = np.kron(np.eye(secrets), np.ones(useful))
        of_useful = np.kron(np.ones(secrets), np.eye(useful))
        self._sums = np.concatenate([of_secret, np.ones((1, secrets * useful)), of_useful])
        # H(S, Z) counts against the information, H(Z) for it; the last column is H(S).
        self._signs = np.append(np.ones(secrets), -1.0) / NATS_PER_BIT
        self._by_sensor = np.vstack([np.kron(np.eye(sensors), np.ones((readings, 1))), -np.ones(sensors)])

    def joint(self, belief: np.ndarray) -> "Joint":
        """The joints at a belief [P]."""
        return Joint(self, np.dot(self._sums * belief, self._flat))

    def information_bits(self, joint: "Joint") -> list[float]:
        """I(S; Z) of one reading of each sensor: never below zero by rounding."""
        rows = joint.rows[: self.secrets + 1]
        shares = np.log(np.maximum(rows, TINY))
        shares *= rows
        bits = np.dot(np.dot(self._signs, shares), self._by_sensor)
        return [max(each, 0.0) for each in bits.tolist()]


class Joint:
    """What each sensor's reading would say at a belief, and the belief's own marginals (as lists)."""

    __slots__ = ("_sensors", "by_secret", "by_useful", "rows")

    def __init__(self, sensors: Sensors, rows: np.ndarray) -> None:
        marginals = rows[:, -1].tolist()
        self._sensors, self.rows = sensors, rows
        self.by_secret, self.by_useful = marginals[: sensors.secrets], marginals[sensors.secrets + 1 :]

    @property
    def secret(self) -> np.ndarray:
        """P(z, s), [A S Z]."""
        return self._part(0, self._sensors.secrets)

    @property
    def law(self) -> np.ndarray:
        """P(z), [A 1 Z]."""
        return self._part(self._sensors.secrets, 1)

    @property
    def useful(self) -> np.ndarray:
        """P(z, u), [A U Z]."""
        return self._part(self._sensors.secrets + 1, self._sensors.useful)

    @property
    def prospect(self) -> Prospect:
        """What a bound on posteriors has to know of the readings."""
        found = Prospect()
        found.secret, found.law = self.secret.swapaxes(0, 1), self.law[:, 0]
        return found

    def _part(self, first: int, count: int) -> np.ndarray:
        rows = self.rows[first : first + count, :-1]
        return rows.reshape(count, self._sensors.sensors, self._sensors.readings).swapaxes(0, 1)


def entropy(probabilities: np.ndarray) -> float:
    """H(p) over all entries, in nats."""
    return -float(np.vdot(probabilities, np.log(np.maximum(probabilities, TINY))))
