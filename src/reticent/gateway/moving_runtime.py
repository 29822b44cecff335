"""A subject whose secret moves, in numpy: what the provider knows at each step of time, and what may be sent in it.

Steps have a fixed length on the wall clock; a step in which nothing was sent is silence. The first release of a subject
is its step 0: before it the provider knows the prior and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.evaluate.claim import Claim, three_parts
from reticent.gateway.decisions import STOP, Decision
from reticent.gateway.draws import Draws
from reticent.gateway.emitter import Emitter, Sent
from reticent.gateway.entry import STEPS, Entry
from reticent.gateway.moving_policies import moving_chooser_of
from reticent.guard.moments import Moments, correct, first_moment, pass_time, row_values
from reticent.guard.ongoing import OngoingState
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Knowledge

# How far a recomputed belief may be from the one that was written.
ROUNDING = 1e-9
# So many steps ahead it is looked for the one in which a locked subject is free again.
MOST_LOCKED = 240


@dataclass(frozen=True, eq=False)
class MovingStanding(Knowledge):
    """What the provider knows of one subject in one step.

    `moments` are those of step `at` on the wall clock: before anything is sent in it or, once something was, after it.
    `opened` [M] is the step of the moment in each slot, `missed` that of the oldest missed moment. `recent` [W - 1] are
    the bits of the steps before this one that share a window with it, `bits` those of this step, and `spent_bits` those
    of all steps. `origin` is the step of the first release, None before it. `settled`: it was decided what to do in
    this step.
    """

    moments: Moments
    opened: np.ndarray
    missed: int | None
    recent: np.ndarray
    bits: float
    spent_bits: float
    at: int
    origin: int | None
    settled: bool

    @property
    def belief(self) -> np.ndarray:
        """b(s, u), of the pair of now."""
        return self.moments.belief

    @property
    def step(self) -> int:
        """Steps since the first release."""
        return 0 if self.origin is None else self.at - self.origin

    @property
    def session(self) -> int:
        """The oldest step whose secret could still be told by what is sent later, as steps since the first release."""
        oldest = [self.at, *self.opened[self.moments.open].tolist()]
        if self.missed is not None:
            oldest.append(self.missed)
        return 0 if self.origin is None else min(oldest) - self.origin


class MovingRuntime(Emitter):
    """The policy of one file for a problem that goes on. `seconds` is the length of a step."""

    assumption = (
        "The bound is on the secret of every moment, past, present and future, for whoever knows the model and "
        "everything that was ever sent. The model says how the secret moves; of people who move otherwise it promises "
        "nothing."
    )

    def __init__(self, file: PolicyFile, digest: str, seconds: float) -> None:
        self.policy = moving_chooser_of(file)
        self.task, self.rules, self.digest, self.seconds = self.policy.task, self.policy.rules, digest, seconds
        self.bound = self.task.bound
        self.promise = three_parts(self.task.promised, Claim.made_with(file.provenance))
        super().__init__(self.task.model, self.task.enforcement)

    @property
    def mark(self) -> str:
        """What entries name as their policy: the digest, and the length of a step."""
        return f"{self.digest}{STEPS}{self.seconds!r}"

    def step_at(self, time: float) -> int:
        """The step of this moment on the wall clock."""
        return int(time // self.seconds)

    def first(self, at: int = 0) -> MovingStanding:
        """Where every subject starts: the prior, nothing sent."""
        slots = self.rules.slots
        moments = first_moment(self.rules.prior, slots)
        recent = np.zeros(max(self.rules.window - 1, 0))
        return MovingStanding(moments, np.zeros(slots, int), None, recent, 0.0, 0.0, at, None, False)

    def passed(self, standing: MovingStanding, at: int) -> MovingStanding:
        """The standing at a later step, with nothing sent between."""
        if standing.origin is None:
            return replace(standing, at=at, settled=False)
        while standing.at < at:
            standing = self._later(standing)
        return standing

    def _later(self, standing: MovingStanding) -> MovingStanding:
        """One step of time."""
        before = standing.moments
        moments = pass_time(self.rules.chain, before)
        opened, missed = standing.opened, standing.missed
        if len(opened):
            if before.open.all():
                missed = standing.at if missed is None else missed
            else:
                opened = opened.copy()
                opened[before.open.argmin()] = standing.at
        return replace(
            standing,
            moments=moments,
            opened=opened,
            missed=missed if moments.missed.any() else None,
            recent=np.append(standing.recent, standing.bits)[1:] if len(standing.recent) else standing.recent,
            bits=0.0,
            at=standing.at + 1,
            settled=False,
        )

    def public(self, standing: MovingStanding) -> OngoingState:
        """What each sensor would send in this step, and which are allowed."""
        return self.rules.public(standing.moments, standing.recent, np.asarray(standing.step))

    def decide(self, standing: MovingStanding, rng: Draws) -> Decision:
        """Which sensor may speak in this step; the stop stands for silence."""
        public = self.public(standing)
        sensor = self.policy.act(public, rng)
        if sensor == len(self.sensors):
            return STOP
        kernel = None if public.kernels is None else public.kernels[sensor].copy()
        return Decision(sensor, kernel, float(self.rules.prospect(public).bits_of(sensor)))

    def decide_all(self, standings: Sequence[MovingStanding], rng: Draws) -> list[Decision]:
        """The decisions at many standings."""
        return [self.decide(standing, rng) for standing in standings]

    def release(
        self, standing: MovingStanding, decision: Decision, reading: int, rng: Draws
    ) -> tuple[Sent, MovingStanding]:
        """What is sent in place of this reading, and what the provider knows then."""
        if decision.sensor is None:
            raise InputError("The decision is silence: no reading is released.")
        sent = self.sent(standing, decision.sensor, decision.kernel, reading, rng)
        likelihood = self.likelihood(decision.sensor, sent.symbol, sent.chances)
        after = self.told(standing, likelihood, decision.bits)
        if self.over(after):
            raise InputError("This decision was not made for this standing: what it would send crosses the bound.")
        return sent, after

    def told(self, standing: MovingStanding, likelihood: np.ndarray, bits: float) -> MovingStanding:
        """The standing once something with this likelihood was sent in this step."""
        moments, possible = correct(standing.moments, likelihood)
        if not possible:
            raise InputError("What was sent has probability zero under the model.")
        origin = standing.at if standing.origin is None else standing.origin
        spent = standing.spent_bits + bits
        return replace(standing, moments=moments, bits=bits, spent_bits=spent, origin=origin, settled=True)

    def over(self, standing: MovingStanding) -> bool:
        """Whether the secret of any moment, past, present or future, is known up to its limit, or too many bits are."""
        if self.bound.on_spending:
            return float(standing.recent.sum()) + standing.bits >= float(self.bound.number)
        if not self.merges:
            return False
        value, limits = row_values(self.rules.chain, standing.moments)
        return not bool((value < limits).all())

    @property
    def merges(self) -> bool:
        """Whether something else may be sent in place of a reading."""
        return self.rules.enforcement.replaces

    def headroom(self, standing: MovingStanding) -> float:
        """The share of the way to the bound that is left to the moment that has least, from where everybody starts."""
        if self.bound.on_spending:
            return 1 - (float(standing.recent.sum()) + standing.bits) / float(self.bound.number)
        if not self.merges:
            return 1.0
        value, limits = row_values(self.rules.chain, standing.moments)
        first, _ = row_values(self.rules.chain, self.first().moments)
        return float(np.clip((limits - value).min() / (limits - first).min(), 0.0, 1.0))

    def locked_for(self, standing: MovingStanding) -> int | None:
        """After how many silent steps some sensor may speak again: 0 where one may now, None if that takes long."""
        for steps in range(MOST_LOCKED):
            if self.public(standing).allowed[:-1].any():
                return steps
            standing = self._later(standing)
        return None

    def replayed(self, entries: Sequence[Entry], at: int) -> MovingStanding:
        """The standing after these entries, of which the last was written in step `at` of the wall clock.

        The first is the subject's first one, or from before all moments that are still open after the last. What they
        say is recomputed; an `InputError` if it is something else.
        """
        origin = at - entries[-1].step
        first, *others = entries
        if first.number == 0:
            standing = self.followed(self.first(origin), first)
        else:
            belief = np.array(first.belief, float)
            standing = replace(
                self.first(origin + first.step),
                moments=self.first().moments._replace(belief=belief),
                origin=origin,
                spent_bits=first.spent_bits,
                settled=True,
            )
        for entry in others:
            standing = self.followed(self.passed(standing, origin + entry.step), entry)
        return standing

    def followed(self, standing: MovingStanding, entry: Entry) -> MovingStanding:
        """The standing after an entry of this step; an `InputError` where the belief does not follow."""
        if entry.symbol is None:
            return replace(standing, settled=True)
        for kind, name, names in (("sensor", entry.sensor, self.sensors), ("symbol", entry.symbol, self.symbols)):
            if name not in names:
                raise InputError(f"has the {kind} {name!r}, which the policy's problem does not have.")
        sensor, symbol = self.sensors.index(entry.sensor), self.symbols.index(entry.symbol)
        chances = None if entry.chances is None else np.array(entry.chances)
        if (chances is None) == self.merges or (chances is not None and len(chances) != self.readings):
            raise InputError("does not hold the rule by which it was sent, or one that the policy does not have.")
        bits = entry.spent_bits - standing.spent_bits
        after = self.told(standing, self.likelihood(sensor, symbol, chances), bits)
        written = np.array(entry.belief, float)
        if written.shape != after.belief.shape or np.abs(written - after.belief).max() > ROUNDING:
            raise InputError("holds a belief that does not follow from what was sent.")
        return after

    def lasts(self, steps: int) -> timedelta:
        """How long so many steps take."""
        return timedelta(seconds=steps * self.seconds)

    def budget_left(self, standing: Any) -> float:
        """As `headroom`, under the name that the page asks for."""
        return self.headroom(standing)
