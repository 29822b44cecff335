"""The audit of traces: every attacker, every observer, judged on people or episodes that it did not learn from.

Nothing here knows how the traces came about: a file of another system is audited like a policy of ours.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from reticent.audit.attackers import Attacker, Bayes, BoostedTrees, Counting, Logistic
from reticent.audit.confidence import Confidence, together
from reticent.audit.findings import (
    NOTHING_LEARNED,
    OWN,
    RANDOM,
    Attack,
    Audit,
    Check,
    Fitted,
    Learning,
    Linked,
    Moment,
    Observed,
    title,
)
from reticent.audit.leakage import channel_leakage, policy_leakage
from reticent.audit.measures import (
    LEAST_BELIEF,
    Judged,
    Resampler,
    balanced,
    calibration,
    calibration_error,
    judged,
)
from reticent.audit.recurrent import Lstm
from reticent.audit.splits import own_units, splits_of
from reticent.audit.traces import OBSERVERS, Traces
from reticent.errors import InputError
from reticent.estimate import CONFIDENCE_LEVEL, Estimate, rate
from reticent.problem.bound import ConfidenceBound
from reticent.problem.task import GUARANTEED, Task

# Of fewer no clear statement is made, and their intervals come with a warning.
ENOUGH_PEOPLE = 10
# Of a class with fewer judged episodes the numbers come with a warning.
FEW_EPISODES = 30
MOMENTS = (1, 2, 3, 5, 10, 20, 50)
CURVE = (0.1, 0.3)
# A difference of so many standard errors is no chance: one false alarm in some ten thousand.
CLEAR = 4.0
Tell = Callable[[str], None]
Splits = list[Bool[np.ndarray, " N"]]
Judges = Iterator[tuple[Attacker, Traces]]


def audit_traces(
    traces: Traces,
    task: Task | None = None,
    random: Traces | None = None,
    seed: int = 0,
    tell: Tell = lambda _: None,
    notes: tuple[str, ...] = (),
    model_is_true: bool | None = None,
    claimed: float | None = None,
) -> Audit:
    """The whole audit. `random` are traces of random sensors, which the paper's adversary learns from. Unless told
    otherwise, a model that was not fitted to recordings is taken for the true one: that is checked. `claimed` is the
    confidence that no belief is said to reach, where there is no task to say it."""
    _check_labels(traces)
    _check_claim(traces, claimed)
    splits, limit = splits_of(traces, seed), _limit(task) or claimed
    everyone = np.concatenate([np.flatnonzero(rows) for rows in splits])
    subject = traces.take(everyone)
    notes = (*notes, *_rare(subject))
    resampler = Resampler(np.unique(subject.person, return_inverse=True)[1], seed)
    found = _Found(subject, resampler, limit)
    model = task.model if task else None
    true = model is not None and (model.fitted is None if model_is_true is None else model_is_true)
    if traces.likelihood is not None and model is not None:
        tell("exact Bayes")
        found.add_exact(Bayes(model.prior, f"Bayes with the {'true' if true else 'fitted'} model"))
    sources: dict[Fitted, Traces] = {OWN: traces}
    if random is not None:
        # Merged symbols never came in random traces, but have a place.
        sources[RANDOM] = replace(random, names=traces.names)
    for fitted_on, source in sources.items():
        _attack(found, traces, splits, fitted_on, source, seed, tell)
    judge = found.exact or found.own
    people = None if own_units(traces) else len(np.unique(subject.person))
    if people is not None and people < ENOUGH_PEOPLE:
        notes = (*notes, f"With {people} people, intervals are narrower than they should be.")
    bins = calibration(judge.secret, subject.secret, resampler)
    checks = list(_checks(found, task, true, claimed is not None))
    # Exact Bayes knows what there is to know only if nothing contradicts it.
    trusted = found.exact if true and all(check.passed for check in checks) else None
    return Audit(
        episodes=len(subject),
        people=people,
        splits=len(splits),
        secrets=traces.names.secrets,
        useful=traces.names.useful,
        guess_secret=1 / len(np.unique(subject.secret)),
        guess_useful=1 / len(np.unique(subject.useful)),
        limit=limit,
        enforce=task.enforce if task else None,
        attacks=found.attacks,
        headline=found.headline,
        over_time=found.moments,
        learning=list(_learning(traces, splits, found, seed, tell)),
        observers=list(_observed(traces, splits, found, seed, tell)),
        linked=_linked(found) if people is not None else None,
        calibration=bins,
        calibration_error=calibration_error(bins),
        calibrated=found.calibrated,
        channels=channel_leakage(model) if model else [],
        leakage=policy_leakage(trusted.secret, model.prior.sum(1), resampler) if trusted and model else None,
        checks=checks,
        notes=list(notes),
    )


def _learned(seed: int, tell: Tell) -> list[Callable[[], Attacker]]:
    """All who learn."""
    return [*_quick(seed), lambda: Lstm(seed, lambda done, loss: tell(f"LSTM: update {done}, loss {loss:.3f}"))]


def _quick(seed: int) -> list[Callable[[], Attacker]]:
    """Those who need no network."""
    return [Counting, lambda: Logistic(seed), lambda: BoostedTrees(seed)]


def _attack(
    found: "_Found", traces: Traces, splits: Splits, fitted_on: Fitted, source: Traces, seed: int, tell: Tell
) -> None:
    """Everybody who learns from these traces, each part of the people judged by who learned from the others."""
    for make in _learned(seed, tell):
        parts = []
        for number, rows in enumerate(splits):
            attacker = make()
            tell(f"{attacker.name} learns from {fitted_on} ({number + 1} of {len(splits)})")
            attacker.fit(_others(source, traces, rows))
            parts.append((attacker, traces.take(rows)))
        found.add_fitted(parts, fitted_on)


def _limit(task: Task | None) -> float | None:
    """L_B, where there is one that could be reached."""
    bound = task.bound if task else None
    return bound.limit if isinstance(bound, ConfidenceBound) and bound.limit <= 1 else None


class _Found:
    """Beliefs of all attackers on the judged episodes, summed up as they come."""

    def __init__(self, subject: Traces, resampler: Resampler, limit: float | None) -> None:
        self.subject, self.resampler, self.limit = subject, resampler, limit
        self.attacks: list[Attack] = []
        self.moments: list[Moment] = []
        self.ends: list[Confidence] = []
        self.exact: Confidence | None = None
        self.highest_exact = 0.0

    @property
    def own(self) -> Confidence:
        """Of the attacker with the most bits about the secret."""
        return self.ends[self._surest]

    @property
    def calibrated(self) -> str:
        """Whose belief the calibration is of."""
        return "exact Bayes" if self.exact else self.attacks[self._surest].attacker

    @property
    def _surest(self) -> int:
        return max(range(len(self.attacks)), key=lambda i: self.attacks[i].secret.bits.value)

    @property
    def headline(self) -> Estimate:
        """How well the strongest names the secret, with an interval that holds for all attackers at once."""
        values = [attack.secret.balanced.value for attack in self.attacks]
        guess = self.ends[int(np.argmax(values))].fair_guess("secret")
        return balanced(guess, self.subject.secret, self.resampler, 1 - (1 - CONFIDENCE_LEVEL) / len(values))

    def add_exact(self, bayes: Bayes) -> None:
        """Exact Bayes, looked at after every step."""
        moments = list(bayes.along(self.subject))
        self.exact = self._judge(bayes.name, NOTHING_LEARNED, enumerate(moments), moments[-1])

    def add_fitted(self, parts: list[tuple[Attacker, Traces]], fitted_on: Fitted) -> None:
        """A learned attacker, looked at at some moments."""
        moments = (
            (step, together([attacker.confidence(part.until(step)) for attacker, part in parts]))
            for step in MOMENTS
            if step <= self.subject.longest
        )
        end = together([attacker.confidence(part) for attacker, part in parts])
        self._judge(parts[0][0].name, fitted_on, moments, end)

    def _judge(
        self, name: str, fitted_on: Fitted, moments: Iterable[tuple[int, Confidence]], end: Confidence
    ) -> Confidence:
        highest = end.secret.max(1)
        for step, said in moments:
            highest = np.maximum(highest, said.secret.max(1))
            if step in MOMENTS:
                self._look(name, fitted_on, step, said)
        if fitted_on == NOTHING_LEARNED:
            self.highest_exact = float(highest.max())
        over = self.resampler.share(highest >= self.limit) if self.limit else None
        numbers = self._look(name, fitted_on, None, end)
        self.attacks.append(Attack(name, fitted_on, numbers.secret, numbers.useful, over))
        self.ends.append(end)
        return end

    def _look(self, name: str, fitted_on: Fitted, step: int | None, said: Confidence) -> Judged:
        numbers = judged(said, self.subject, self.resampler)
        self.moments.append(Moment(name, fitted_on, step, numbers.secret.balanced, numbers.useful.balanced))
        return numbers


def _check_labels(traces: Traces) -> None:
    for label, names in (("secret", traces.names.secrets), ("useful", traces.names.useful)):
        if len(np.unique(getattr(traces, label))) < 2:
            raise InputError(f"All episodes have the same {label} value, of {list(names)}: there is nothing to find.")
    if len(np.unique(traces.person)) < 2:
        raise InputError("All episodes are of one person: attackers must be judged on others than they learned from.")


def _check_claim(traces: Traces, claimed: float | None) -> None:
    most = float(np.bincount(traces.secret).max() / len(traces))
    if claimed is not None and claimed <= most:
        raise InputError(
            f"{most:.1%} of the episodes have the most frequent secret, so somebody who is told nothing is as sure as "
            f"that: a bound of {claimed:g} is reached before anything is sent."
        )


def _rare(subject: Traces) -> Iterator[str]:
    """A warning for each class of which few episodes are judged."""
    for label, names in (("secret", subject.names.secrets), ("useful", subject.names.useful)):
        for value, count in zip(*np.unique(getattr(subject, label), return_counts=True), strict=True):
            if count < FEW_EPISODES:
                yield f"Only {count} judged episodes have the {label} value {names[value]!r}: its numbers are rough."


def _linked(found: "_Found") -> Linked | None:
    """Who is found out by adding up all episodes, if everybody has one secret for good."""
    subject, unit = found.subject, found.resampler.unit
    first = np.unique(unit, return_index=True)[1]
    lasting = subject.secret[first]
    if len(first) == len(unit) or (subject.secret != lasting[unit]).any():
        return None
    best = None
    for attack, end in zip(found.attacks, found.ends, strict=True):
        gained = np.log(np.maximum(end.secret, LEAST_BELIEF)) - np.log(np.maximum(end.secret_before, LEAST_BELIEF))
        total = np.stack([np.bincount(unit, column) for column in gained.T], axis=1)
        right = rate(total.argmax(1) == lasting)
        if best is None or right.value > best.secret.value:
            best = Linked(title(attack), len(first), len(unit) / len(first), right)
    return best


def _others(source: Traces, traces: Traces, judged_rows: Bool[np.ndarray, " N"]) -> Traces:
    """Traces of people who are not judged. Where episodes are people, others' random episodes are others anyway."""
    if source is not traces and own_units(traces):
        return source
    return source.take(~np.isin(source.person, traces.person[judged_rows]))


