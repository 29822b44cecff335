"""Which code a reading is. Plain numpy, so that live readings are coded without what the fit needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.problem.model import ReleaseModel


@dataclass(frozen=True, eq=False)
class Codebook:
    """Which code a reading is: that of the nearest centre, after standardising with the training people's figures.

    `mean` and `deviation` are arrays [A D], `centres` [A Z D].
    """

    mean: np.ndarray
    deviation: np.ndarray
    centres: np.ndarray

    def codes(self, values: np.ndarray) -> np.ndarray:
        """The code of every reading of every sensor: values [N A D], codes [N A]."""
        return np.stack([self.codes_of(a, values[:, a]) for a in range(len(self.centres))], axis=1)

    def codes_of(self, sensor: int, values: np.ndarray) -> np.ndarray:
        """The codes [N] of readings [N D] of one sensor."""
        scaled, centres = (values - self.mean[sensor]) / self.deviation[sensor], self.centres[sensor]
        return ((centres**2).sum(1) - 2 * scaled @ centres.T).argmin(1)

    @classmethod
    def of(cls, model: ReleaseModel) -> "Codebook":
        """The codebook that a fitted model was stored with."""
        if model.fitted is None:
            raise InputError("This model was not fitted to recordings, so it does not know what readings look like.")
        sensors, symbols = len(model.sensors), len(model.symbols)
        try:
            arrays = {name: np.asarray(array, float) for name, array in model.fitted["codebook"].items()}
            features = arrays["mean"].shape[-1]
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
            raise InputError("The codebook of the model file holds something else than tables of numbers.") from error
        shapes = {
            "mean": (sensors, features),
            "deviation": (sensors, features),
            "centres": (sensors, symbols, features),
        }
        if {name: array.shape for name, array in arrays.items()} != shapes:
            raise InputError("The codebook of the model file does not fit its sensors and symbols.")
        return cls(**arrays)

    def to_json(self) -> dict[str, Any]:
        """As lists, for a problem file."""
        return {name: array.tolist() for name, array in vars(self).items()}
