"""How well attackers name the secret of each person, to whom the others are strangers.

A bound that holds on average over people may be far exceeded for some. So each person is judged alone: by attackers who
learned from the others, and by those who have recordings of this person, too, from another half of every stream.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.audit.classifiers import retrained
from reticent.audit.posterior import Label, Posterior
from reticent.audit.traces import Traces, joined
from reticent.data.readings import Readings
from reticent.evaluate.estimate import Estimate, rate

# Posteriors of several attackers, by name: learned from the first traces, about the second.
Attackers = Callable[[Traces, Traces], dict[str, Posterior]]


@dataclass(frozen=True)
class Person:
    """How well one person's labels are named by the attacker who does it best: a mean over the classes she has.

    Intervals are over her episodes alone. `knowing` is of those who have recordings of her; none where none were made.
    """

    name: str
    episodes: int
    attacker: str
    secret: Estimate
    useful: Estimate
    knowing: Estimate | None = None


@dataclass(frozen=True)
class PeopleFound:
    """The verdict over people: each of them, and how many are over a limit."""

    limit: float | None
    people: list[Person]

    @property
    def over(self) -> list[Person]:
        """Whose secret is named right in more than the limit."""
        return [] if self.limit is None else [each for each in self.people if each.secret.value > self.limit]

    @property
    def worst(self) -> Person:
        """Whose secret is named right most often."""
        return max(self.people, key=lambda each: each.secret.value)

    def sentences(self) -> Iterator[str]:
        """The verdict in words."""
        worst = self.worst
        if self.limit is not None:
            yield (
                f"Over people: {len(self.over)} of {len(self.people)} have their secret named right in more than "
                f"{self.limit:g} of the cases."
            )
        yield (
            f"The worst is {worst.name!r}: {100 * worst.secret.value:.1f} % [{100 * worst.secret.low:.1f}, "
            f"{100 * worst.secret.high:.1f}] ({worst.attacker}); the mean over people is "
            f"{100 * np.mean([each.secret.value for each in self.people]):.1f} %."
        )
        known = [each.knowing.value - each.secret.value for each in self.people if each.knowing is not None]
        if known:
            yield (
                f"Who has recordings of the person learns {100 * np.mean(known):+.1f} points more on average, "
                f"{100 * max(known):+.1f} of the one for whom it helps most."
            )


def strangers(
    traces: Traces, names: tuple[str, ...], limit: float | None, attackers: Attackers = retrained
) -> PeopleFound:
    """Each person, judged by attackers who learned from the traces of all others."""
    found = []
    for person in np.unique(traces.person).tolist():
        own = traces.person == person
        found.append(_judged(names[person], attackers(traces.take(~own), traces.take(own)), traces.take(own)))
    return PeopleFound(limit, found)


def judged_by(
    learned_from: Traces,
    traces: Traces,
    names: tuple[str, ...],
    limit: float | None,
    attackers: Attackers = retrained,
) -> PeopleFound:
    """Each person, judged by attackers who learned from traces of none of them."""
    said = attackers(learned_from, traces)
    found = []
    for person in np.unique(traces.person).tolist():
        own = traces.person == person
        found.append(_judged(names[person], {name: _of(each, own) for name, each in said.items()}, traces.take(own)))
    return PeopleFound(limit, found)


def with_recordings(
    found: PeopleFound, earlier: Traces, later: Traces, names: tuple[str, ...], attackers: Attackers = retrained
) -> PeopleFound:
    """The same with attackers who know all others and this person's `earlier` recordings, tried on `later` ones."""
    people = []
    for each in found.people:
        person = names.index(each.name)
        own = later.take(later.person == person)
        everybody = joined(earlier, later.take(later.person != person))
        knowing = _judged(each.name, attackers(everybody, own), own).secret
        people.append(replace(each, knowing=knowing))
    return PeopleFound(found.limit, people)


def halves(recorded: Readings) -> tuple[Readings, Readings]:
    """The first and the second half of every stream."""
    left = recorded.left
    first = np.append(True, recorded.stream[1:] != recorded.stream[:-1])
    length = left[np.flatnonzero(first)[np.cumsum(first) - 1]]
    early = left > length / 2
    return _rows(recorded, early), _rows(recorded, ~early)


def _rows(recorded: Readings, kept: Bool[np.ndarray, " N"]) -> Readings:
    rows = {name: value[kept] for name, value in vars(recorded).items() if isinstance(value, np.ndarray)}
    return replace(recorded, **rows)


def _judged(name: str, said: dict[str, Posterior], own: Traces) -> Person:
    by_attacker = {attacker: _balanced(each.fair_guess("secret"), own, "secret") for attacker, each in said.items()}
    best = max(by_attacker, key=lambda attacker: by_attacker[attacker].value)
    useful = [_balanced(each.fair_guess("useful"), own, "useful") for each in said.values()]
    return Person(name, len(own), best, by_attacker[best], max(useful, key=lambda estimate: estimate.value))


def _balanced(guess: Int[np.ndarray, " N"], own: Traces, label: Label) -> Estimate:
    """The mean over her classes of how often each is named right; half-widths add as those of independent rates."""
    truth = getattr(own, label)
    rates = [rate(guess[truth == value] == value) for value in np.unique(truth).tolist()]
    value = float(np.mean([each.value for each in rates]))
    low, high = (_distance([getattr(each, end) - each.value for each in rates]) for end in ("low", "high"))
    return Estimate(value, value - low, value + high, rates[0].interval)


def _distance(apart: list[float]) -> float:
    return float(np.sqrt(np.square(apart).sum()) / len(apart))


def _of(said: Posterior, rows: Bool[np.ndarray, " N"]) -> Posterior:
    values: list[Float[np.ndarray, "N C"]] = [value[rows] for value in vars(said).values()]
    return Posterior(*values)
