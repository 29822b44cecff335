"""From what a sensor says to the index of a reading: a symbol by name, a summary by its code, samples by windows.

Windows are those of `reticent.data.readings`, gathered sample by sample in constant memory, so that a live sensor gets
the code that the same samples have in recordings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.data.windows import FULL_ENOUGH, LONGEST_PAUSE, TIME_TOLERANCE, ReadingKind, log_deviation
from reticent.errors import InputError
from reticent.problem.codebook import Codebook
from reticent.problem.model import Model

# Recordings are kept in 32 bits.
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Window:
    """The samples of one sensor since its window began, summed up: as large after a million samples as after one.

    `start` is when the unbroken stretch began and `place` the number of this window in it; `spread` sums the squared
    distances of each axis from its mean.
    """

    start: float
    place: int
    last: float
    count: int
    mean: tuple[float, ...]
    spread: tuple[float, ...]

    def summary(self) -> list[float]:
        """The mean of each axis, then the logarithm of its deviation."""
        return [*self.mean, *(log_deviation(spread / self.count) for spread in self.spread)]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What one more sample brought: the window that it is in, and the one before if this sample ended it.

    `reading` is the code of the window that ended, `time` that of its last sample. `dropped`: it ended with fewer than
    half of its samples, so there is no reading of it.
    """

    window: Window | None
    reading: int | None = None
    time: float | None = None
    dropped: bool = False


@dataclass(frozen=True, eq=False)
class Encoder:
    """How one model's sensors are read. Only a model that was fitted to recordings knows numbers."""

    sensors: tuple[str, ...]
    symbols: dict[str, int]
    codebook: Codebook | None
    features: tuple[int, ...]
    kind: ReadingKind
    interval: float | None

    @classmethod
    def of(cls, model: Model) -> "Encoder":
        """The encoder of a model, fitted or not."""
        symbols = {name: index for index, name in enumerate(model.symbols)}
        if model.fitted is None:
            return cls(model.sensors, symbols, None, (), ReadingKind("sample"), None)
        codebook, fitted = Codebook.of(model), model.fitted
        width = codebook.mean.shape[1]
        features = tuple(fitted.get("features") or [width] * len(model.sensors))
        if len(features) != len(model.sensors) or not all(0 < count <= width for count in features):
            raise InputError(f"The model's features {list(features)} do not fit its sensors and codebook: fit it anew.")
        kind = ReadingKind(**fitted.get("reading", {}))
        return cls(model.sensors, symbols, codebook, features, kind, fitted.get("interval"))

    def named(self, symbol: str) -> int:
        """The reading of this name."""
        if symbol not in self.symbols:
            raise InputError(f"The model has no symbol {symbol!r}.")
        return self.symbols[symbol]

    def coded(self, sensor: int, reading: Sequence[float]) -> int:
        """The code of a reading that is already summed up."""
        codebook = self._numbers(reading, self.features[sensor] if self.features else 0, sensor)
        # Filled up with zeros, as in recordings.
        values = np.zeros(codebook.mean.shape[1], np.float32)
        values[: len(reading)] = reading
        return int(codebook.codes_of(sensor, values[None])[0])

    def gather(self, window: Window | None, sensor: int, time: float, sample: Sequence[float]) -> Gathered:
        """Put one more sample of a sensor to its window so far, or begin one.

        Samples must come in the order of their times. Where a reading is one sample, every sample is a reading.
        """
        if self.kind.kind == "sample":
            return Gathered(None, self.coded(sensor, sample), time)
        self._numbers(sample, self.features[sensor] // 2, sensor)
        if self.interval is None:
            raise InputError(
                "The model does not say how often its sensors were sampled, so windows cannot be gathered. Fit it "
                "again, or send readings that are summed up."
            )
        if window is None:
            return Gathered(_begun(time, 0, time, sample))
        if not time > window.last:
            raise InputError(f"A sample of sensor {self.sensors[sensor]!r} does not come after the one before it.")
        if time - window.last > LONGEST_PAUSE * self.interval:
            return self._ended(window, sensor, _begun(time, 0, time, sample))
        place = math.floor((time - window.start + TIME_TOLERANCE * self.interval) / self.kind.seconds)
        if place > window.place:
            return self._ended(window, sensor, _begun(window.start, place, time, sample))
        return Gathered(_joined(window, time, sample))

    def _ended(self, window: Window, sensor: int, fresh: Window) -> Gathered:
        assert self.interval is not None
        if window.count < FULL_ENOUGH * self.kind.expected(self.interval):
            return Gathered(fresh, time=window.last, dropped=True)
        return Gathered(fresh, self.coded(sensor, window.summary()), window.last)

    def _numbers(self, values: Sequence[float], wanted: int, sensor: int) -> Codebook:
        """The codebook, if these are as many finite numbers as this sensor gives."""
        if self.codebook is None:
            raise InputError("This model knows symbols only: it was not fitted to recordings. Send the symbol's name.")
        # What is not a number is not below anything either.
        if len(values) != wanted or not all(abs(value) < LARGEST for value in values):
            raise InputError(f"Sensor {self.sensors[sensor]!r} gives {wanted} finite numbers here.")
        return self.codebook


def _begun(start: float, place: int, time: float, sample: Sequence[float]) -> Window:
    values = tuple(_as_recorded(sample))
    return Window(start, place, time, 1, values, (0.0,) * len(values))


def _joined(window: Window, time: float, sample: Sequence[float]) -> Window:
    """The window with one sample more, by Welford's update: sums of squares would lose small deviations."""
    count, mean, spread = window.count + 1, [], []
    for value, before, summed in zip(_as_recorded(sample), window.mean, window.spread, strict=True):
        after = before + (value - before) / count
        mean.append(after)
        spread.append(summed + (value - before) * (value - after))
    return Window(window.start, window.place, time, count, tuple(mean), tuple(spread))


def _as_recorded(sample: Sequence[float]) -> list[float]:
    """Rounded to 32 bits, as recordings are."""
    return np.asarray(sample, np.float32).astype(np.float64).tolist()
