"""Observers: restricted views of traces.

An attacker with a restricted view locates a leak: in one sensor, one step, the choice of sensors, or the timing. From
few episodes it can also be more accurate than one that sees everything, because it has fewer features to fit.
"""

import abc
from dataclasses import dataclass, replace

import numpy as np

from reticent.audit.traces import PADDING, Traces

# The most sensors, and first steps, that are observed one at a time.
SENSORS_ALONE, STEPS_ALONE = 12, 10


class Observer(abc.ABC):
    """A view of traces."""

    name: str

    @abc.abstractmethod
    def sees(self, traces: Traces) -> Traces:
        """The part of the traces that is observed, without likelihoods unless it is everything."""


class Everything(Observer):
    """View of the provider."""

    name = "everything"

    def sees(self, traces: Traces) -> Traces:
        return traces


class Symbols(Observer):
    """Symbols (or readings) in order, without the sensors they came from."""

    name = "symbols without their sensor"

    def sees(self, traces: Traces) -> Traces:
        names = replace(traces.names, sensors=("some sensor",), clocks=())
        return replace(traces, sensor=_one_sensor(traces), names=names, likelihood=None, waits=None)


class Sensors(Observer):
    """Order of the sensors, without their symbols."""

    name = "sensor choices only"

    def sees(self, traces: Traces) -> Traces:
        return replace(_nothing_said(traces), waits=None)


class End(Observer):
    """Number of releases, and whether the episode stopped."""

    name = "stopping time only"

    def sees(self, traces: Traces) -> Traces:
        return replace(_somebody_spoke(traces), waits=None)


class Clock(Observer):
    """Times of the releases and of the stop."""

    name = "release times only"

    def sees(self, traces: Traces) -> Traces:
        return _somebody_spoke(traces)


@dataclass(frozen=True)
class SensorAlone(Observer):
    """Releases of one sensor, in order."""

    number: int
    sensor: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"sensor {self.sensor!r} only"

    def sees(self, traces: Traces) -> Traces:
        return _kept(traces, traces.sensor == self.number)


@dataclass(frozen=True)
class StepAlone(Observer):
    """One release, counted from 1, with its sensor."""

    step: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"release {self.step} only"

    def sees(self, traces: Traces) -> Traces:
        own = np.arange(traces.longest)[None] == self.step - 1
        return _kept(traces, own & traces.released)


def observers_of(traces: Traces) -> list[Observer]:
    """Observers of one aspect of every release."""
    return [Symbols(), Sensors(), End(), *([Clock()] if traces.waits is not None else [])]


def parts_of(traces: Traces) -> list[Observer]:
    """Observers of one sensor (the most frequent ones) or of one release (the first ones)."""
    count = np.bincount(traces.sensor[traces.released], minlength=len(traces.names.sensors))
    often = np.argsort(-count, kind="stable")[:SENSORS_ALONE]
    sensors = [SensorAlone(int(a), traces.names.sensors[a]) for a in often if count[a]]
    steps = [StepAlone(step) for step in range(1, min(traces.longest, STEPS_ALONE) + 1)]
    # With a single sensor, or a single release, that would be everything.
    return [*(sensors if len(sensors) > 1 else []), *(steps if traces.longest > 1 else [])]


def _one_sensor(traces: Traces) -> np.ndarray:
    return np.where(traces.released, 0, PADDING)


def _nothing_said(traces: Traces) -> Traces:
    names = replace(traces.names, symbols=("something",))
    return replace(traces, symbol=_one_sensor(traces), reading=None, likelihood=None, names=names)


def _somebody_spoke(traces: Traces) -> Traces:
    less = _nothing_said(traces)
    return replace(less, sensor=_one_sensor(traces), names=replace(less.names, sensors=("some sensor",)))


def _kept(traces: Traces, own: np.ndarray) -> Traces:
    """The selected releases, moved to the front; without their times and without the stop."""
    order = np.argsort(~own, axis=1, kind="stable")
    kept = np.take_along_axis(own, order, 1)
    room = max(1, int(kept.sum(1).max(initial=0)))

    def moved(values: np.ndarray, fill: int | float) -> np.ndarray:
        wide = [slice(None), slice(None), *[None] * (values.ndim - 2)]
        some = np.take_along_axis(values, order[tuple(wide)], 1)
        return np.where(kept[tuple(wide)], some, fill).astype(values.dtype)[:, :room]

    return replace(
        traces,
        sensor=moved(traces.sensor, PADDING),
        symbol=None if traces.symbol is None else moved(traces.symbol, PADDING),
        reading=None if traces.reading is None else moved(traces.reading, 0.0),
        stopped=np.zeros(len(traces), bool),
        likelihood=None,
        waits=None,
        names=replace(traces.names, clocks=()),
    )
