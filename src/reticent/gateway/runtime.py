"""Decisions in numpy: from what the provider knows of a subject (its `Standing`) to a release, and to the next one.

The same rules as those of the compiled process (`reticent.guard.rules`). Nothing here depends on anything but the
standing, so a gateway may forget all else.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent.belief.bayes import update
from reticent.belief.prospect import Joint
from reticent.errors import InputError
from reticent.gateway.decisions import STOP, Decision, Decisions, Standing
from reticent.gateway.draws import Draws
from reticent.gateway.policies import chooser_of
from reticent.guard.rules import PublicState
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Bound, Knowledge
from reticent.problem.enforcement import Promise
from reticent.problem.task import Task


class ImpossibleReading(InputError):  # noqa: N818  (what it is says it)
    """A reading that has probability zero under the model and the belief so far: the model does not fit."""


@dataclass(frozen=True)
class Surprise:
    """How unlikely what was sent was: -ln p(symbol), and mean and variance of that under the model, in nats."""

    nats: float
    mean: float
    variance: float


@dataclass(frozen=True, eq=False)
class Sent:
    """What leaves: an index into `Runtime.symbols`, and how surprising it is.

    `chances` [Z] is the public rule as far as this symbol goes: of each reading the chance of being sent as it; None
    where readings are sent as they are.
    """

    symbol: int
    surprise: Surprise
    chances: np.ndarray | None


# How far from one a belief that was added up over many releases may sum.
WHOLE = 1e-6


class Runtime:
    """The policy of one file, and the process it acts in.

    `digest` is the SHA-256 of the file; `symbols` names what can be sent: the readings, then the merged symbols.
    """

    task: Task
    digest: str
    sensors: tuple[str, ...]
    symbols: tuple[str, ...]
    bound: Bound

    def __init__(self, file: PolicyFile, digest: str) -> None:
        self.task, self.digest = file.task, digest
        self.policy = chooser_of(file)
        self.rules = self.policy.rules
        self._decisions = Decisions(self.policy)
        self.bound, self.sensors = self.task.bound, self.task.model.sensors
        self.symbols = (*self.task.model.symbols, *self.rules.enforcement.merged_symbols(self.task.model.useful))
        # q(z | a, s, u), reading by reading: [A Z S U].
        self._likelihoods = np.ascontiguousarray(np.moveaxis(self.rules.channel, -1, 1))
        # The same by pairs: [A Z X].
        self._by_pair = self._likelihoods.reshape(*self._likelihoods.shape[:2], -1)

    @classmethod
    def load(cls, path: str | Path, allow_unbounded: bool = False) -> "Runtime":
        """The policy of this file, if its bound holds by construction; one without a bound only where allowed."""
        digest = _digest(path)
        file = PolicyFile.load(path)
        if _digest(path) != digest:
            raise InputError(f"The policy file {str(path)!r} was replaced while it was read. Start again.")
        _check(file, allow_unbounded)
        return cls(file, digest)

    def first(self) -> Standing:
        """Where every subject starts: the prior, nothing spent."""
        return Standing(self.rules.prior, 0.0, 0, 0)

    def could_be(self, standing: Standing) -> bool:
        """Whether this is a belief over the model's secrets and useful values at all."""
        belief = standing.belief
        return belief.shape == self.rules.prior.shape and bool((belief >= 0).all() and abs(belief.sum() - 1) < WHOLE)

    def next_session(self, standing: Standing) -> Standing:
        """The secret stays, the useful value is drawn anew: the belief is beta(s) p(u | s). The ledger goes on."""
        prior = self.rules.prior.sum(1)
        # A secret that never occurs stays at probability zero.
        odds = standing.belief.sum(1) / np.where(prior > 0, prior, 1.0)
        belief = self.rules.prior * odds[:, None]
        return Standing(belief / belief.sum(), standing.spent_bits, standing.session + 1, 0)

    def decide(self, standing: Standing, rng: Draws) -> Decision:
        """Which sensor may speak; stop also at the horizon and where nothing is allowed."""
        return self.decide_all([standing], rng)[0]

    def decide_all(self, standings: Sequence[Standing], rng: Draws) -> list[Decision]:
        """The decisions at many standings, made together."""
        within = [standing for standing in standings if standing.step < self.task.horizon]
        made = iter(self._decisions.at(within, rng))
        return [next(made) if standing.step < self.task.horizon else STOP for standing in standings]

    def exhausted(self, start: Standing, decision: Decision) -> bool:
        """Whether nothing is said from here on, the start of a session where this was decided.

        A session that says nothing leaves the standing where it is, so the same is decided for ever; but for a policy
        that draws, as long as a sensor is allowed.
        """
        return decision.sensor is None and not (self.policy.draws and self.public(start).allowed[:-1].any())

    def release(self, standing: Standing, decision: Decision, reading: int, rng: Draws) -> tuple[Sent, Standing]:
        """What is sent in place of this reading, and what the provider knows then."""
        sensor, kernel = decision.sensor, decision.kernel
        if sensor is None:
            raise InputError("The decision is to stop: no reading is released.")
        readings = len(self.task.model.symbols)
        if not 0 <= reading < readings:
            raise InputError(f"There is no reading {reading}: the model has {readings}.")
        symbol = reading
        if kernel is not None:
            if not np.vdot(self._likelihoods[sensor, reading], standing.belief) > 0:
                raise self._impossible(sensor, reading)
            option = _draw(kernel[:, reading].tolist(), rng)
            symbol = reading if option == 0 else readings + option - 1
        chances = self._chances(kernel, symbol)
        belief = self.heard(standing, sensor, symbol, chances)
        after = Standing(belief, standing.spent_bits + decision.bits, standing.session, standing.step + 1)
        self._check_kept(after)
        return Sent(symbol, self._surprise(standing, decision, symbol), chances), after

    def heard(self, standing: Standing, sensor: int, symbol: int, chances: np.ndarray | None) -> np.ndarray:
        """The belief once this sensor has sent this symbol, by Bayes. `chances`: as in `Sent`.

        Only sums of what is not negative: on any processor the same but for the last digits. The program that finds
        the rule is not like that, so whoever follows takes the rule that was in force.
        """
        likelihoods = self._likelihoods[sensor]
        if symbol < len(likelihoods):
            # The chance of being sent as it is cancels, but must not be zero.
            possible, likelihood = chances is None or chances[symbol] > 0, likelihoods[symbol]
        else:
            assert chances is not None
            possible, likelihood = True, np.tensordot(chances, likelihoods, 1)
        belief, has_mass = update(standing.belief, likelihood)
        if not (possible and has_mass):
            raise self._impossible(sensor, symbol)
        return belief

    def information_bits(self, standing: Standing, sensor: int) -> float:
        """What one release of this sensor adds to the information spent where readings are sent as they are."""
        readings = Joint(standing.belief, self.rules.channel)
        return float(self.rules.look(readings, standing.spent_bits, None).bits_of(sensor))

    @property
    def merges(self) -> bool:
        """Whether something else may be sent in place of a reading."""
        return self.rules.enforcement.replaces

    def budget_left(self, known: Knowledge) -> Any:
        """Share of the way from the first standing to the bound that is left; all of it where there is no bound.

        Of one standing or, where `known` holds arrays [N S U] and [N], of many.
        """
        at_first = self.bound.used(self.first())
        return np.clip((1 - self.bound.used(known)) / (1 - at_first), 0.0, 1.0)

    def over(self, standing: Standing) -> bool:
        """Whether the bound is reached."""
        return bool(self.bound.crossed(standing))

    def confidence(self, standing: Standing) -> float:
        """max_s beta(s)."""
        return max(map(sum, standing.belief.tolist()))

    def public(self, standing: Standing) -> PublicState:
        """What each sensor would send at this standing, and which are allowed."""
        return self.rules.public(standing.belief, standing.spent_bits)

    def decided(self, public: PublicState, sensor: int) -> Decision:
        """The decision that this sensor speaks, whoever made it."""
        return self._decisions.chosen(public, sensor)

    def _chances(self, kernel: np.ndarray | None, symbol: int) -> np.ndarray | None:
        """Of each reading the chance of being sent as this symbol."""
        if kernel is None:
            return None
        readings = kernel.shape[1]
        if symbol >= readings:
            return kernel[1 + symbol - readings]
        alone = np.zeros(readings)
        alone[symbol] = kernel[0, symbol]
        return alone

    def _surprise(self, standing: Standing, decision: Decision, symbol: int) -> Surprise:
        law = self._by_pair[decision.sensor] @ standing.belief.reshape(-1)
        if decision.kernel is not None:
            law = np.concatenate([law * decision.kernel[0], np.dot(decision.kernel[1:], law)])
        logarithms = np.log(np.maximum(law, np.finfo(float).tiny))
        weighted = law * logarithms
        mean = -float(np.add.reduce(weighted))
        return Surprise(-float(logarithms[symbol]), mean, max(float(np.dot(weighted, logarithms)) - mean * mean, 0.0))

    def _check_kept(self, standing: Standing) -> None:
        """Nothing leaves that crosses the bound: only a decision that was made for another standing could."""
        if self.over(standing):
            raise InputError("This decision was not made for this standing: what it would send crosses the bound.")

    def _impossible(self, sensor: int, symbol: int) -> ImpossibleReading:
        return ImpossibleReading(
            f"Sensor {self.sensors[sensor]!r} gave {self.symbols[symbol]!r}, which has probability zero under the "
            "model and the belief so far: the model does not fit this sensor."
        )


