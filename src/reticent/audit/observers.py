"""Observers: which part of the traces somebody sees.

Those who see less are often the stronger ones: what they do not see cannot distract them. They also say where a leak
is: in one sensor, in one step, in the choice of sensors, in the time.
"""

import abc
from dataclasses import dataclass, replace

import numpy as np

from reticent.audit.traces import NOTHING, Traces

# So many sensors, and steps from the first one, are looked at alone.
SENSORS_ALONE, STEPS_ALONE = 12, 10


class Observer(abc.ABC):
    """Somebody who sees traces, or a part of them."""

    name: str

    @abc.abstractmethod
    def sees(self, traces: Traces) -> Traces:
        """What is left of the traces. Exact Bayes with the model is for who sees everything."""


class Everything(Observer):
    """The provider."""

    name = "everything"

    def sees(self, traces: Traces) -> Traces:
        return traces


class Symbols(Observer):
    """What was said in which order, by whatever sensor."""

    name = "symbols without sensor"

    def sees(self, traces: Traces) -> Traces:
        names = replace(traces.names, sensors=("some sensor",), clocks=())
        return replace(traces, sensor=_one_sensor(traces), names=names, likelihood=None, waits=None)


class Sensors(Observer):
    """Which sensors spoke in which order, whatever they said."""

    name = "which sensors"

    def sees(self, traces: Traces) -> Traces:
        return replace(_nothing_said(traces), waits=None)


class End(Observer):
    """How many releases there were, and whether the end was announced."""

    name = "when it stopped"

    def sees(self, traces: Traces) -> Traces:
        return replace(_somebody_spoke(traces), waits=None)


class Clock(Observer):
    """When something was sent, whatever it was."""

    name = "when it was sent"

    def sees(self, traces: Traces) -> Traces:
        return _somebody_spoke(traces)


@dataclass(frozen=True)
class SensorAlone(Observer):
    """What one sensor said, in order; nothing of the others."""

    number: int
    sensor: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"sensor {self.sensor!r} alone"

    def sees(self, traces: Traces) -> Traces:
        return _kept(traces, traces.sensor == self.number)


@dataclass(frozen=True)
class StepAlone(Observer):
    """What one release said, counted from 1, and which sensor it came from; no others."""

    step: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"release {self.step} alone"

    def sees(self, traces: Traces) -> Traces:
        own = np.arange(traces.longest)[None] == self.step - 1
        return _kept(traces, own & (traces.sensor != NOTHING))


def observers_of(traces: Traces) -> list[Observer]:
    """Those who see one aspect of every release."""
    return [Symbols(), Sensors(), End(), *([Clock()] if traces.waits is not None else [])]


def parts_of(traces: Traces) -> list[Observer]:
    """Those who see some of the releases: of one sensor, of the sensors that spoke most, or one of the first."""
    count = np.bincount(traces.sensor[traces.sensor != NOTHING], minlength=len(traces.names.sensors))
    often = np.argsort(-count, kind="stable")[:SENSORS_ALONE]
    sensors = [SensorAlone(int(a), traces.names.sensors[a]) for a in often if count[a]]
    steps = [StepAlone(step) for step in range(1, min(traces.longest, STEPS_ALONE) + 1)]
    # Of one sensor, or one release, that is everything.
    return [*(sensors if len(sensors) > 1 else []), *(steps if traces.longest > 1 else [])]


def _one_sensor(traces: Traces) -> np.ndarray:
    return np.where(traces.sensor == NOTHING, NOTHING, 0)


def _nothing_said(traces: Traces) -> Traces:
    names = replace(traces.names, symbols=("something",))
    return replace(traces, symbol=_one_sensor(traces), reading=None, likelihood=None, names=names)


def _somebody_spoke(traces: Traces) -> Traces:
    less = _nothing_said(traces)
    return replace(less, sensor=_one_sensor(traces), names=replace(less.names, sensors=("some sensor",)))


def _kept(traces: Traces, own: np.ndarray) -> Traces:
    """Some of the releases, moved together; not when they came, nor the stop."""
    order = np.argsort(~own, axis=1, kind="stable")
    kept = np.take_along_axis(own, order, 1)
    room = max(1, int(kept.sum(1).max(initial=0)))

    def moved(values: np.ndarray, fill: int | float) -> np.ndarray:
        wide = [slice(None), slice(None), *[None] * (values.ndim - 2)]
        some = np.take_along_axis(values, order[tuple(wide)], 1)
        return np.where(kept[tuple(wide)], some, fill).astype(values.dtype)[:, :room]

    return replace(
        traces,
        sensor=moved(traces.sensor, NOTHING),
        symbol=None if traces.symbol is None else moved(traces.symbol, NOTHING),
        reading=None if traces.reading is None else moved(traces.reading, 0.0),
        stopped=np.zeros(len(traces), bool),
        likelihood=None,
        waits=None,
        names=replace(traces.names, clocks=()),
    )
