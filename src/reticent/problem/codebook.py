"""Which code a reading is. Plain numpy, so that live readings are coded without what the fit needs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.problem.model import Model

# The symbol of a sensor that said nothing because it was not there, after all codes.
NOT_THERE = "not there"


@dataclass(frozen=True, eq=False)
class Codebook:
    """Which code a reading is: that of the nearest centre, after standardising with the training people's figures.

    `mean` and `deviation` are arrays [A D]; `centres` has one array [Z D] per sensor, with as many codes as it has.
    Where sensors `may_lack`, a reading that is not a number is one more symbol, the same for all sensors.
    """

    mean: np.ndarray
    deviation: np.ndarray
    centres: tuple[np.ndarray, ...]
    may_lack: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each sensor has."""
        return tuple(map(len, self.centres))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of all that a sensor can say."""
        return (*(f"code {z}" for z in range(max(self.sizes))), *([NOT_THERE] if self.may_lack else []))

    @property
    def owned(self) -> np.ndarray:
        """Which symbols each sensor has, [A Z]."""
        own = np.arange(len(self.symbols)) < np.array(self.sizes)[:, None]
        own[:, max(self.sizes) :] = True
        return own

    def codes(self, values: np.ndarray) -> np.ndarray:
        """The code of every reading of every sensor: values [N A D], codes [N A]."""
        return np.stack([self.codes_of(a, values[:, a]) for a in range(len(self.centres))], axis=1)

    def codes_of(self, sensor: int, values: np.ndarray) -> np.ndarray:
        """The codes [N] of readings [N D] of one sensor."""
        scaled, centres = (values - self.mean[sensor]) / self.deviation[sensor], self.centres[sensor]
        nearest = ((centres**2).sum(1) - 2 * scaled @ centres.T).argmin(1)
        absent = np.isnan(values).any(1)
        if absent.any() and not self.may_lack:
            raise InputError(
                "A sensor is not there in some of the readings, but was in all that the model was fitted to. Fit a "
                "model to recordings that lack it at times."
            )
        return np.where(absent, max(self.sizes), nearest)

    @classmethod
    def of(cls, model: Model) -> "Codebook":
        """The codebook that a fitted model was stored with."""
        if model.fitted is None:
            raise InputError("This model was not fitted to recordings, so it does not know what readings look like.")
        try:
            found = model.fitted["codebook"]
            mean, deviation = (np.asarray(found[name], float) for name in ("mean", "deviation"))
            centres = tuple(np.asarray(own, float) for own in found["centres"])
            may_lack = bool(found.get("may_lack", False))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError("The model file has no codebook that can be read. Fit the model again.") from error
        sensors, features = len(model.sensors), mean.shape[-1] if mean.ndim else 0
        own = [
            each.ndim == 2 and each.shape[1] == features and 1 <= len(each) <= len(model.symbols) for each in centres
        ]
        if not (mean.shape == deviation.shape == (sensors, features) and len(own) == sensors and all(own)):
            raise InputError(
                "The codebook of the model file does not fit its sensors and symbols. Fit the model again."
            )
        return cls(mean, deviation, centres, may_lack)

    def to_json(self) -> dict[str, Any]:
        """As lists, for a problem file."""
        centres = [own.tolist() for own in self.centres]
        lacks = {"may_lack": True} if self.may_lack else {}
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist(), "centres": centres, **lacks}
