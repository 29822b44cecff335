"""The audit of traces: every attacker, every observer, judged on people or episodes that it did not learn from.

Nothing here knows how the traces came about: a file of another system is audited like a policy of ours.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from reticent.audit.attackers import Attacker, Bayes, BoostedTrees, Confidence, Counting, Logistic, Lstm
from reticent.audit.leakage import ChannelLeakage, PolicyLeakage, channel_leakage, policy_leakage
from reticent.audit.measures import (
    LEAST_BELIEF,
    Judged,
    Named,
    Resampler,
    calibration,
    calibration_error,
    judged,
)
from reticent.audit.traces import OBSERVERS, Observer, Traces
from reticent.errors import InputError
from reticent.estimate import Estimate, rate
from reticent.problem.bound import ConfidenceBound
from reticent.problem.task import GUARANTEED, Task

# With more people than this one split will do; with fewer everybody's turn comes to be judged.
MANY_PEOPLE, FOLDS = 50, 5
# Of fewer no clear statement is made, and their intervals come with a warning.
ENOUGH_PEOPLE = 10
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
    model_is_true: bool | None = None,
) -> Audit:
    """The whole audit. `random` are traces of random sensors, which the paper's adversary learns from. Unless told
    otherwise, a model that was not fitted to recordings is taken for the true one: that is checked."""
    _check_labels(traces)
    splits, limit = _splits(traces, seed), _limit(task)
    everyone = np.concatenate([np.flatnonzero(rows) for rows in splits])
    subject = traces.take(everyone)
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
        for make in _learned(seed, tell):
            parts = []
            for number, rows in enumerate(splits):
                attacker = make()
                tell(f"{attacker.name} learns from {fitted_on} ({number + 1} of {len(splits)})")
                attacker.fit(_others(source, traces, rows))
                parts.append((attacker, traces.take(rows)))
            found.add_fitted(parts, fitted_on)
    judge = found.exact or found.own
    people = None if _own_units(traces) else len(np.unique(subject.person))
    if people is not None and people < ENOUGH_PEOPLE:
        notes = (*notes, f"With {people} people, intervals are narrower than they should be.")
    bins = calibration(judge.secret, subject.secret)
    return Audit(
        episodes=len(subject),
        people=people,
        splits=len(splits),
        secrets=traces.names.secrets,
        useful=traces.names.useful,
        limit=limit,
        enforce=task.enforce if task else None,
        attacks=found.attacks,
        over_time=found.moments,
        learning=list(_learning(traces, splits[0], found.fitted, seed, tell)),
        observers=list(_observed(traces, splits, resampler, seed, tell)),
        calibration=bins,
        calibration_error=calibration_error(bins),
        calibrated=found.calibrated,
        channels=channel_leakage(model) if model else [],
        leakage=policy_leakage(found.exact.secret, model.prior.sum(1), resampler)
        if found.exact and model and true
        else None,
        checks=list(_checks(found, task, true)),
        notes=list(notes),
    )


def _learned(seed: int, tell: Tell) -> list[Callable[[], Attacker]]:
    """All who learn."""
    return [*_quick(seed), lambda: Lstm(seed, lambda done, loss: tell(f"LSTM: update {done}, loss {loss:.3f}"))]


def _quick(seed: int) -> list[Callable[[], Attacker]]:
    """Those who need no network."""
    return [Counting, lambda: Logistic(seed), lambda: BoostedTrees(seed)]


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

    def add_exact(self, bayes: Bayes) -> None:
        """Exact Bayes, looked at after every step."""
        *moments, end = bayes.along(self.subject)
        self.exact = self._judge(bayes.name, NOTHING_LEARNED, enumerate(moments), end)

    def add_fitted(self, parts: list[tuple[Attacker, Traces]], fitted_on: Fitted) -> None:
        """A learned attacker, looked at at some moments."""
        if fitted_on == OWN:
            self.fitted.append(parts[0][0])
        moments = (
            (step, _together([attacker.confidence(part.until(step)) for attacker, part in parts]))
            for step in MOMENTS
            if step <= self.subject.longest
        )
        end = _together([attacker.confidence(part) for attacker, part in parts])
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
        over = self._share(highest >= self.limit) if self.limit else None
        numbers = self._look(name, fitted_on, None, end)
        self.attacks.append(Attack(name, fitted_on, numbers.secret, numbers.useful, over))
        self.ends.append(end)
        return end

    def _share(self, happened: Bool[np.ndarray, " N"]) -> Estimate:
        """Where episodes are independent the interval is exact, and not empty where nothing happened."""
        return rate(happened) if _own_units(self.subject) else self.resampler.ratio(happened.astype(float))

    def _look(self, name: str, fitted_on: Fitted, step: int | None, said: Confidence) -> Judged:
        numbers = judged(said, self.subject, self.resampler)
        self.moments.append(Moment(name, fitted_on, step, numbers.secret.balanced, numbers.useful.balanced))
        return numbers


def _together(parts: list[Confidence]) -> Confidence:
    return Confidence(*(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True)))


def _check_labels(traces: Traces) -> None:
    for label, names in (("secret", traces.names.secrets), ("useful", traces.names.useful)):
        if len(np.unique(getattr(traces, label))) < 2:
            raise InputError(f"All episodes have the same {label} value, of {list(names)}: there is nothing to find.")
    if len(np.unique(traces.person)) < 2:
        raise InputError("All episodes are of one person: attackers must be judged on others than they learned from.")


def _own_units(traces: Traces) -> bool:
    return len(np.unique(traces.person)) == len(traces)


def _splits(traces: Traces, seed: int) -> list[Bool[np.ndarray, " N"]]:
    """Who is judged: half of many people once, or everybody in turn where there are few.

    People are dealt out by their secrets, so that those who have one for good are in all parts alike: else an attacker
    learns mostly from people with other secrets than those it is judged on.
    """
    people = np.random.default_rng(seed).permutation(np.unique(traces.person))
    secrets = _secrets_of(people, traces)
    people = people[np.lexsort((np.arange(len(people)), secrets))]
    if len(people) > MANY_PEOPLE:
        parts = [people[::2]]
    else:
        # Of the rarest kind of people one in each part, if there are several kinds.
        rarest = np.bincount(secrets).min() if secrets.any() else len(people)
        parts = [people[i :: max(2, min(FOLDS, rarest))] for i in range(max(2, min(FOLDS, rarest)))]
    rows = [np.isin(traces.person, part) for part in parts]
    for judged_rows in rows:
        for label in ("secret", "useful"):
            values = getattr(traces, label)
            if missing := set(values.tolist()) - set(values[~judged_rows].tolist()):
                names = traces.names.secrets if label == "secret" else traces.names.useful
                raise InputError(
                    f"Too few people have the {label} {[names[i] for i in sorted(missing)]}: attackers must be able to "
                    "learn from others than those they are judged on."
                )
    return rows


def _secrets_of(people: Int[np.ndarray, " P"], traces: Traces) -> Int[np.ndarray, " P"]:
    """Which kind each person is of: all who have the same set of secrets are alike."""
    place = np.searchsorted(np.sort(people), traces.person)
    has = np.zeros((len(people), len(traces.names.secrets)), bool)
    has[place, traces.secret] = True
    return np.unique(has, axis=0, return_inverse=True)[1].reshape(-1)[np.searchsorted(np.sort(people), people)]


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
        return Learning(
            attacker.name, episodes, judged(attacker.confidence(subject), subject, resampler).secret.balanced
        )

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


def _checks(found: _Found, task: Task | None, true: bool) -> Iterator[Check]:
    """What must be so where the true model is known, and under a guarantee."""
    if found.exact is None or task is None:
        return
    # Of few people nothing clear can be said.
    if true and found.resampler.unit.max() + 1 >= ENOUGH_PEOPLE:
        yield _honest(found, found.exact)
        yield _nobody_beats(found, found.exact)
    if task.enforce in GUARANTEED and found.limit is not None:
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
                worst = f"{_title(attack)}, {gain.mean():+.4f} in {unit} per episode, {errors:.1f} standard errors"
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
    """The mean over units in standard errors, and how many of them are clear; of values that are all zero, none."""
    means = np.bincount(unit, values) / np.bincount(unit)
    clear = float(stats.t.isf(stats.norm.sf(CLEAR), len(means) - 1))
    error = stats.sem(means)
    return (float(means.mean() / error) if error > 0 else 0.0), clear


def _title(attack: Attack) -> str:
    return attack.attacker if attack.fitted_on == NOTHING_LEARNED else f"{attack.attacker} ({attack.fitted_on})"


def _sentences(audit: Audit) -> Iterator[str]:
    best, guess = audit.strongest, 1 / len(audit.secrets)
    told = "" if best.secret.balanced.low > guess else ", which it is not told apart from"
    yield (
        f"The strongest of {len(audit.attacks)} attackers, {_title(best)}, names the secret correctly in "
        f"{percent(best.secret.balanced)} of episodes; guessing gives {100 * guess:.1f} %{told}."
    )
    useful = max(audit.attacks, key=lambda attack: attack.useful.balanced.value)
    whom = f"of {audit.people} people" if audit.people else f"in {audit.episodes:,} episodes"
    yield (
        f"The useful value is named correctly in {percent(useful.useful.balanced)} ({_title(useful)}); guessing gives "
        f"{100 / len(audit.useful):.1f} %. Both are means over classes, {whom} that the attacker had not learned from."
    )
    if audit.limit is not None:
        believers = [attack for attack in audit.attacks if attack.fitted_on == NOTHING_LEARNED] or audit.attacks
        worst = max(believers, key=lambda attack: attack.over.value if attack.over else 0.0)
        assert worst.over is not None
        yield f"The belief of {_title(worst)} reaches the bound {audit.limit:g} in {percent(worst.over)} of episodes."
    surest = max(audit.attacks, key=lambda attack: attack.secret.bits.low)
    if told and surest.secret.bits.low > 0:
        yield (
            f"Still, {_title(surest)} believes more in the true secret than before, by {surest.secret.bits} bits on "
            "average: something is said about it."
        )


def percent(estimate: Estimate) -> str:
    """In percent, with its interval."""
    return f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
