"""What to expect of a gateway before it runs, by simulating subjects session after session with its own decisions.

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
from reticent.estimate import Estimate, mean, rate
from reticent.gateway.runtime import Decision, Runtime, Sent, Standing

SUBJECTS, SESSIONS = 40, 30


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


@dataclass(frozen=True)
class Life:
    """One subject: sessions in which something was sent, whether nothing is left, whether the bound was reached."""

    sessions: int
    silent: bool
    over: bool


class Person:
    """Somebody with a secret and, session by session, a useful value, followed by the provider who knows when it stays.

    `informed` is where that provider stands; `over`, whether the bound was ever reached for it.
    """

    def __init__(self, runtime: Runtime, stays: float, rng: np.random.Generator) -> None:
        self._runtime, self._stays, self._rng = runtime, stays, rng
        self._model = runtime.task.model
        self.informed, self.over = runtime.first(), False
        self.secret, self.useful = divmod(self._drawn(self._model.prior.reshape(-1)), len(self._model.useful))

    def reading(self, sensor: int) -> int:
        """What the sensor says of this person now."""
        return self._drawn(self._model.channel[sensor, self.secret, self.useful])

    def sent(self, sensor: int, sent: Sent) -> None:
        """The provider hears what was sent in place of it."""
        known, runtime = self.informed, self._runtime
        belief = runtime.heard(known, sensor, sent.symbol, sent.chances)
        # Of bits only a bound on information speaks, under which readings are sent as they are.
        bits = 0.0 if runtime.merges else runtime.information_bits(known, sensor)
        self.informed = replace(known, belief=belief, spent_bits=known.spent_bits + bits)
        self.over |= runtime.over(self.informed)

    def next_session(self) -> None:
        """The useful value stays, or is drawn anew."""
        if self._rng.random() < self._stays:
            return
        self.informed = self._runtime.next_session(self.informed)
        self.useful = self._drawn(self._model.prior[self.secret])

    def _drawn(self, law: np.ndarray) -> int:
        return int(self._rng.choice(len(law), p=law / law.sum()))


def forecast(
    runtime: Runtime, stays: float = 1.0, subjects: int = SUBJECTS, most_sessions: int = SESSIONS, seed: int = 0
) -> Forecast:
    """Simulate subjects of a gateway with this policy. Deterministic given the seed."""
    rng = np.random.default_rng(seed)
    lives = [live(runtime, Person(runtime, stays, rng), most_sessions, rng) for _ in range(subjects)]
    silent = [life.sessions for life in lives if life.silent]
    return Forecast(
        subjects=subjects,
        most_sessions=most_sessions,
        stays=stays,
        sessions=mean(silent) if len(silent) > 1 else None,
        silent=rate([life.silent for life in lives]),
        over=rate([life.over for life in lives]),
    )


def forecast_file(policy: str | Path, stays: float = 1.0) -> Forecast | None:
    """The forecast for a policy file; none for a policy that no gateway serves."""
    try:
        runtime = Runtime.load(policy)
    except InputError:
        return None
    return forecast(runtime, stays)


def live(runtime: Runtime, person: Person, most_sessions: int, rng: np.random.Generator) -> Life:
    """One person's sessions, up to so many or until nothing is left to say."""
    standing, spoken = runtime.first(), 0
    for _ in range(most_sessions):
        decision = runtime.decide(standing, rng)
        if runtime.exhausted(standing, decision):
            return Life(spoken, True, person.over)
        spoken += decision.sensor is not None
        standing = runtime.next_session(_session(runtime, person, standing, decision, rng))
        person.next_session()
    return Life(spoken, False, person.over)


def _session(
    runtime: Runtime, person: Person, standing: Standing, decision: Decision, rng: np.random.Generator
) -> Standing:
    """Where one session, which begins with this decision, ends."""
    while decision.sensor is not None:
        sent, standing = runtime.release(standing, decision, person.reading(decision.sensor), rng)
        person.sent(decision.sensor, sent)
        decision = runtime.decide(standing, rng)
    return standing


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"