def _fitted(make: Callable[[], Attacker], traces: Traces, splits: Splits, share: float = 1.0, seed: int = 0) -> Judges:
    """Each part of the people with an attacker who learned from the others, or from a share of their episodes."""
    for rows in splits:
        others, attacker = traces.take(~rows), make()
        if share < 1:
            few = np.random.default_rng(seed).permutation(len(others))[: max(20, int(share * len(others)))]
            others = others.take(few)
        attacker.fit(others)
        yield attacker, traces.take(rows)


def _learning(traces: Traces, splits: Splits, found: "_Found", seed: int, tell: Tell) -> Iterator[Learning]:
    """Attackers who learned from less, beside those who learned from all: whether more traces would tell more."""
    learned = int(np.mean([(~rows).sum() for rows in splits]))
    whole = {attack.attacker: attack.secret.balanced for attack in found.attacks if attack.fitted_on == OWN}
    for make in _learned(seed, tell):
        name = make().name
        for share in CURVE:
            tell(f"{name} learns from {share:.0%} of the episodes")
            said = together(
                [attacker.confidence(part) for attacker, part in _fitted(make, traces, splits, share, seed)]
            )
            numbers = judged(said, found.subject, found.resampler)
            yield Learning(name, max(20, int(share * learned)), numbers.secret.balanced)
        yield Learning(name, learned, whole[name])


