"""The audit of traces: every attacker, every observer, judged on people or episodes that it did not learn from.

Nothing here knows how the traces came about: a file of another system is audited like a policy of ours.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from reticent.audit.attackers import Attacker, Bayes, BoostedTrees, Counting, Logistic
from reticent.audit.checks import checks
from reticent.audit.evidence import Evidence, Parts
from reticent.audit.findings import OWN, RANDOM, Attack, Fitted, Linked, title
from reticent.audit.leakage import channel_leakage, policy_leakage
from reticent.audit.measures import LEAST_BELIEF, Resampler, calibration, calibration_error
from reticent.audit.ngrams import NGrams
from reticent.audit.observers import Observer, SensorAlone, StepAlone, observers_of, parts_of
from reticent.audit.recurrent import Lstm
from reticent.audit.splits import own_units, splits_of
from reticent.audit.traces import Traces
from reticent.audit.verdict import ENOUGH_PEOPLE, Audit
from reticent.errors import InputError
from reticent.estimate import rate
from reticent.problem.enforcement import Promise
from reticent.problem.task import Task

# Of a class with fewer judged episodes the numbers come with a warning.
FEW_EPISODES = 30
# Shares of the episodes that attackers of a learning curve learn from, and how many at least.
CURVE, FEWEST_LEARNED = (0.1, 0.3), 20
Tell = Callable[[str], None]
Make = Callable[[], Attacker]
Splits = list[Bool[np.ndarray, " N"]]


def audit_traces(
    traces: Traces,
    task: Task | None = None,
    random: Traces | None = None,
    seed: int = 0,
    tell: Tell = lambda _: None,
    notes: tuple[str, ...] = (),
    model_is_true: bool | None = None,
    claimed: float | None = None,
    quick: bool = False,
) -> Audit:
    """The whole audit. `random` are traces of random sensors, which the paper's adversary learns from. Unless told
    otherwise, a model that was not fitted to recordings is taken for the true one: that is checked. `claimed` is the
    confidence that no belief is said to reach, where there is no task to say it. `quick` leaves out the network and
    the learning curves."""
    _check_labels(traces)
    _check_claim(traces, claimed)
    splits, limit = splits_of(traces, seed), _limit(task) or claimed
    everyone = np.concatenate([np.flatnonzero(rows) for rows in splits])
    subject = traces.take(everyone)
    notes = (*notes, *_rare(subject))
    resampler = Resampler(np.unique(subject.person, return_inverse=True)[1], seed)
    found = Evidence(subject, resampler, limit)
    model = task.model if task else None
    true = model is not None and (model.fitted is None if model_is_true is None else model_is_true)
    if traces.likelihood is not None and model is not None:
        tell("exact Bayes")
        found.add_exact(Bayes(model.prior, f"Bayes with the {'true' if true else 'fitted'} model"))
    makers, curve = (_quick(seed), ()) if quick else (_learned(seed, tell), CURVE)
    _attack(found, makers, OWN, [(traces.take(~rows), traces.take(rows)) for rows in splits], curve, seed, tell)
    if random is not None:
        # Merged symbols never came in random traces, but have a place.
        others = replace(random, names=traces.names)
        pairs = [(_others(others, traces, rows), traces.take(rows)) for rows in splits]
        _attack(found, makers, RANDOM, pairs, (), seed, tell)
    observers = [_everything(found), *_seen(found, traces, splits, observers_of(traces), _quick(seed), tell)]
    parts = parts_of(traces)
    by_sensor, by_step = (
        list(_seen(found, traces, splits, [part for part in parts if isinstance(part, kind)], _alone(seed), tell))
        for kind in (SensorAlone, StepAlone)
    )
    people = None if own_units(traces) else len(np.unique(subject.person))
    if people is not None and people < ENOUGH_PEOPLE:
        notes = (*notes, f"With {people} people, intervals are narrower than they should be.")
    kept = task is not None and limit is not None and task.enforcement.promise is Promise.NEVER
    promised = claimed is not None or kept
    passed = list(checks(found, true, promised))
    # Exact Bayes knows what there is to know only if nothing contradicts it.
    trusted = found.exact if true and all(check.passed for check in passed) else None
    believed = found.exact or found.most_bits.end
    bins = calibration(believed.secret, subject.secret, resampler)
    return Audit(
        episodes=len(subject),
        people=people,
        splits=len(splits),
        secrets=traces.names.secrets,
        useful=traces.names.useful,
        guess_secret=1 / len(np.unique(subject.secret)),
        guess_useful=1 / len(np.unique(subject.useful)),
        limit=limit,
        claimed=promised and limit is not None,
        enforce=task.enforcement.name if task else None,
        contenders=len(found.tried),
        strongest=found.strongest.attack,
        headline=found.headline,
        surest=found.surest,
        attacks=found.attacks,
        observers=observers,
        by_sensor=by_sensor,
        by_step=by_step,
        over_time=found.moments,
        learning=found.learning,
        linked=_linked(found) if people is not None else None,
        calibration=bins,
        calibration_error=calibration_error(bins),
        calibrated="exact Bayes" if found.exact else found.most_bits.attack.attacker,
        channels=channel_leakage(model) if model else [],
        leakage=policy_leakage(trusted.secret, model.prior.sum(1), resampler) if trusted and model else None,
        checks=passed,
        notes=list(notes),
    )


def _learned(seed: int, tell: Tell) -> list[Make]:
    """All who learn."""
    return [*_quick(seed), lambda: Lstm(seed, lambda done, loss: tell(f"LSTM: update {done}, loss {loss:.3f}"))]


def _quick(seed: int) -> list[Make]:
    """Those who need no network."""
    return [*_alone(seed), lambda: BoostedTrees(seed)]


def _alone(seed: int) -> list[Make]:
    """Those who learn in no time: for the many parts of traces that are looked at alone."""
    return [Counting, lambda: Logistic(seed), lambda: NGrams(seed)]


def _attack(
    found: Evidence,
    makers: list[Make],
    fitted_on: Fitted,
    pairs: list[tuple[Traces, Traces]],
    curve: tuple[float, ...],
    seed: int,
    tell: Tell,
) -> None:
    """Everybody who learns: from the first traces of each pair, or shares of them, and judged on the second."""
    learned = int(np.mean([len(others) for others, _ in pairs]))
    for make in makers:
        parts = [(make(), own) for _, own in pairs]
        name = parts[0][0].name
        for share in curve:
            tell(f"{name} learns from {share:.0%} of {fitted_on}")
            count = max(FEWEST_LEARNED, int(share * learned))
            _fit(parts, [_some(others, count, seed) for others, _ in pairs])
            found.learned(found.add_part(parts, fitted_on, episodes=count), count)
        tell(f"{name} learns from {fitted_on}")
        _fit(parts, [others for others, _ in pairs])
        found.add_fitted(parts, fitted_on)
        if curve:
            found.learned(found.attacks[-1], learned)


def _fit(parts: Parts, learned_from: Iterable[Traces]) -> None:
    for (attacker, _), others in zip(parts, learned_from, strict=True):
        attacker.fit(others)


def _some(traces: Traces, count: int, seed: int) -> Traces:
    """So many episodes at random; a larger number holds those of a smaller one."""
    return traces.take(np.random.default_rng(seed).permutation(len(traces))[:count])


def _everything(found: Evidence) -> Attack:
    """The strongest of those who see everything and learned from the policy's own traces."""
    own = [attack for attack in found.attacks if attack.fitted_on == OWN]
    return max(own, key=lambda attack: attack.secret.balanced.value)


