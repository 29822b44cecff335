"""Decisions in numpy: from what the provider knows of a subject (its `Standing`) to a release, and to the next one.

The same rules as those of the compiled process (`reticent.guard.rules`). Nothing here depends on anything but the
standing, so a gateway may forget all else.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reticent.belief.prospect import Joint
from reticent.errors import InputError
from reticent.evaluate.claim import Claim, three_parts
from reticent.gateway.decisions import STOP, Decision, Decisions, Standing
from reticent.gateway.draws import Draws
from reticent.gateway.emitter import Emitter, Sent
from reticent.gateway.policies import chooser_of
from reticent.gateway.sessions import ASSUMPTION
from reticent.guard.panel import apart, chances_of, heard, one_below_another
from reticent.guard.rules import PublicState
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Bound, Knowledge
from reticent.problem.enforcement import Promise
from reticent.problem.monitoring import Monitoring
from reticent.problem.task import Task

# How far from one a belief that was added up over many releases may sum.
WHOLE = 1e-6


class Runtime(Emitter):
    """The policy of one file, and the process it acts in. `digest` is the SHA-256 of the file."""

    assumption = ASSUMPTION
    task: Task
    digest: str
    bound: Bound

    def __init__(self, file: PolicyFile, digest: str) -> None:
        self.task, self.digest = file.task, digest
        self.policy = chooser_of(file)
        self.rules = self.policy.rules
        self._decisions = Decisions(self.policy)
        self.bound = self.task.bound
        # What holds by construction, what statistically, and what not at all.
        self.promise = three_parts(self.task.promised, Claim.made_with(file.provenance))
        self._start = self.rules.start
        super().__init__(self.task.model, self.rules.enforcement)

    @classmethod
    def load(cls, path: str | Path, allow_unbounded: bool = False) -> "Runtime":
        """The policy of this file, if its bound holds by construction; one without a bound only where allowed."""
        file, digest = file_and_digest(path)
        check_promise(file.task, allow_unbounded)
        return cls(file, digest)

    def first(self) -> Standing:
        """Where every subject starts: the prior, nothing spent."""
        return Standing(self._start, 0.0, 0, 0)

    def own(self, known: Knowledge) -> np.ndarray:
        return known.belief[..., : len(self.rules.prior), :]

    def could_be(self, standing: Standing) -> bool:
        """Whether these are beliefs over the model's secrets and useful values at all."""
        belief = standing.belief
        if belief.shape != self._start.shape or not (belief >= 0).all():
            return False
        return bool((abs(apart(belief, len(self.rules.prior)).sum((1, 2)) - 1) < WHOLE).all())

    def next_session(self, standing: Standing) -> Standing:
        """The secret stays, the useful value is drawn anew: the belief is beta(s) p(u | s). The ledger goes on."""
        prior = self._start.sum(1)
        # A secret that never occurs stays at probability zero.
        odds = standing.belief.sum(1) / np.where(prior > 0, prior, 1.0)
        belief = self._start * odds[:, None]
        whole = apart(belief, len(self.rules.prior)).sum((1, 2)).repeat(len(self.rules.prior))
        return Standing(belief / whole[:, None], standing.spent_bits, standing.session + 1, 0)

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
        if decision.sensor is None:
            raise InputError("The decision is to stop: no reading is released.")
        sent = self.sent(standing, decision.sensor, decision.kernel, reading, rng)
        belief = self.heard(standing, decision.sensor, sent.symbol, sent.chances)
        after = Standing(belief, standing.spent_bits + decision.bits, standing.session, standing.step + 1)
        self._check_kept(after)
        return sent, after

    def heard(self, known: Knowledge, sensor: int, symbol: int, chances: np.ndarray | None) -> np.ndarray:
        own, panel = super().heard(known, sensor, symbol, chances), self.rules.panel
        if panel is None:
            return own
        _, *others = apart(known.belief, len(self.rules.prior))
        told = chances_of(self.rules.channel, None, sensor, symbol) if chances is None else chances
        beliefs, possible = heard(panel, np.stack(others), sensor, told)
        if not possible.all():
            raise self._impossible(sensor, symbol)
        return one_below_another(own, beliefs)

    def information_bits(self, standing: Standing, sensor: int) -> float:
        """What one release of this sensor adds to the information spent where readings are sent as they are."""
        readings = Joint(self.own(standing), self.rules.channel)
        return float(self.rules.look(readings, standing.spent_bits, None).bits_of(sensor))

    @property
    def merges(self) -> bool:
        """Whether something else may be sent in place of a reading."""
        return self.rules.enforcement.replaces

    def budget_left(self, known: Knowledge) -> Any:
        """Share of the way from the first standing to the bound that is left; all of it where there is no bound.

        Of one standing or, where `known` holds arrays [N S U] and [N], of many.
        """
        at_first = self._used(self.first())
        return np.clip((1 - self._used(known)) / (1 - at_first), 0.0, 1.0)

    def _used(self, known: Knowledge) -> Any:
        """Share of the bound that is used up, for the provider for whom it is most."""
        if self.rules.panel is None:
            return self.bound.used(known)
        beliefs = apart(known.belief, len(self.rules.prior))
        return self.rules.used(beliefs, np.asarray(known.spent_bits)[..., None]).max(-1)

    def over(self, standing: Standing) -> bool:
        """Whether the bound is reached."""
        if self.rules.panel is None:
            return bool(self.bound.crossed(standing))
        beliefs = apart(standing.belief, len(self.rules.prior))
        return bool(self.rules.crossed(beliefs, standing.spent_bits).any())

    def confidence(self, standing: Standing) -> float:
        """max_s beta(s), of the surest provider."""
        return max(map(sum, standing.belief.tolist()))

    def public(self, standing: Standing) -> PublicState:
        """What each sensor would send at this standing, and which are allowed."""
        return self.rules.public_of_all(standing.belief, standing.spent_bits)

    def decided(self, public: PublicState, sensor: int) -> Decision:
        """The decision that this sensor speaks, whoever made it."""
        return self._decisions.chosen(public, sensor)

    def _check_kept(self, standing: Standing) -> None:
        """Nothing leaves that crosses the bound: only a decision that was made for another standing could."""
        if self.over(standing):
            raise InputError("This decision was not made for this standing: what it would send crosses the bound.")


def file_and_digest(path: str | Path) -> tuple[PolicyFile, str]:
    """A policy file, and its SHA-256."""
    digest = _digest(path)
    file = PolicyFile.load(path)
    if _digest(path) != digest:
        raise InputError(f"The policy file {str(path)!r} was replaced while it was read. Start again.")
    return file, digest


def _digest(path: str | Path) -> str:
    """SHA-256 of the file; of one that cannot be read none, as loading it will say."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def check_promise(task: Task | Monitoring, allow_unbounded: bool) -> None:
    """Refuse a policy under which a release could cross the bound, and kinds that do not release readings."""
    name = task.enforcement.name
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


def _how(task: Task | Monitoring) -> str:
    """How to train a policy whose bound holds."""
    if task.bound.unit == "bits":
        return "Train one with --information BITS --enforce mask, whose bound holds by construction."
    return "Train one with --confidence L --enforce coarsen (or withhold), whose bound holds by construction."
