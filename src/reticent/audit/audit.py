"""The audit of traces: every attacker, every observer, judged on people or episodes that it did not learn from.

Nothing here knows how the traces came about: a file of another system is audited like a policy of ours.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from reticent.audit.attackers import Attacker, Bayes, BoostedTrees, Confidence, Counting, Logistic, Lstm
from reticent.audit.leakage import ChannelLeakage, PolicyLeakage, channel_leakage, policy_leakage
from reticent.audit.measures import Judged, Named, Resampler, calibration, calibration_error, judged, named
from reticent.audit.traces import OBSERVERS, Observer, Traces
from reticent.errors import InputError
from reticent.estimate import Estimate
from reticent.problem.bound import Bound, ConfidenceBound
from reticent.problem.model import ReleaseModel
from reticent.problem.task import GUARANTEED, Task

# With more people than this one split will do; with fewer everybody's turn comes to be judged.
MANY_PEOPLE, FOLDS = 50, 5
MOMENTS = (1, 2, 3, 5, 10, 20, 50)
CURVE = (0.1, 0.3)
# A difference of so many standard errors is no chance: one false alarm in some ten thousand.
CLEAR = 4.0
OWN, RANDOM, NOTHING_LEARNED = "the policy's own traces", "random traces", "the model"
Fitted = Literal["the policy's own traces", "random traces", "the model"]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Attack:
    """One attacker, what it was fitted on, how well it names both labels at the end, and how often its own belief
    about the secret reached the bound at a moment that was looked at."""

    attacker: str
    fitted_on: Fitted
    secret: Named
    useful: Named
    over: Estimate | None


@dataclass(frozen=True)
class Moment:
    """Balanced accuracies after so many steps; `step` is none for the end."""

    attacker: str
    fitted_on: Fitted
    step: int | None
    secret: Estimate
    useful: Estimate


@dataclass(frozen=True)
class Learning:
    """Balanced accuracy on the secret of an attacker who learned from so many episodes."""

    attacker: str
    episodes: int
    secret: Estimate


@dataclass(frozen=True)
class Observed:
    """The strongest attacker who sees less."""

    observer: Observer
    attacker: str
    secret: Named
    useful: Named


@dataclass(frozen=True)
class Check:
    """Something that must be so."""

    name: str
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Audit:
    """All that was found. Every number is an estimate with its interval unless it says that it is exact."""

    episodes: int
    people: int | None
    splits: int
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    limit: float | None
    enforce: str | None
    attacks: list[Attack]
    over_time: list[Moment]
    learning: list[Learning]
    observers: list[Observed]
    calibration: list[dict[str, float]]
    calibration_error: float
    calibrated: str
    channels: list[ChannelLeakage]
    leakage: PolicyLeakage | None
    checks: list[Check]
    notes: list[str] = field(default_factory=list)

    @property
    def strongest(self) -> Attack:
        """The attacker who names the secret best, classes counted alike."""
        return max(self.attacks, key=lambda attack: attack.secret.balanced.value)

    @property
    def passed(self) -> bool:
        """Whether all that must be so is so."""
        return all(check.passed for check in self.checks)

    @property
    def verdict(self) -> list[str]:
        """What there is to say, in a few sentences; what is wrong comes first."""
        return [*(f"Not as it must be: {c.sentence}" for c in self.checks if not c.passed), *_sentences(self)]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        return {"verdict": self.verdict, "passed": self.passed, "strongest": _title(self.strongest), **asdict(self)}


def audit_traces(
    traces: Traces,
    task: Task | None = None,
    random: Traces | None = None,
    seed: int = 0,
    tell: Tell = lambda _: None,
    notes: tuple[str, ...] = (),
) -> Audit:
    """The whole audit. `random` are traces of random sensors, which the paper's adversary learns from."""
    _check_labels(traces)
    splits, bound = _splits(traces.person, seed), task.bound if task else None
    everyone = np.concatenate([np.flatnonzero(rows) for rows in splits])
    subject = traces.take(everyone)
    resampler = Resampler(np.unique(subject.person, return_inverse=True)[1], seed)
    found = _Found(subject, resampler, bound)
    model = task.model if task else None
    if traces.likelihood is not None and model is not None:
        tell("exact Bayes")
        found.add(Bayes(model.prior, _bayes_name(model)), NOTHING_LEARNED, [(traces.take(rows)) for rows in splits])
    sources: dict[Fitted, Traces] = {OWN: traces}
    if random is not None:
        # Merged symbols never came in random traces, but have a place.
        sources[RANDOM] = replace(random, names=traces.names)
    for fitted_on, source in sources.items():
        for make in _learned(seed, tell):
            parts = []
            for number, rows in enumerate(splits):
                attacker = make()
                tell(f"{attacker.name} learns from {fitted_on} ({number + 1} of {len(splits)})")
                attacker.fit(_others(source, traces, rows))
                parts.append((attacker, traces.take(rows)))
            found.add_fitted(parts, fitted_on)
    judge = found.exact or found.own
    bins = calibration(judge.secret, subject.secret)
    return Audit(
        episodes=len(subject),
        people=None if _own_units(traces) else len(np.unique(subject.person)),
        splits=len(splits),
        secrets=traces.names.secrets,
        useful=traces.names.useful,
        limit=bound.limit if isinstance(bound, ConfidenceBound) and bound.limit <= 1 else None,
        enforce=task.enforce if task else None,
        attacks=found.attacks,
        over_time=found.moments,
        learning=list(_learning(traces, splits[0], found.fitted, seed, tell)),
        observers=list(_observed(traces, splits, resampler, seed, tell)),
        calibration=bins,
        calibration_error=calibration_error(bins),
        calibrated=found.calibrated,
        channels=channel_leakage(model) if model else [],
        leakage=policy_leakage(found.exact.secret, model.prior.sum(1), resampler) if found.exact and model else None,
        checks=list(_checks(found, task)),
        notes=list(notes),
    )