def _seen(
    found: Evidence, traces: Traces, splits: Splits, observers: list[Observer], makers: list[Make], tell: Tell
) -> Iterator[Attack]:
    """The strongest attacker of each observer."""
    for observer in observers:
        tell(f"who sees {observer.name}")
        seen, attacks = observer.sees(traces), []
        for make in makers:
            parts = [(make(), seen.take(rows)) for rows in splits]
            _fit(parts, [seen.take(~rows) for rows in splits])
            attacks.append(found.add_part(parts, OWN, observer.name))
        yield max(attacks, key=lambda attack: attack.secret.balanced.value)


def _limit(task: Task | None) -> float | None:
    """L_B, where there is one."""
    return None if task is None else task.bound.posterior_limit(len(task.model.secrets))


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


def _linked(found: Evidence) -> Linked | None:
    """Who is found out by adding up all episodes, if everybody has one secret for good."""
    subject, unit = found.subject, found.resampler.unit
    first = np.unique(unit, return_index=True)[1]
    lasting = subject.secret[first]
    if len(first) == len(unit) or (subject.secret != lasting[unit]).any():
        return None
    best = None
    for one in found.whole:
        end = one.end
        gained = np.log(np.maximum(end.secret, LEAST_BELIEF)) - np.log(np.maximum(end.secret_before, LEAST_BELIEF))
        total = np.stack([np.bincount(unit, column) for column in gained.T], axis=1)
        right = rate(total.argmax(1) == lasting)
        if best is None or right.value > best.secret.value:
            best = Linked(title(one.attack), len(first), len(unit) / len(first), right)
    return best


def _others(source: Traces, traces: Traces, judged_rows: Bool[np.ndarray, " N"]) -> Traces:
    """Traces of people who are not judged. Where episodes are people, others' random episodes are others anyway."""
    return source if own_units(traces) else source.take(~np.isin(source.person, traces.person[judged_rows]))
