"""Audit of traces: every attacker and every observer, tested on people or episodes it was not trained on.

Works on traces of any system; nothing here depends on how they were produced.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reticent.audit import panel
from reticent.audit.checks import checks
from reticent.audit.evidence import Evidence
from reticent.audit.exact_bayes import ExactBayes
from reticent.audit.findings import OWN, Attack, Check
from reticent.audit.leakage import channel_leakage, policy_leakage
from reticent.audit.linkage import linked
from reticent.audit.measures import calibration, calibration_error
from reticent.audit.observers import SensorAlone, StepAlone, observers_of, parts_of
from reticent.audit.traces import Traces
from reticent.audit.trial import AuditOptions, Trial
from reticent.audit.verdict import ENOUGH_PEOPLE, Audit
from reticent.errors import InputError
from reticent.problem.enforcement import Promise
from reticent.problem.task import Task

# A class with fewer tested episodes gets a warning.
FEW_EPISODES = 30


@dataclass(frozen=True)
class Context:
    """What is known about traces besides the task.

    `random`: traces of random sensors, which the paper's adversary is trained on. `model_is_true`: whether the task's
    model is the true one, which the checks then rely on; by default, if it was not fitted to recordings.
    """

    random: Traces | None = None
    model_is_true: bool | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Known:
    """The task, the claim and the context, and what follows from them."""

    task: Task | None
    claimed: float | None
    context: Context

    @property
    def limit(self) -> float | None:
        """The limit on the confidence in the secret, if there is one."""
        limit = self.task.bound.posterior_limit(len(self.task.model.secrets)) if self.task else None
        return self.claimed if limit is None else limit

    @property
    def promised(self) -> bool:
        """Whether the limit is said never to be reached."""
        task = self.task
        return self.claimed is not None or (task is not None and task.enforcement.promise is Promise.NEVER)

    @property
    def model_is_true(self) -> bool:
        """Whether the task's model is the true one."""
        if self.task is None or self.context.model_is_true is None:
            return self.task is not None and self.task.model.fitted is None
        return self.context.model_is_true


@dataclass(frozen=True)
class _Observed:
    """The strongest attacker of each observer, by kind of observer."""

    aspects: list[Attack]
    by_sensor: list[Attack]
    by_step: list[Attack]


def audit_traces(
    traces: Traces,
    task: Task | None = None,
    claimed: float | None = None,
    context: Context | None = None,
    options: AuditOptions | None = None,
) -> Audit:
    """The whole audit. `claimed` is a confidence in the secret that allegedly no belief reaches, if no task says so."""
    _check_labels(traces)
    _check_claim(traces, claimed)
    known = _Known(task, claimed, context or Context())
    trial = Trial(traces, options or AuditOptions())
    found = Evidence(trial.subject, trial.resampler, known.limit)
    if traces.likelihood is not None and task is not None:
        trial.options.progress("exact Bayes")
        kind = "true" if known.model_is_true else "fitted"
        found.add_exact(ExactBayes(task.model.prior, f"Bayes with the {kind} model"))
    trial.attack_own(found)
    if known.context.random is not None:
        trial.attack_random(found, known.context.random)
    observed = _observed(trial, found)
    return _summary(trial, known, found, observed, list(checks(found, known.model_is_true, known.promised)))


def _observed(trial: Trial, found: Evidence) -> _Observed:
    seed, traces = trial.options.seed, trial.traces
    aspects = [_everything(found), *trial.observed(found, observers_of(traces), panel.quick_panel(seed))]
    by_sensor, by_step = (
        list(
            trial.observed(found, [part for part in parts_of(traces) if isinstance(part, kind)], panel.part_panel(seed))
        )
        for kind in (SensorAlone, StepAlone)
    )
    return _Observed(aspects, by_sensor, by_step)


def _summary(trial: Trial, known: _Known, found: Evidence, observed: _Observed, passed: list[Check]) -> Audit:
    subject, model = trial.subject, known.task.model if known.task else None
    # The posterior of exact Bayes measures the leakage only if no check contradicts it.
    trusted = found.exact if known.model_is_true and all(check.passed for check in passed) else None
    believed = found.exact or found.most_bits.end
    bins = calibration(believed.secret, subject.secret, trial.resampler)
    return Audit(
        episodes=len(subject),
        people=trial.people,
        splits=len(trial.splits),
        secrets=subject.names.secrets,
        useful=subject.names.useful,
        guess_secret=1 / len(np.unique(subject.secret)),
        guess_useful=1 / len(np.unique(subject.useful)),
        limit=known.limit,
        claimed=known.promised and known.limit is not None,
        enforce=known.task.enforcement.name if known.task else None,
        contenders=len(found.tried),
        strongest=found.strongest.attack,
        headline=found.headline,
        surest=found.surest,
        attacks=found.attacks,
        observers=observed.aspects,
        by_sensor=observed.by_sensor,
        by_step=observed.by_step,
        over_time=found.moments,
        learning=found.learning,
        linked=linked(found) if trial.people is not None else None,
        calibration=bins,
        calibration_error=calibration_error(bins),
        calibrated="exact Bayes" if found.exact else found.most_bits.attack.attacker,
        channels=channel_leakage(model) if model else [],
        leakage=policy_leakage(trusted.secret, model.prior.sum(1), trial.resampler) if trusted and model else None,
        checks=passed,
        notes=[*known.context.notes, *found.notes, *_rare(subject), *_few_people(trial.people)],
    )


def _everything(found: Evidence) -> Attack:
    """The strongest attacker that sees everything and was trained on traces of the audited system."""
    own = [attack for attack in found.attacks if attack.fitted_on == OWN]
    return max(own, key=lambda attack: attack.secret.balanced.value)


def _check_labels(traces: Traces) -> None:
    for label, names in (("secret", traces.names.secrets), ("useful", traces.names.useful)):
        if len(values := np.unique(getattr(traces, label))) < 2:
            raise InputError(
                f"All episodes have the same {label} value, {names[values[0]]!r}, so there is nothing to infer. Give "
                "traces with at least two values."
            )
    if len(np.unique(traces.person)) < 2:
        raise InputError(
            "All episodes are of one person, but attackers are tested on people they were not trained on. Give traces "
            "of at least two people, or leave out the column person."
        )


def _check_claim(traces: Traces, claimed: float | None) -> None:
    most = float(np.bincount(traces.secret).max() / len(traces))
    if claimed is not None and claimed <= most:
        raise InputError(
            f"The bound {claimed:g} is reached before anything is sent: {most:.1%} of the episodes have the most "
            f"frequent secret. Claim a bound above {most:.3g}."
        )


def _rare(subject: Traces) -> Iterator[str]:
    """A warning for each class with few tested episodes."""
    for label, names in (("secret", subject.names.secrets), ("useful", subject.names.useful)):
        for value, count in zip(*np.unique(getattr(subject, label), return_counts=True), strict=True):
            if count < FEW_EPISODES:
                yield f"Only {count} judged episodes have the {label} value {names[value]!r}: its estimates are rough."


def _few_people(people: int | None) -> Iterator[str]:
    if people is not None and people < ENOUGH_PEOPLE:
        yield f"With {people} people, intervals are narrower than they should be."