def _learned(seed: int, tell: Tell) -> list[Callable[[], Attacker]]:
    """All who learn."""
    return [*_quick(seed), lambda: Lstm(seed, lambda done, loss: tell(f"LSTM: update {done}, loss {loss:.3f}"))]


def _quick(seed: int) -> list[Callable[[], Attacker]]:
    """Those who need no network."""
    return [Counting, lambda: Logistic(seed), lambda: BoostedTrees(seed)]


def _bayes_name(model: ReleaseModel) -> str:
    return "Bayes with the true model" if model.fitted is None else "Bayes with the fitted model"


class _Found:
    """Beliefs of all attackers on the judged episodes, summed up as they come."""

    def __init__(self, subject: Traces, resampler: Resampler, bound: Bound | None) -> None:
        self.subject, self.resampler = subject, resampler
        self.limit = bound.limit if isinstance(bound, ConfidenceBound) else None
        self.attacks: list[Attack] = []
        self.moments: list[Moment] = []
        self.ends: list[Confidence] = []
        self.fitted: list[Attacker] = []
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

    def add(self, bayes: Bayes, fitted_on: Fitted, parts: list[Traces]) -> None:
        """Exact Bayes, looked at after every step."""
        self.exact = self._judge([(bayes, part) for part in parts], fitted_on, range(1, parts[0].longest + 1))

    def add_fitted(self, parts: list[tuple[Attacker, Traces]], fitted_on: Fitted) -> None:
        """A learned attacker, looked at at some moments."""
        if fitted_on == OWN:
            self.fitted.append(parts[0][0])
        self._judge(parts, fitted_on, [m for m in MOMENTS if m <= parts[0][1].longest])

    def _judge(self, parts: Any, fitted_on: Fitted, moments: Any) -> Confidence:
        name, highest = parts[0][0].name, np.zeros(len(self.subject))
        for step in moments:
            said = _together([attacker.confidence(part.until(step)) for attacker, part in parts])
            highest = np.maximum(highest, said.secret.max(1))
            if step in MOMENTS:
                self._look(name, fitted_on, step, said)
        end = _together([attacker.confidence(part) for attacker, part in parts])
        highest = np.maximum(highest, end.secret.max(1))
        if fitted_on == NOTHING_LEARNED:
            self.highest_exact = float(highest.max())
        over = self.resampler.ratio((highest >= self.limit).astype(float)) if self.limit else None
        numbers = self._look(name, fitted_on, None, end)
        self.attacks.append(Attack(name, fitted_on, numbers.secret, numbers.useful, over))
        self.ends.append(end)
        return end

    def _look(self, name: str, fitted_on: Fitted, step: int | None, said: Confidence) -> Judged:
        numbers = judged(said, self.subject, self.resampler)
        self.moments.append(Moment(name, fitted_on, step, numbers.secret.balanced, numbers.useful.balanced))
        return numbers


