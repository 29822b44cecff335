"""Trial: train attackers on one part of the traces and test them on the other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool

from reticent.audit import panel
from reticent.audit.evidence import Evidence, Parts
from reticent.audit.findings import OWN, RANDOM, WORDS, Attack, Fitted
from reticent.audit.measures import Resampler
from reticent.audit.observers import Observer
from reticent.audit.panel import Make, Progress
from reticent.audit.splits import own_units, splits_of
from reticent.audit.traces import Traces

# Shares of the training episodes in learning curves, and the fewest episodes of a point.
CURVE, FEWEST_LEARNED = (0.1, 0.3), 20
# From so many episodes on, an attacker whose last three times as many gained less than half an interval learns from no
# more. Views of single parts of the traces, of which there are many, are learned from so many at most.
ENOUGH, MOST_OBSERVED = 5_000, 8_192
# A quick audit looks at no more.
QUICK_EPISODES = 4_000
# Traces to train on, traces to test on.
Fold = tuple[Traces, Traces]


def silent(_: str) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class AuditOptions:
    """How an audit is run. `quick` leaves out the neural network and the learning curves."""

    seed: int = 0
    quick: bool = False
    progress: Progress = silent


@dataclass(frozen=True, eq=False)
class Trial:
    """Traces, the test rows of each split, and the options of the audit."""

    traces: Traces
    options: AuditOptions

    @cached_property
    def splits(self) -> list[Bool[np.ndarray, " N"]]:
        """Test rows of each split."""
        return splits_of(self.traces, self.options.seed)

    @cached_property
    def subject(self) -> Traces:
        """All test episodes, split by split."""
        return self.traces.take(np.concatenate([np.flatnonzero(rows) for rows in self.splits]))

    @cached_property
    def resampler(self) -> Resampler:
        """Bootstrap over the people of the test episodes."""
        return Resampler(np.unique(self.subject.person, return_inverse=True)[1], self.options.seed)

    @property
    def people(self) -> int | None:
        """Number of people tested; None if every episode has a person of its own."""
        return None if own_units(self.traces) else len(np.unique(self.subject.person))

    def attack_own(self, found: Evidence) -> None:
        """Attackers trained on traces of the audited system, with learning curves."""
        curve = () if self.options.quick else CURVE
        self._attack(found, OWN, [(self.traces.take(~rows), self.traces.take(rows)) for rows in self.splits], curve)

    def attack_random(self, found: Evidence, random: Traces) -> None:
        """Attackers trained on traces of random sensors, of people who are not tested."""
        # Merged symbols do not occur in random traces, but have an index.
        random = replace(random, names=self.traces.names)
        folds = [(self._others(random, rows), self.traces.take(rows)) for rows in self.splits]
        self._attack(found, RANDOM, folds, ())

    def observed(self, found: Evidence, observers: Iterable[Observer], makers: list[Make]) -> Iterator[Attack]:
        """The strongest attacker of each observer."""
        for observer in observers:
            self.options.progress(f"observer of {observer.name}")
            seen, attacks = observer.sees(self.traces), []
            for make in makers:
                parts = [(make(), seen.take(rows)) for rows in self.splits]
                _fit(parts, [_sample(seen.take(~rows), MOST_OBSERVED, self.options.seed) for rows in self.splits])
                attacks.append(found.add_part(parts, OWN, observer.name))
            yield max(attacks, key=lambda attack: attack.secret.balanced.value)

    def _attack(self, found: Evidence, fitted_on: Fitted, folds: list[Fold], curve: tuple[float, ...]) -> None:
        """Every attacker: trained on the first traces of each fold, or shares of them, and tested on the second."""
        options, learned = self.options, int(np.mean([len(others) for others, _ in folds]))
        makers = panel.quick_panel(options.seed) if options.quick else panel.full_panel(options.seed, options.progress)
        for make in makers:
            self._learn(found, fitted_on, folds, [max(FEWEST_LEARNED, int(share * learned)) for share in curve], make)

    def _learn(self, found: Evidence, fitted_on: Fitted, folds: list[Fold], counts: list[int], make: Make) -> None:
        """One attacker, from so many episodes and then from all, or until more of them no longer help."""
        tell, learned = self.options.progress, int(np.mean([len(others) for others, _ in folds]))
        parts, before = [(make(), own) for _, own in folds], -np.inf
        name = parts[0][0].name
        for count in counts:
            tell(f"{name}: training on {count / learned:.0%} of {WORDS[fitted_on]}")
            _fit(parts, [_sample(others, count, self.options.seed) for others, _ in folds])
            attack = found.add_part(parts, fitted_on, episodes=count)
            found.learned(attack, count)
            reached = attack.secret.balanced
            if count >= ENOUGH and reached.value - before < (reached.high - reached.low) / 2:
                return found.was_enough(parts, fitted_on, count)
            before = reached.value
        tell(f"{name}: training on {WORDS[fitted_on]}")
        _fit(parts, [others for others, _ in folds])
        found.add_fitted(parts, fitted_on)
        if counts:
            found.learned(found.attacks[-1], learned)

    def _others(self, source: Traces, rows: Bool[np.ndarray, " N"]) -> Traces:
        """Traces of people who are not tested; without people, all other episodes are of others."""
        if own_units(self.traces):
            return source
        return source.take(~np.isin(source.person, self.traces.person[rows]))


def _fit(parts: Parts, trained_on: Iterable[Traces]) -> None:
    for (attacker, _), others in zip(parts, trained_on, strict=True):
        attacker.fit(others)


def _sample(traces: Traces, count: int, seed: int) -> Traces:
    """A random sample of episodes; a larger one contains a smaller one."""
    return traces.take(np.random.default_rng(seed).permutation(len(traces))[:count])
