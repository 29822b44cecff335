"""Value kernels in numpy: merged symbols that carry what going on is worth.

`reticent.process.value_kernels` says how.
"""

import numpy as np

from reticent.gateway.kernels import Safety
from reticent.gateway.numeric import Sensors
from reticent.gateway.value import Value
from reticent.problem.enforcement import Guard
from reticent.problem.merging import LEAST_MASS, REFINEMENTS


class ValueKernels:
    """Kernels of least expected cost to go: per sensor the best of the label kernel and those priced by tangents."""

    def __init__(self, guard: Guard, value: Value, sensors: Sensors) -> None:
        self.guard, self.value, self.sensors = guard, value, sensors

    def kernels(self, safety: Safety) -> np.ndarray:
        """A safe kernel for each sensor, [A O Z]."""
        weighted = self.sensors.likelihoods * safety.belief
        raw = self.value.weighted(weighted)
        costs = safety.by_sensor(self.guard.label_costs(safety))
        declared = costs.shape[1] - 1 if self.guard.declares else 0
        stops = self.value.error_penalty * costs[:, 1 : 1 + declared]
        # A symbol that cannot declare anything may be worth stopping at, too.
        plane = self.value.going_on_plane if declared else self.value.plane

        label = safety.cheapest(costs)
        best = np.pad(label, ((0, 0), (0, declared), (0, 0)))
        least = self._expected(best, weighted, raw)
        merged = label[:, 1:]
        for _ in range(REFINEMENTS):
            reference = _posteriors(merged, weighted, safety.belief)
            tangents = plane(reference.reshape(-1, reference.shape[-1])).reshape(reference.shape)
            going_on = tangents @ weighted.swapaxes(1, 2)
            kernels = safety.cheapest(np.concatenate([raw[:, None], stops, going_on], axis=1))
            expected = self._expected(kernels, weighted, raw)
            best = np.where((expected < least)[:, None, None], kernels, best)
            least = np.minimum(least, expected)
            merged = kernels[:, 1 + declared :]
        return best

    def _expected(self, kernels: np.ndarray, weighted: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """sum_y p(y) V(beta_y) over all symbols that a sensor may send, [A]."""
        return (kernels[:, 0] * raw).sum(1) + self.value.weighted(kernels[:, 1:] @ weighted).sum(1)


def _posteriors(merged: np.ndarray, weighted: np.ndarray, belief: np.ndarray) -> np.ndarray:
    """Beliefs [A M P] after each merged symbol; one that is hardly ever sent leaves the belief as it was."""
    after = merged @ weighted
    mass = after.sum(2, keepdims=True)
    return np.where(mass > LEAST_MASS, after / np.where(mass > 0, mass, 1.0), belief)