def _together(parts: list[Confidence]) -> Confidence:
    return Confidence(np.concatenate([part.secret for part in parts]), np.concatenate([part.useful for part in parts]))


def _check_labels(traces: Traces) -> None:
    for label, names in (("secret", traces.names.secrets), ("useful", traces.names.useful)):
        if len(np.unique(getattr(traces, label))) < 2:
            raise InputError(f"All episodes have the same {label} value, of {list(names)}: there is nothing to find.")
    if len(np.unique(traces.person)) < 2:
        raise InputError("All episodes are of one person: attackers must be judged on others than they learned from.")


def _own_units(traces: Traces) -> bool:
    return len(np.unique(traces.person)) == len(traces)


def _splits(person: Int[np.ndarray, " N"], seed: int) -> list[Bool[np.ndarray, " N"]]:
    """Who is judged: half of many people once, or everybody in turn where there are few."""
    people = np.random.default_rng(seed).permutation(np.unique(person))
    if len(people) > MANY_PEOPLE:
        return [np.isin(person, people[: len(people) // 2])]
    return [np.isin(person, own) for own in np.array_split(people, min(FOLDS, len(people)))]


def _others(source: Traces, traces: Traces, judged_rows: Bool[np.ndarray, " N"]) -> Traces:
    """Traces of people who are not judged. Where episodes are people, others' random episodes are others anyway."""
    if source is not traces and _own_units(traces):
        return source
    return source.take(~np.isin(source.person, traces.person[judged_rows]))


def _learning(
    traces: Traces, judged_rows: Bool[np.ndarray, " N"], fitted: list[Attacker], seed: int, tell: Tell
) -> Iterator[Learning]:
    """Attackers who learned from less, beside those who learned from all: whether more traces would tell more."""
    learned, subject = traces.take(~judged_rows), traces.take(judged_rows)
    order = np.random.default_rng(seed).permutation(len(learned))
    resampler = Resampler(np.unique(subject.person, return_inverse=True)[1], seed)

    def point(attacker: Attacker, episodes: int) -> Learning:
        accuracy = named(attacker.confidence(subject).secret, subject.secret, resampler).balanced
        return Learning(attacker.name, episodes, accuracy)

    for make, whole in zip(_learned(seed, tell), fitted, strict=True):
        for share in CURVE:
            attacker = make()
            few = learned.take(order[: max(20, int(share * len(learned)))])
            tell(f"{attacker.name} learns from {len(few):,} episodes")
            attacker.fit(few)
            yield point(attacker, len(few))
        yield point(whole, len(learned))


def _observed(traces: Traces, splits: Any, resampler: Resampler, seed: int, tell: Tell) -> Iterator[Observed]:
    """Observers who see less."""
    for observer in OBSERVERS:
        tell(f"who sees {observer}")
        seen, best = traces.seen_by(observer), None
        for make in _quick(seed):
            said = []
            for rows in splits:
                attacker = make()
                attacker.fit(seen.take(~rows))
                said.append(attacker.confidence(seen.take(rows)))
            subject = traces.take(np.concatenate([np.flatnonzero(rows) for rows in splits]))
            numbers = judged(_together(said), subject, resampler)
            if best is None or numbers.secret.balanced.value > best.secret.balanced.value:
                best = Observed(observer, make().name, numbers.secret, numbers.useful)
        assert best is not None
        yield best


def _checks(found: _Found, task: Task | None) -> Iterator[Check]:
    """What must be so where the true model is known, and under a guarantee."""
    if found.exact is None or task is None:
        return
    truth = found.subject.secret
    right = found.exact.secret.argmax(1) == truth
    if task.model.fitted is None:
        believed = found.exact.secret.max(1)
        off = abs(_errors_from_zero(right - believed))
        yield Check(
            "exact Bayes is honest",
            off < CLEAR,
            f"Exact Bayes is right in {right.mean():.2%} of episodes and believes {believed.mean():.2%} "
            f"on average, {off:.1f} standard errors apart.",
        )
        yield _nobody_beats(found, right)
    if task.enforce in GUARANTEED and found.limit is not None:
        crossed = found.highest_exact >= found.limit
        yield Check(
            "the bound holds",
            not crossed,
            f"The belief of exact Bayes reached {found.highest_exact:.4f} at most; the bound is {found.limit:g}.",
        )


def _nobody_beats(found: _Found, right: Bool[np.ndarray, " N"]) -> Check:
    """Who learns cannot know more than the model explains, unless something else tells the secret."""
    worst, lead, by = "", -np.inf, 0.0
    for attack, end in zip(found.attacks, found.ends, strict=True):
        if attack.fitted_on == NOTHING_LEARNED:
            continue
        gain = (end.secret.argmax(1) == found.subject.secret) * 1.0 - right
        if (errors := _errors_from_zero(gain)) > lead:
            worst, lead, by = _title(attack), errors, float(gain.mean())
    if lead < CLEAR:
        sentence = f"The nearest, {worst}, is {by:+.2%} from it ({lead:.1f} standard errors)."
        return Check("nobody beats exact Bayes", True, sentence)
    return Check(
        "nobody beats exact Bayes",
        False,
        f"{worst} names the secret right in {by:.2%} more episodes than exact Bayes can ({lead:.1f} standard errors): "
        "the traces say more than the model and the public rule explain. Something else depends on the secret, such "
        "as which sensor is chosen, or when it stops; or it is not the model of these traces.",
    )


def _errors_from_zero(values: Float[np.ndarray, " N"]) -> float:
    """The mean in standard errors; of values that are all the same zero, none."""
    return float(values.mean() / stats.sem(values)) if values.any() else 0.0


def _title(attack: Attack) -> str:
    return attack.attacker if attack.fitted_on == NOTHING_LEARNED else f"{attack.attacker} ({attack.fitted_on})"


def _sentences(audit: Audit) -> Iterator[str]:
    best, guess = audit.strongest, 1 / len(audit.secrets)
    found = best.secret.balanced
    against = f"guessing gives {100 * guess:.1f} %"
    told = "" if found.low > guess else ", which it is not told apart from"
    whom = f"{audit.people} people" if audit.people else f"{audit.episodes:,} episodes"
    yield (
        f"The strongest of {len(audit.attacks)} attackers, {_title(best)}, names the secret correctly in "
        f"{percent(found)} of episodes; {against}{told}."
    )
    useful = max(audit.attacks, key=lambda attack: attack.useful.balanced.value)
    yield (
        f"The useful value is named correctly in {percent(useful.useful.balanced)} ({_title(useful)}); guessing gives "
        f"{100 / len(audit.useful):.1f} %."
    )
    if audit.limit is not None:
        believers = [attack for attack in audit.attacks if attack.fitted_on == NOTHING_LEARNED] or audit.attacks
        worst = max(believers, key=lambda attack: attack.over.value if attack.over else 0.0)
        assert worst.over is not None
        yield f"The belief of {_title(worst)} reaches the bound {audit.limit:g} in {percent(worst.over)} of episodes."
    yield f"Both are means over classes, on {whom} that the attacker had not learned from."


def percent(estimate: Estimate) -> str:
    """In percent, with its interval."""
    return f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
