"""Which code a reading is. Plain numpy, so that live readings are coded without what the fit needs."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from reticent.errors import InputError
from reticent.problem.model import Model

# The symbol of a sensor that said nothing because it was not there, after all codes.
NOT_THERE = "not there"


class Classifier(NamedTuple):
    """A small network: probabilities of pairs of labels given a standardised reading, softmax of `logits`/temperature.

    `first` [D H] and `shift` [H] are of its hidden layer, `last` [H K] and `offset` [K] of its outputs.
    """

    first: np.ndarray
    shift: np.ndarray
    last: np.ndarray
    offset: np.ndarray
    temperature: float

    def logits(self, scaled: np.ndarray) -> np.ndarray:
        """Of readings [N D], [N K]."""
        return np.maximum(scaled @ self.first + self.shift, 0) @ self.last + self.offset

    def roots(self, logits: np.ndarray) -> np.ndarray:
        """Roots of the probabilities, [N K]: their distance is Hellinger's."""
        cooled = logits / self.temperature
        odds = np.exp(cooled - cooled.max(1, keepdims=True))
        return np.sqrt(odds / odds.sum(1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Codebook:
    """Which code a reading is: that of the nearest centre, after standardising with the training people's figures.

    `mean` and `deviation` are arrays [A D]; `centres` has one array per sensor, with as many codes as it has: [Z D], or
    [Z K] where `classifiers` say first what a reading tells of the K pairs of labels. Where sensors `may_lack`, a
    reading that is not a number is one more symbol, the same for all sensors.
    """

    mean: np.ndarray
    deviation: np.ndarray
    centres: tuple[np.ndarray, ...]
    may_lack: bool = False
    classifiers: tuple[Classifier, ...] | None = None

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
        scaled = (values - self.mean[sensor]) / self.deviation[sensor]
        if self.classifiers is None:
            return self.nearest(sensor, scaled)
        classifier = self.classifiers[sensor]
        return self.nearest(sensor, classifier.roots(classifier.logits(scaled)))

    def nearest(self, sensor: int, told: np.ndarray) -> np.ndarray:
        """The codes [N] of standardised readings of one sensor, or of what its classifier says of them."""
        centres = self.centres[sensor]
        nearest = ((centres**2).sum(1) - 2 * told @ centres.T).argmin(1)
        absent = np.isnan(told).any(1)
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
            classifiers = _classifiers(found.get("classifiers"))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError("The model file has no codebook that can be read. Fit the model again.") from error
        sensors, features = len(model.sensors), mean.shape[-1] if mean.ndim else 0
        width = features if classifiers is None else model.prior.size
        own = [each.ndim == 2 and each.shape[1] == width and 1 <= len(each) <= len(model.symbols) for each in centres]
        networks = () if classifiers is None else classifiers
        own += [_fits(each, features, width) for each in networks]
        shapes = mean.shape == deviation.shape == (sensors, features)
        if not (shapes and len(centres) == sensors and len(networks) in (0, sensors) and all(own)):
            raise InputError(
                "The codebook of the model file does not fit its sensors and symbols. Fit the model again."
            )
        return cls(mean, deviation, centres, may_lack, classifiers)

    def to_json(self) -> dict[str, Any]:
        """As lists, for a problem file."""
        centres = [own.tolist() for own in self.centres]
        lacks = {"may_lack": True} if self.may_lack else {}
        learned = {} if self.classifiers is None else {"classifiers": [_lists(each) for each in self.classifiers]}
        return {
            "mean": self.mean.tolist(),
            "deviation": self.deviation.tolist(),
            "centres": centres,
            **lacks,
            **learned,
        }


def _lists(classifier: Classifier) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in classifier._asdict().items()}


def _classifiers(found: Any) -> tuple[Classifier, ...] | None:
    """Those of a model file; None where its codes need none."""
    if found is None:
        return None
    return tuple(
        Classifier(
            first=np.asarray(each["first"], float),
            shift=np.asarray(each["shift"], float),
            last=np.asarray(each["last"], float),
            offset=np.asarray(each["offset"], float),
            temperature=float(each["temperature"]),
        )
        for each in found
    )


def _fits(classifier: Classifier, features: int, pairs: int) -> bool:
    """Whether its arrays go together, with readings and with pairs of labels, and hold finite numbers."""
    hidden = classifier.shift.size
    shapes = ((features, hidden), (hidden,), (hidden, pairs), (pairs,))
    finite = all(np.isfinite(each).all() for each in classifier) and classifier.temperature > 0
    return finite and all(np.shape(each) == shape for each, shape in zip(classifier, shapes, strict=False))
