"""Recorded lives on a clock: the hidden pair and the code of every sensor, step after step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from reticent.data.readings import Readings
from reticent.data.windows import TIME_TOLERANCE
from reticent.errors import InputError


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Hidden pairs that may move, and what each sensor would have said, `step` seconds apart.

    Rows of one trajectory follow each other without a gap; `codes` are those of a codebook. All other arrays are
    indices into the names, or number the trajectories from zero.
    """

    codes: Int[np.ndarray, "N A"]
    secret: Int[np.ndarray, " N"]
    useful: Int[np.ndarray, " N"]
    trajectory: Int[np.ndarray, " N"]
    person: Int[np.ndarray, " N"]
    people: tuple[str, ...]
    sensors: tuple[str, ...]
    secrets: tuple[str, ...]
    useful_values: tuple[str, ...]
    step: float

    def __len__(self) -> int:
        return len(self.secret)

    @property
    def pair(self) -> Int[np.ndarray, " N"]:
        """Secret * U + useful."""
        return self.secret * len(self.useful_values) + self.useful

    @property
    def lengths(self) -> Int[np.ndarray, " L"]:
        """How many steps each trajectory has."""
        return np.unique(self.trajectory, return_counts=True)[1]

    def of(self, people: "tuple[int, ...] | list[int]") -> "Trajectories":
        """Those of some people only; who is who stays as it was, and so do the numbers of trajectories."""
        kept = np.isin(self.person, list(people))
        return replace(
            self, **{name: value[kept] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        )


def together(parts: Sequence[Trajectories]) -> Trajectories:
    """The trajectories of all parts, which name the same people, sensors and labels, numbered anew."""
    ends = np.cumsum([len(part.lengths) for part in parts])
    rows = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("codes", "secret", "useful", "person")
    }
    numbers = [part.trajectory + end - len(part.lengths) for part, end in zip(parts, ends, strict=True)]
    return replace(parts[0], **rows, trajectory=np.concatenate(numbers))


def trajectories(recorded: Readings, codes: Int[np.ndarray, "N A"], step: float | None = None) -> Trajectories:
    """The trajectory of every unbroken stretch of recordings, by default a reading's length a step.

    At each step stands the reading that is nearest in time: recordings that are irregular, or faster or slower than the
    clock, skip or repeat some. A stretch of less than two steps is no trajectory.
    """
    if recorded.time is None or recorded.stretch is None:
        raise InputError("These readings do not say when they were taken, so nothing can be said of what moves.")
    step = recorded.step if step is None else step
    if not step > 0:
        raise InputError(f"A step lasts more than 0 seconds, not {step:g}.")
    rows = _on_clock(recorded.time, recorded.stretch, step)
    if not len(rows):
        longest = max(np.ptp(recorded.time[recorded.stretch == one]) for one in np.unique(recorded.stretch))
        raise InputError(f"No stretch of recordings lasts two steps of {step:g} s; the longest lasts {longest:g} s.")
    return Trajectories(
        codes=codes[rows],
        secret=recorded.secret[rows],
        useful=recorded.useful[rows],
        trajectory=np.unique(recorded.stretch[rows], return_inverse=True)[1],
        person=recorded.person[rows],
        people=recorded.people,
        sensors=recorded.sensors,
        secrets=recorded.secrets,
        useful_values=recorded.useful_values,
        step=float(step),
    )


def _on_clock(time: np.ndarray, stretch: np.ndarray, step: float) -> Int[np.ndarray, " M"]:
    """Which reading stands at each step of each stretch."""
    found = []
    for rows in np.split(np.arange(len(time)), np.flatnonzero(np.diff(stretch)) + 1):
        own = time[rows]
        ticks = own[0] + step * np.arange(int((own[-1] - own[0]) / step + TIME_TOLERANCE) + 1)
        if len(ticks) > 1:
            found.append(rows[np.searchsorted((own[1:] + own[:-1]) / 2, ticks)])
    return np.concatenate([np.zeros(0, int), *found])