def _observed(traces: Traces, splits: Splits, found: "_Found", seed: int, tell: Tell) -> Iterator[Observed]:
    """Observers, from the one who sees everything to those who see less: the strongest attacker of each."""
    own = max((attack for attack in found.attacks if attack.fitted_on == OWN), key=lambda a: a.secret.balanced.value)
    yield Observed("everything", own.attacker, own.secret, own.useful)
    for observer in OBSERVERS[1:]:
        tell(f"who sees {observer}")
        seen, best = traces.seen_by(observer), None
        for make in _quick(seed):
            said = together([attacker.confidence(part) for attacker, part in _fitted(make, seen, splits)])
            numbers = judged(said, found.subject, found.resampler)
            if best is None or numbers.secret.balanced.value > best.secret.balanced.value:
                best = Observed(observer, make().name, numbers.secret, numbers.useful)
        assert best is not None
        yield best


def _checks(found: _Found, task: Task | None, true: bool, claimed: bool) -> Iterator[Check]:
    """What must be so where the true model is known, and under a guarantee, ours or somebody's."""
    if found.exact is None or task is None:
        return
    # Of few people nothing clear can be said.
    if true and found.resampler.unit.max() + 1 >= ENOUGH_PEOPLE:
        yield _honest(found, found.exact)
        yield _nobody_beats(found, found.exact)
    if (claimed or task.enforce in (*GUARANTEED, "answer")) and found.limit is not None:
        crossed = found.highest_exact >= found.limit
        yield Check(
            "the bound holds",
            not crossed,
            f"The belief of exact Bayes reached {found.highest_exact:.4f} at most; the bound is {found.limit:g}.",
        )


