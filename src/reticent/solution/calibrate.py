"""The bound on a model's beliefs with which a claim about people who are still to come can be made: learn then test.

The model's bound holds by construction for the providers of its panel, whoever is measured. What attackers get of real
people depends on how well the model fits them. So policies of several model bounds are tried on people whom the model
was not fitted to, and the most useful of those is taken for which the claim stands (`reticent.evaluate.claim`).
Attackers learn from the people of the model: to them, those who are tried are draws of the same kind as all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from reticent.audit.panel import Progress
from reticent.audit.people import PeopleFound, judged_by
from reticent.audit.play import play
from reticent.audit.traces import Traces
from reticent.audit.trial import silent
from reticent.data.episodes import episodes_of
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.evaluate.claim import Claim, Wanted, grid
from reticent.fit.tempering import tempered
from reticent.problem.bound import Confidence
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import Coarsen, Enforcement
from reticent.problem.model import Model
from reticent.problem.objective import Objective
from reticent.problem.task import Task
from reticent.process.source import FromCodes
from reticent.solution.solution import Released, Solution
from reticent.solution.solve import solve


@dataclass(frozen=True)
class Tries:
    """What is tried: `bounds` bounds evenly up to the limit, each with readings that count `sharpen` times as much for
    the providers of a panel; and how: episodes of at most `horizon` releases, rounds of value iteration."""

    bounds: int = 5
    sharpen: tuple[float, ...] = (1.0,)
    episodes: int = 4_096
    horizon: int = 10
    rounds: int = 40
    seed: int = 0
    objective: Objective = Objective()  # noqa: RUF009  (frozen)
    enforcement: Enforcement = Coarsen()  # noqa: RUF009  (frozen)


@dataclass(frozen=True, eq=False)
class Tried:
    """One policy, and what attackers got of each person."""

    bound: float
    sharpen: float
    solution: Released
    found: PeopleFound
    accepted: bool

    @property
    def useful(self) -> float:
        """Mean over people of how well the useful value is named."""
        return float(np.mean([person.useful.value for person in self.found.people]))


@dataclass(frozen=True, eq=False)
class Calibrated:
    """All that was tried, and the most useful policy of which the claim can be made, if there is one."""

    wanted: Wanted
    tried: list[Tried]

    @property
    def best(self) -> Tried | None:
        """The accepted policy that tells most of the useful value."""
        return max((each for each in self.tried if each.accepted), key=lambda each: each.useful, default=None)

    @property
    def claim(self) -> Claim | None:
        """What can be claimed of it."""
        best = self.best
        return None if best is None else Claim.of(self.wanted, len(best.found.over), len(best.found.people))

    @property
    def solution(self) -> Solution | None:
        """The policy, which carries the claim into its file."""
        if self.best is None or self.claim is None:
            return None
        solution = self.best.solution
        return replace(solution, made={**solution.made, "claim": self.claim.to_json()})


def calibrate(
    model: Model,
    recorded: Readings,
    wanted: Wanted,
    tries: Tries = Tries(),  # noqa: B008  (frozen)
    tell: Progress = silent,
) -> Calibrated:
    """Try the bounds, the most cautious first, on the people of the recordings whom the model was not fitted to."""
    known, others = _sides(model, recorded)
    wanted = replace(wanted, sequences=len(tries.sharpen))
    wanted.check(len(np.unique(others.person)))
    least = _least(model)
    if not least < wanted.limit:
        raise InputError(
            f"The limit {wanted.limit:g} is not above {least:.6g}, the largest prior probability of a secret: nobody "
            "who guesses by it would keep to the limit. Claim a larger one."
        )
    tried = []
    for sharpen in tries.sharpen:
        tried += _sequence(model, sharpen, (known, others), wanted, tries, tell)
    return Calibrated(wanted, tried)


def sharper(model: Model, factor: float) -> Model:
    """The model with a panel for whom every reading counts so many times as much: itself, and those it has."""
    if factor == 1:
        return model
    return model.with_panel(
        [
            {"prior": each.prior, "channel": tempered(each.channel, factor, None), "transition": each.transition}
            for each in (model, *model.panel)
        ]
    )


def _sequence(
    model: Model,
    sharpen: float,
    people: tuple[Readings, Readings],
    wanted: Wanted,
    tries: Tries,
    tell: Progress,
) -> Iterator[Tried]:
    """One policy after the other, until one is not accepted."""
    for bound in grid(_least(model), wanted.limit, tries.bounds):
        tell(f"bound {bound:.3g}, sharpened by {sharpen:g}")
        task = Task(sharper(model, sharpen), Confidence(bound), tries.objective, tries.enforcement, tries.horizon)
        solution = solve(task, "value-iteration", tries.seed, rounds=tries.rounds)
        assert isinstance(solution, Released)
        found = _found(solution, people, wanted.limit, tries)
        accepted = wanted.accepts(len(found.over), len(found.people))
        yield Tried(bound, sharpen, solution, found, accepted)
        if not accepted:
            return


def _least(model: Model) -> float:
    """The largest prior probability of a secret, of any provider."""
    return max(float(each.prior.sum(1).max()) for each in (model, *model.panel))


def _found(solution: Released, people: tuple[Readings, Readings], limit: float, tries: Tries) -> PeopleFound:
    learned_from, traces = (_traces(solution, own, tries, seed) for seed, own in enumerate(people, tries.seed))
    return judged_by(learned_from, traces, people[1].people, limit)


def _traces(solution: Released, recorded: Readings, tries: Tries, seed: int) -> Traces:
    task = solution.task
    codes = jnp.asarray(Codebook.of(task.model).codes(recorded.values))
    process = solution.process.reading_from(FromCodes(codes, episodes_of(recorded, task.horizon)))
    return play(task, process, solution.policy, tries.episodes, seed, recorded)[1]


def _sides(model: Model, recorded: Readings) -> tuple[Readings, Readings]:
    """The people whom the model was fitted to, and the others."""
    names = set((model.fitted or {}).get("people", ()))
    known = [i for i, person in enumerate(recorded.people) if person in names]
    others = [i for i in np.unique(recorded.person).tolist() if i not in known]
    if not known:
        raise InputError("None of the people whom the model was fitted to is in these recordings. Give those it is of.")
    return recorded.of(known), recorded.of(others)
