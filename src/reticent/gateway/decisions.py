"""Decisions: which sensor may speak next and by which rule, for many subjects at once.

A decision follows from the public state alone, unless the policy draws: those made last are remembered. Everybody
starts at the same belief, which is a third of all decisions, and goes from there to one of few.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from reticent.gateway.draws import Draws
from reticent.gateway.policies import Chooser
from reticent.guard.rules import PublicState
from reticent.problem.bound import Knowledge

# Beliefs whose rules are found together: what they need fits into a processor's cache.
TOGETHER = 64
REMEMBERED = 4_096


@dataclass(frozen=True, eq=False)
class Standing(Knowledge):
    """What the provider knows of one subject: all that a decision depends on.

    `belief` [S U], the ledger in bits, the session (from 0), and the releases so far in this session.
    """

    belief: np.ndarray
    spent_bits: float
    session: int
    step: int


@dataclass(frozen=True, eq=False)
class Decision:
    """Which sensor may speak next, and the public rule in force; sensor None means stop.

    `kernel` [O Z] says what is sent in place of readings under withhold and coarsen, else it is None. `bits` is what
    the release will say about the secret on average: what it adds to the ledger, known before the reading is.
    """

    sensor: int | None
    kernel: np.ndarray | None
    bits: float


STOP = Decision(None, None, 0.0)
Key = tuple[bytes, float]


class Decisions:
    """The decisions of one policy before the horizon."""

    def __init__(self, policy: Chooser) -> None:
        self._policy = policy
        self._remembered: OrderedDict[Key, Decision] = OrderedDict()

    def at(self, standings: Sequence[Standing], rng: Draws) -> list[Decision]:
        """The decision at each of these standings."""
        if self._policy.draws:
            return list(self._made(standings, rng))
        keys = [(standing.belief.tobytes(), standing.spent_bits) for standing in standings]
        new = {key: at for key, at in zip(keys, standings, strict=True) if key not in self._remembered}
        made = dict(zip(new, self._made(list(new.values()), rng), strict=True))
        found = [made[key] if key in made else self._recalled(key) for key in keys]
        self._remembered.update(made)
        while len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)
        return found

    def _recalled(self, key: Key) -> Decision:
        self._remembered.move_to_end(key)
        return self._remembered[key]

    def _made(self, standings: Sequence[Standing], rng: Draws) -> Iterator[Decision]:
        for start in range(0, len(standings), TOGETHER):
            yield from self._together(standings[start : start + TOGETHER], rng)

    def _together(self, standings: Sequence[Standing], rng: Draws) -> list[Decision]:
        rules = self._policy.rules
        if len(standings) == 1:
            # An axis of length one costs more than it is worth.
            public = rules.public(standings[0].belief, standings[0].spent_bits)
            return [self.chosen(public, int(self._policy.act(public, rng)))]
        beliefs, spent = np.array([at.belief for at in standings]), np.array([at.spent_bits for at in standings])
        public = rules.public(beliefs, spent)
        chosen = self._policy.act(public, rng)
        stops = chosen == public.allowed.shape[-1] - 1
        sensors = np.where(stops, 0, chosen)
        bits = self._bits(public, sensors).tolist()
        return [
            STOP if stop else Decision(sensor, _kernel(public, (i, sensor)), bits[i])
            for i, (stop, sensor) in enumerate(zip(stops.tolist(), sensors.tolist(), strict=True))
        ]

    def chosen(self, public: PublicState, sensor: int) -> Decision:
        """The decision that this sensor speaks, or the stop, whoever made it."""
        if sensor == len(public.allowed) - 1:
            return STOP
        return Decision(sensor, _kernel(public, (sensor,)), float(self._bits(public, sensor)))

    def _bits(self, public: PublicState, sensors: int | np.ndarray) -> Float[Any, "*N"]:
        """What the release of a sensor adds to the information spent, or that of one for each subject."""
        if public.bits is None:
            return self._policy.rules.prospect(public).bits_of(sensors)
        return public.bits[sensors] if public.bits.ndim == 1 else public.bits[range(len(public.bits)), sensors]


def _kernel(public: PublicState, at: tuple[int, ...]) -> np.ndarray | None:
    """The rule of one sensor, and not the memory of all that were found with it."""
    return None if public.kernels is None else public.kernels[at].copy()