def _digest(path: str | Path) -> str:
    """SHA-256 of the file; of one that cannot be read none, as loading it will say."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _check(file: PolicyFile, allow_unbounded: bool) -> None:
    """Refuse a policy under which a release could cross the bound, and kinds that do not release readings."""
    task, name = file.task, file.task.enforcement.name
    if not task.enforcement.releases:
        raise InputError(f"This policy sends an answer in place of readings, which the gateway cannot do. {_how(task)}")
    unbounded = task.bound.number is None
    if unbounded and not allow_unbounded:
        raise InputError(f"This policy has no bound, so it would release anything. {_how(task)}")
    if not unbounded and task.enforcement.promise is not Promise.NEVER:
        raise InputError(
            f"This policy enforces its bound by {name!r}: {task.enforcement.promised}. The gateway serves only what is "
            f"{Promise.NEVER.value}. {_how(task)}"
        )


def _how(task: Task) -> str:
    """How to train a policy whose bound holds."""
    if task.bound.unit == "bits":
        return "Train one with --information BITS --enforce mask, whose bound holds by construction."
    return "Train one with --confidence L --enforce coarsen (or withhold), whose bound holds by construction."


def _draw(chances: list[float], rng: Draws) -> int:
    """An index, drawn by its chance: never one whose chance is zero."""
    left = rng.random()
    for index, chance in enumerate(chances):
        left -= chance
        if left < 0:
            return index
    return chances.index(max(chances))
