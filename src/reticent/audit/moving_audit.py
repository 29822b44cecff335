"""Audit of traces of a hidden pair that moves: attackers who look back, asked for every moment, on unseen people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from jaxtyping import Bool

from reticent.audit.bidirectional import BiLstm
from reticent.audit.findings import NOTHING_LEARNED, OWN, Attack, Check, Fitted, Moment, percent
from reticent.audit.justified import Justified, justified
from reticent.audit.look_back import LookBackAttacker, RefittedHmm, Smoother
from reticent.audit.measures import Resampler, balanced, judged
from reticent.audit.moving_traces import MovingTraces
from reticent.audit.moving_verdict import MovingAudit
from reticent.audit.posterior import Posterior, concatenated
from reticent.audit.splits import splits_of
from reticent.audit.trial import AuditOptions
from reticent.audit.verdict import ENOUGH_PEOPLE, NOT_REFUTED
from reticent.audit.window_trees import WindowTrees
from reticent.errors import InputError
from reticent.evaluate.estimate import CONFIDENCE_LEVEL
from reticent.problem.model import Model

Make = Callable[[], LookBackAttacker]
# Accuracy over time is told of so many parts of the longest episode.
PARTS = 8
HINDSIGHT = "the bound holds in hindsight"


@dataclass
class _Found:
    """What attackers believe of the judged moments, as they come."""

    subject: MovingTraces
    resampler: Resampler
    limit: float | None
    beliefs: dict[str, Posterior] = field(default_factory=dict)
    attacks: list[Attack] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    def add(self, name: str, fitted_on: Fitted, said: Posterior) -> None:
        """One more attacker."""
        self.beliefs[name] = said
        numbers = judged(said, self.subject, self.resampler)
        over = None if self.limit is None else self.resampler.share(said.secret.max(1) >= self.limit)
        self.attacks.append(Attack(name, fitted_on, numbers.secret, numbers.useful, over))
        for step, own in _parts(self.subject):
            units = np.unique(self.resampler.unit[own], return_inverse=True)[1]
            resampler = Resampler(units, self.resampler.seed)
            both = [
                balanced(said.fair_guess(label)[own], getattr(self.subject, label)[own], resampler)
                for label in ("secret", "useful")
            ]
            self.moments.append(Moment(name, fitted_on, step, *both))


def audit_moving(
    traces: MovingTraces,
    model: Model | None = None,
    claimed: float | None = None,
    options: AuditOptions | None = None,
    notes: tuple[str, ...] = (),
) -> MovingAudit:
    """The whole audit. `claimed` is a confidence that allegedly no belief in the secret of any moment reaches."""
    options = options or AuditOptions()
    _check(traces)
    splits = splits_of(traces, options.seed)
    subject = traces.take(np.concatenate([np.flatnonzero(rows) for rows in splits]))
    unit = np.unique(subject.person, return_inverse=True)[1]
    found = _Found(subject, Resampler(unit, options.seed), claimed)
    checks = []
    if model is not None and traces.likelihood is not None:
        smoother = Smoother(model)
        options.progress(smoother.name)
        found.add(smoother.name, NOTHING_LEARNED, smoother.posterior(subject))
        if claimed is not None:
            checks.append(_in_hindsight(smoother, found, claimed))
    for make in _panel(options):
        options.progress(f"{make().name}: training")
        found.add(make().name, OWN, _learned(make, traces, splits))
    sure = justified({name: said.secret for name, said in found.beliefs.items()}, subject, found.resampler)
    if claimed is not None and unit.max() + 1 >= ENOUGH_PEOPLE:
        checks.append(_not_refuted(sure, claimed))
    return _summary(found, sure, checks, splits, notes)


def _panel(options: AuditOptions) -> list[Make]:
    """All who learn; without the network in a quick audit."""
    quick: list[Make] = [RefittedHmm, lambda: WindowTrees(options.seed)]
    tell = lambda done, loss: options.progress(f"{BiLstm.name}: update {done}, loss {loss:.3f}")  # noqa: E731
    return quick if options.quick else [*quick, lambda: BiLstm(options.seed, tell)]


def _learned(make: Make, traces: MovingTraces, splits: list[Bool[np.ndarray, " N"]]) -> Posterior:
    """Beliefs about the people of each split, by an attacker who learned from the others."""
    said = []
    for rows in splits:
        attacker = make()
        attacker.fit(traces.take(~rows))
        said.append(attacker.posterior(traces.take(rows)))
    return concatenated(said)


def _summary(
    found: _Found, sure: Justified, checks: list[Check], splits: list[Bool[np.ndarray, " N"]], notes: tuple[str, ...]
) -> MovingAudit:
    subject = found.subject
    strongest = max(found.attacks, key=lambda each: each.secret.balanced.value)
    level = 1 - (1 - CONFIDENCE_LEVEL) / len(found.attacks)
    guess = found.beliefs[strongest.attacker].fair_guess("secret")
    return MovingAudit(
        moments=len(subject),
        episodes=subject.episodes,
        people=len(np.unique(subject.person)),
        splits=len(splits),
        secrets=subject.names.secrets,
        useful=subject.names.useful,
        guess_secret=1 / len(np.unique(subject.secret)),
        guess_useful=1 / len(np.unique(subject.useful)),
        limit=found.limit,
        strongest=strongest,
        headline=balanced(guess, subject.secret, found.resampler, level),
        justified=sure,
        attacks=found.attacks,
        over_time=found.moments,
        silent=float((subject.said == 0).mean()),
        checks=checks,
        notes=list(notes),
    )


def _parts(subject: MovingTraces) -> Iterator[tuple[int, Bool[np.ndarray, " N"]]]:
    """Moments by how late in their episode they are, with the last step of each part."""
    step = subject.step + 1
    edges = np.unique(np.ceil(np.linspace(0, step.max(), PARTS + 1)).astype(int))
    for before, last in pairwise(edges):
        own = (step > before) & (step <= last)
        if all(len(np.unique(getattr(subject, label)[own])) > 1 for label in ("secret", "useful")):
            yield int(last), own


def _in_hindsight(smoother: Smoother, found: _Found, limit: float) -> Check:
    """No posterior of the model is at or over the bound: neither at the time, nor when all has been sent."""
    late = float(found.beliefs[smoother.name].secret.max())
    early = float(smoother.at_the_time(found.subject).secret.max())
    return Check(
        HINDSIGHT,
        max(late, early) < limit,
        f"With everything released, the belief of the model in the secret of a moment is {late:.4f} at most; at the "
        f"moment itself it was {early:.4f} at most. The bound is {limit:g}.",
    )


def _not_refuted(sure: Justified, limit: float) -> Check:
    """If no belief reaches L, nobody is right in L of any moments that can be told by what was released."""
    where = (
        f"{sure.attacker} is right in {percent(sure.right)} of the {100 * sure.share:.3g} % of moments where it "
        f"believes {sure.threshold:.2f} or more"
    )
    if sure.right.low >= limit:
        return Check(NOT_REFUTED, False, f"The bound {limit:g} does not hold: {where}.")
    return Check(NOT_REFUTED, True, f"The bound {limit:g} is not refuted by accuracy. The nearest: {where}.")


def _check(traces: MovingTraces) -> None:
    for label, names in (("secret", traces.names.secrets), ("useful", traces.names.useful)):
        if len(values := np.unique(getattr(traces, label))) < 2:
            raise InputError(
                f"All moments have the same {label} value, {names[values[0]]!r}, so there is nothing to infer. Give "
                "traces with at least two values."
            )
    if len(np.unique(traces.person)) < 2:
        raise InputError(
            "All moments are of one person, but attackers are tested on people they were not trained on. Give traces "
            "of at least two people."
        )
