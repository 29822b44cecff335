"""The linear programs of the guarantee in numpy, one per sensor, all at once.

`reticent.process.linear_program` says what is solved, and how. There the batch, thousands of beliefs, is the last axis.
Here it is the sensors of one belief and comes first, so that most sums are matrix products. A point is one array
[2 A L], so that most steps are one call for all of it: the primal (x, then the slack w of the safety constraints) and
the dual (reduced cost d, then multiplier mu), each a row of length L. What comes back is not exact: `kernels` checks.
"""

import numpy as np

from reticent.problem.merging import BACK_OFF, ITERATIONS

LEAST = 1e-300


class _Program:
    """The data of all sensors' programs, and the two parts of a row: options x readings, then symbols x secrets."""

    def __init__(self, excess: np.ndarray, raw: np.ndarray, options: int) -> None:
        sensors, self.secrets, self.readings = excess.shape
        self.options, self.symbols = options, options - 1
        self.excess = excess
        self.by_reading = np.ascontiguousarray(excess.swapaxes(1, 2))
        self.cut = options * self.readings
        # One where an option exists, and for every constraint.
        self.exists = np.ones((sensors, self.cut + self.symbols * self.secrets))
        self.exists[:, : self.readings] = raw
        self.count = self.exists.sum(1, keepdims=True)

    def parts(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Views of both parts: [A O Z] and [A M S]."""
        options = row[:, : self.cut].reshape(len(row), self.options, self.readings)
        return options, row[:, self.cut :].reshape(len(row), self.symbols, self.secrets)


def cheapest_kernels(cost: np.ndarray, excess: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """The kernels x [A O Z] of least cost [A O Z]; `raw` [A Z] says which readings may be sent as they are.

    The sum of excess [A S Z] over z must be negative for every s: merging everything is then strictly feasible.
    """
    program = _Program(excess, raw, cost.shape[1])
    with np.errstate(all="ignore"):
        point = _start(program, cost)
        for _ in range(ITERATIONS):
            point = _step(program, point)
    return program.parts(point[0] * program.exists)[0]


def _start(program: _Program, cost: np.ndarray) -> np.ndarray:
    """Merge everything evenly, and as much raw as leaves half of the slack; duals that are feasible for sure."""
    exists = program.parts(program.exists)[0]
    slack, slack_of_raw = -program.excess.sum(2), -(exists[:, :1] * program.excess).sum(2)
    share = 0.5 * np.minimum(1.0, (slack / np.maximum(slack_of_raw, LEAST)).min(1, keepdims=True))
    point = np.empty((2, *program.exists.shape))
    (x, w), (d, mu) = map(program.parts, point)
    x[:, 0] = share * exists[:, 0]
    x[:, 1:] = ((1 - x[:, 0]) / program.symbols)[:, None]
    w[:] = -(x[:, 1:] @ program.by_reading)
    centre = (np.abs(cost) * exists).mean((1, 2))[:, None, None]
    mu[:] = centre / w
    d[:] = cost
    d[:, 1:] += mu @ program.excess
    d -= np.where(exists > 0, d, np.inf).min(1, keepdims=True) - 4 * centre
    # Options that do not exist stand at 1 with a direction of 0, out of the way.
    point[:, program.exists == 0] = 1.0
    return point


def _step(program: _Program, point: np.ndarray) -> np.ndarray:
    """One step of predictor and corrector; a step to a point that is not strictly inside is not taken."""
    newton = _Newton(program, point)
    pushed = -program.exists * point[0]
    way = newton.direction(pushed)
    probe = np.minimum(1.0, 1 / _worst(way, point)) * way
    probe += point
    gap = _gap(program, point)
    target = gap * (_gap(program, probe) / gap) ** 3
    corrected = (target - way[0] * way[1]) * program.exists
    corrected /= point[1]
    corrected += pushed
    way = newton.direction(corrected)
    way *= np.minimum(1.0, BACK_OFF / _worst(way, point))
    way += point
    if way.min() > 0:
        return way
    inside = np.all(way > 0, axis=(0, 2), keepdims=True)
    return np.where(inside, way, point)


def _gap(program: _Program, point: np.ndarray) -> np.ndarray:
    """The mean of all products of primal and dual, [A 1]."""
    return (program.exists * point[0] * point[1]).sum(1, keepdims=True) / program.count


def _worst(way: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The reciprocal of how far primal and dual may go before something turns negative, [2 A 1]."""
    return np.maximum(-(way / point).min(2, keepdims=True), LEAST)


class _Newton:
    """Newton's equations at a point, solved for any right side. Only the (symbols x secrets) part is ever inverted."""

    def __init__(self, program: _Program, point: np.ndarray) -> None:
        self.program = program
        self.ratio = program.exists * point[0]
        self.ratio /= point[1]
        self.weight, diagonal = program.parts(self.ratio)
        self.merged = self.weight[:, 1:]
        self.per_reading = 1 / self.weight.sum(1, keepdims=True)
        self.inverse = _inverse(self._schur(diagonal))

    def direction(self, pushed: np.ndarray) -> np.ndarray:
        """The way of primal and dual, where `pushed` is the right side of complementarity, divided by the dual."""
        program = self.program
        push, right = program.parts(pushed)
        shift = push.sum(1, keepdims=True) * self.per_reading
        right = (push[:, 1:] - self.merged * shift) @ program.by_reading + right
        way = np.empty((2, *pushed.shape))
        to_primal, to_dual = way[0], way[1]
        to_d, to_mu = program.parts(to_dual)
        np.matmul(self.inverse, right.reshape(len(right), -1, 1), out=to_mu.reshape(len(right), -1, 1))
        priced = to_mu @ program.excess
        shift -= (self.merged * priced).sum(1, keepdims=True) * self.per_reading
        to_d[:, :1] = shift
        np.add(priced, shift, out=to_d[:, 1:])
        to_dual *= program.exists
        np.multiply(self.ratio, to_dual, out=to_primal)
        np.subtract(pushed, to_primal, out=to_primal)
        return way

    def _schur(self, diagonal: np.ndarray) -> np.ndarray:
        """What is left of the equations once x, w and the equalities are eliminated, [A MS MS]."""
        program = self.program
        sensors, size = len(diagonal), program.symbols * program.secrets
        each = self.merged[:, :, None] * program.excess[:, None]
        rows = each.reshape(sensors, size, -1)
        matrix = (rows * -self.per_reading) @ rows.swapaxes(1, 2)
        own = np.einsum("amsmt->amst", matrix.reshape(sensors, *2 * (program.symbols, program.secrets)))
        own += each @ program.by_reading[:, None]
        matrix.reshape(sensors, -1)[:, :: size + 1] += diagonal.reshape(sensors, -1)
        return matrix


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse; something that is not a number, so that no step is taken, where there is none."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)
