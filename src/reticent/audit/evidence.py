"""Beliefs of all attackers on the judged episodes, summed up as they come."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reticent.audit.attacker import Attacker
from reticent.audit.exact_bayes import ExactBayes
from reticent.audit.findings import EVERYTHING, NOTHING_LEARNED, Attack, Fitted, Learning, Moment
from reticent.audit.measures import Judged, Resampler, balanced, errors_from_zero, gained_bits, judged
from reticent.audit.posterior import Posterior, concatenated
from reticent.audit.traces import Traces
from reticent.evaluate.estimate import CONFIDENCE_LEVEL, Estimate

MOMENTS = (1, 2, 3, 5, 10, 20, 50)
Parts = list[tuple[Attacker, Traces]]


@dataclass(frozen=True, eq=False)
class Tried:
    """An attack, and what was believed at the end of each judged episode."""

    attack: Attack
    end: Posterior


class Evidence:
    """All attacks so far. Whatever was tried is a contender for the headline."""

    def __init__(self, subject: Traces, resampler: Resampler, limit: float | None) -> None:
        self.subject, self.resampler, self.limit = subject, resampler, limit
        self.tried: list[Tried] = []
        self.moments: list[Moment] = []
        self.learning: list[Learning] = []
        self.exact: Posterior | None = None
        self.highest_exact = 0.0
        self.notes: list[str] = []

    @property
    def whole(self) -> list[Tried]:
        """Those who see everything and learned from all there is."""
        return [one for one in self.tried if one.attack.observer == EVERYTHING and one.attack.episodes is None]

    @property
    def attacks(self) -> list[Attack]:
        """Their attacks."""
        return [one.attack for one in self.whole]

    @property
    def strongest(self) -> Tried:
        """Who names the secret best, classes counted alike; of several, one who learned from all there is."""
        return max(self.tried, key=lambda one: (one.attack.secret.balanced.value, one.attack.episodes is None))

    @property
    def most_bits(self) -> Tried:
        """Who sees everything and has the most bits about the secret."""
        return max(self.whole, key=lambda one: one.attack.secret.bits.value)

    @property
    def level(self) -> float:
        """Of intervals that hold for all contenders at once, each looked at in two ways."""
        return 1 - (1 - CONFIDENCE_LEVEL) / (2 * len(self.tried))

    @property
    def headline(self) -> Estimate:
        """How well the strongest names the secret, with an interval that holds for all contenders at once."""
        return balanced(self.strongest.end.fair_guess("secret"), self.subject.secret, self.resampler, self.level)

    @property
    def surest(self) -> Attack | None:
        """Who gains the most bits about the secret, if that is clearly more than none for one of so many."""

        def lead(one: Tried) -> float:
            gained = gained_bits(one.end.secret, self.subject.secret)
            errors, clear = errors_from_zero(gained, self.resampler.unit, (1 - self.level) / 2)
            return errors / clear

        best = max(self.tried, key=lead)
        return best.attack if lead(best) > 1 else None

    def add_exact(self, bayes: ExactBayes) -> None:
        """Exact Bayes, looked at after every step."""
        moments = list(bayes.along(self.subject))
        self.exact = moments[-1]
        self.highest_exact = self._judge(bayes.name, NOTHING_LEARNED, enumerate(moments), moments[-1])

    def add_fitted(self, parts: Parts, fitted_on: Fitted) -> None:
        """A learned attacker, looked at at some moments."""
        moments = (
            (step, _believed([(attacker, part.until(step)) for attacker, part in parts]))
            for step in MOMENTS
            if step <= self.subject.longest
        )
        self._judge(parts[0][0].name, fitted_on, moments, _believed(parts))

    def add_part(
        self, parts: Parts, fitted_on: Fitted, observer: str = EVERYTHING, episodes: int | None = None
    ) -> Attack:
        """A learned attacker who saw, or learned from, less; looked at at the end."""
        end = _believed(parts)
        numbers = judged(end, self.subject, self.resampler)
        attack = Attack(parts[0][0].name, fitted_on, numbers.secret, numbers.useful, None, observer, episodes)
        self.tried.append(Tried(attack, end))
        return attack

    def was_enough(self, parts: Parts, fitted_on: Fitted, episodes: int) -> None:
        """The last part stands for one who learned from all there is, because more episodes no longer helped."""
        last = self.tried.pop().attack
        self.add_fitted(parts, fitted_on)
        self.notes.append(
            f"{last.attacker} learned from {episodes:,} episodes: with three times as many as before it gained less "
            "than half its interval."
        )

    def learned(self, attack: Attack, episodes: int) -> None:
        """A point of the learning curve."""
        self.learning.append(Learning(attack.attacker, episodes, attack.secret.balanced))

    def _judge(self, name: str, fitted_on: Fitted, moments: Iterable[tuple[int, Posterior]], end: Posterior) -> float:
        """The attack, and the highest belief in any secret at any moment."""
        highest = end.secret.max(1)
        for step, said in moments:
            highest = np.maximum(highest, said.secret.max(1))
            if step in MOMENTS:
                self._look(name, fitted_on, step, said)
        over = self.resampler.share(highest >= self.limit) if self.limit else None
        numbers = self._look(name, fitted_on, None, end)
        self.tried.append(Tried(Attack(name, fitted_on, numbers.secret, numbers.useful, over), end))
        return float(highest.max())

    def _look(self, name: str, fitted_on: Fitted, step: int | None, said: Posterior) -> Judged:
        numbers = judged(said, self.subject, self.resampler)
        self.moments.append(Moment(name, fitted_on, step, numbers.secret.balanced, numbers.useful.balanced))
        return numbers


def _believed(parts: Parts) -> Posterior:
    return concatenated([attacker.posterior(part) for attacker, part in parts])