def _honest(found: _Found, exact: Confidence) -> Check:
    """An exact belief is right as often as it says."""
    right, believed = exact.secret.argmax(1) == found.subject.secret, exact.secret.max(1)
    off, clear = _errors_from_zero(right - believed, found.resampler.unit)
    return Check(
        "exact Bayes is honest",
        abs(off) < clear,
        f"Exact Bayes is right in {right.mean():.2%} of episodes and believes {believed.mean():.2%} on average, "
        f"{abs(off):.1f} standard errors apart.",
    )


def _nobody_beats(found: _Found, exact: Confidence) -> Check:
    """Who learns cannot know more than the model explains, unless something else tells the secret: neither name it
    right more often, nor believe more in the truth (in bits, which also shows where one secret is rare)."""
    truth, rows = found.subject.secret, np.arange(len(found.subject))

    def bits(said: Confidence) -> Float[np.ndarray, " N"]:
        return np.log2(np.maximum(said.secret[rows, truth], LEAST_BELIEF))

    worst, lead, caught = "", -np.inf, False
    for attack, end in zip(found.attacks, found.ends, strict=True):
        if attack.fitted_on == NOTHING_LEARNED:
            continue
        hits = 1.0 * (end.secret.argmax(1) == truth) - (exact.secret.argmax(1) == truth)
        for gain, unit in ((hits, "episodes named right"), (bits(end) - bits(exact), "bits about the secret")):
            errors, clear = _errors_from_zero(gain, found.resampler.unit)
            if errors / clear > lead:
                lead, caught = errors / clear, errors >= clear
                worst = f"{title(attack)}, {gain.mean():+.4f} in {unit} per episode, {errors:.1f} standard errors"
    if not caught:
        return Check("nobody beats exact Bayes", True, f"The nearest: {worst}.")
    return Check(
        "nobody beats exact Bayes",
        False,
        f"Somebody knows more than exact Bayes can ({worst}): the traces say more than the model and the public rule "
        "explain. Something else depends on the secret, such as which sensor is chosen, or when it stops; or it is not "
        "the model of these traces.",
    )


def _errors_from_zero(values: Float[np.ndarray, " N"], unit: Int[np.ndarray, " N"]) -> tuple[float, float]:
    """The mean over units in standard errors, and how many of them are clear; of values that are all alike, none or
    infinitely many."""
    means = np.bincount(unit, values) / np.bincount(unit)
    clear = float(stats.t.isf(stats.norm.sf(CLEAR), len(means) - 1))
    error = stats.sem(means)
    mean = float(means.mean())
    return (mean / float(error) if error > 0 else math.copysign(math.inf, mean) if mean else 0.0), clear
