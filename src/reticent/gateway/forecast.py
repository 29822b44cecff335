"""Forecasts of a gateway before it runs, by simulating subjects session after session with its own decisions.

Two providers hear the same releases. The one of the ledger takes the useful value as new in every session. The other
knows whether it stayed, and where it did goes on from its joint belief over both:

    beta(s, u)  after a session in which u stayed,    beta(s) p(u | s)  after any other.

Both beliefs are exact; what is estimated is the share of subjects.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.evaluate.estimate import Estimate, mean, rate
from reticent.gateway.decisions import Decision
from reticent.gateway.emitter import Sent
from reticent.gateway.runtime import Runtime

SUBJECTS, SESSIONS = 40, 30
# Some seconds' work.
MOST_DECISIONS = 8_000


@dataclass(frozen=True)
class Forecast:
    """Estimates over `subjects` that are followed for `most_sessions` at most, with 95 % intervals.

    `sessions`: of those who fall silent for good, how many sessions that takes; None if fewer than two do. `silent`:
    the share of them. `over`: the share for whom a provider reaches the bound who knows when the useful value stayed,
    which it does from one session to the next with the chance `stays`.
    """

    subjects: int
    most_sessions: int
    stays: float
    sessions: Estimate | None
    silent: Estimate
    over: Estimate

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return asdict(self)

    @property
    def silence(self) -> str:
        """After how many sessions there is nothing left to say."""
        how = f"(estimate, {self.subjects} simulated subjects, at most {self.most_sessions} sessions of each)"
        if self.silent.value == 0:
            return f"Every subject still has something to say after {self.most_sessions} sessions {how}."
        if self.sessions is None:
            return f"For {_percent(self.silent)} of subjects nothing is left to say in the end {how}."
        about = f"after about {self.sessions.value:.0f} sessions [{self.sessions.low:.1f}, {self.sessions.high:.1f}]"
        if self.silent.value < 1:
            return f"For {_percent(self.silent)} of subjects there is nothing left to say {about} {how}."
        return f"{about.capitalize()} there is nothing left to say: the gateway is silent from then on {how}."

    @property
    def informed(self) -> str:
        """What a provider learns who knows when the useful value stayed."""
        often = "in every session" if self.stays == 1 else f"after {100 * self.stays:g} % of sessions"
        return (
            f"If the useful value stays the same {often}, a provider who knows when it does reaches the bound for "
            f"{_percent(self.over)} of subjects within {self.most_sessions} sessions (estimate; each belief is exact)."
        )


class Person:
    """Somebody with a secret and, session by session, a useful value; heard by the gateway's two providers.

    `standing` is where the provider of the ledger stands, `informed` the one who knows when the useful value stays;
    `over`: whether the bound was ever reached for the latter. `sessions` counts those in which something was sent,
    `silent` says that nothing is left to say, `decisions` what it took to simulate.
    """

    def __init__(self, runtime: Runtime, stays: float, rng: np.random.Generator) -> None:
        self._runtime, self._stays, self._rng = runtime, stays, rng
        self._model = runtime.task.model
        self.standing = self.informed = runtime.first()
        self.over = self.silent = False
        self.sessions = self.decisions = 0
        self.secret, self.useful = divmod(self._drawn(self._model.prior.reshape(-1)), len(self._model.useful))

    def session(self) -> None:
        """One session, unless nothing is left to say; then on to the next."""
        if self.silent:
            return
        decision = self._decision()
        self.silent = self._runtime.exhausted(self.standing, decision)
        self.sessions += decision.sensor is not None
        while decision.sensor is not None:
            reading = self._drawn(self._model.channel[decision.sensor, self.secret, self.useful])
            sent, self.standing = self._runtime.release(self.standing, decision, reading, self._rng)
            self.hear(decision.sensor, sent)
            decision = self._decision()
        self._go_on()

    def hear(self, sensor: int, sent: Sent) -> None:
        """The provider who knows more hears what was sent."""
        known, runtime = self.informed, self._runtime
        belief = runtime.heard(known, sensor, sent.symbol, sent.chances)
        # Of bits only a bound on information speaks, under which readings are sent as they are.
        bits = 0.0 if runtime.merges else runtime.information_bits(known, sensor)
        self.informed = replace(known, belief=belief, spent_bits=known.spent_bits + bits)
        self.over |= runtime.over(self.informed)

    def _go_on(self) -> None:
        """To the next session: the ledger takes the useful value as new, whether it stays or not."""
        self.standing = self._runtime.next_session(self.standing)
        if self._rng.random() >= self._stays:
            self.informed = self._runtime.next_session(self.informed)
            self.useful = self._drawn(self._model.prior[self.secret])

    def _decision(self) -> Decision:
        self.decisions += 1
        return self._runtime.decide(self.standing, self._rng)

    def _drawn(self, law: np.ndarray) -> int:
        return int(self._rng.choice(len(law), p=law / law.sum()))


def forecast(
    runtime: Runtime, stays: float = 1.0, subjects: int = SUBJECTS, most_sessions: int = SESSIONS, seed: int = 0
) -> Forecast:
    """Simulate subjects of a gateway with this policy. Deterministic given the seed.

    Where sessions are long, all are followed for fewer of them.
    """
    rng = np.random.default_rng(seed)
    people, done = [Person(runtime, stays, rng) for _ in range(subjects)], 0
    while done < most_sessions and sum(person.decisions for person in people) < MOST_DECISIONS:
        for person in people:
            person.session()
        done += 1
    silent = [person.sessions for person in people if person.silent]
    return Forecast(
        subjects=subjects,
        most_sessions=done,
        stays=stays,
        sessions=mean(silent) if len(silent) > 1 else None,
        silent=rate([person.silent for person in people]),
        over=rate([person.over for person in people]),
    )


def forecast_file(policy: str | Path, stays: float = 1.0) -> Forecast | None:
    """The forecast for a policy file; none for a policy that no gateway serves."""
    try:
        runtime = Runtime.load(policy)
    except InputError:
        return None
    return forecast(runtime, stays)


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"
