"""The moving half of the demo: an hour of each person, in which both labels change again and again.

Their recordings are played in the order of a Markov chain: real readings, chosen dynamics. What a provider believes of
each moment is computed from what was sent alone, by the filter and the smoother of the model.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reticent.belief.bayes import secret_marginal
from reticent.belief.chain import filtered, smoothed
from reticent.data.switched import switched
from reticent.data.trajectories import Trajectories, together
from reticent.demo.recorded import people, problem
from reticent.evaluate.monitoring import summarise_days
from reticent.guard.quadratic import QuadraticKernels
from reticent.policy.ongoing import CheapestStep
from reticent.problem.bound import Bound, Confidence, Unbounded
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import Coarsen, Enforcement, Penalty
from reticent.problem.model import Model
from reticent.problem.monitoring import Monitoring
from reticent.problem.objective import Objective
from reticent.process.days import play_days
from reticent.process.ongoing import OngoingProcess
from reticent.process.source import FromTrajectories

Tell = Callable[[str], None]
# A reading every five seconds; in an elevator, or not, for four minutes on average, still or moving for fifty seconds.
SECONDS_PER_STEP, SECRET_CHANGES, USEFUL_CHANGES = 5, 0.02, 0.1
# A reading costs next to nothing here, and each is weak: what counts is how well U is known at every moment.
PRICES = Objective(time_cost=0.01, error_penalty=10.0)


@dataclass(frozen=True)
class Effort:
    """How much is played: hours of every person, each of so many steps, under this bound."""

    hours: int = 3
    steps: int = 720
    limit: float = 0.6
    seed: int = 0


DEFAULT, PARTS = Effort(), 3


def moving(tell: Tell, effort: Effort = DEFAULT) -> dict[str, Any]:
    """What the page shows of it, as a plain dictionary."""
    model = problem().moving(_changes())
    lives = _lives(model, effort)
    bounded = _task(model, Confidence(effort.limit), Coarsen(QuadraticKernels()), effort)
    tell("an hour of each person without protection")
    played = {"none": _played(OngoingProcess(_task(model, Unbounded(), Penalty(), effort)), lives, effort)}
    tell("the same under a guard of the present alone")
    played["present"] = _played(OngoingProcess.keeping_the_present_only(bounded), lives, effort)
    tell("the same under the guarantee")
    played["whole"] = _played(OngoingProcess(bounded), lives, effort)
    return {
        "limit": effort.limit,
        "seconds_per_step": SECONDS_PER_STEP,
        "minutes_per_secret": SECONDS_PER_STEP / SECRET_CHANGES / 60,
        "seconds_per_useful": SECONDS_PER_STEP / USEFUL_CHANGES,
        "days": effort.hours * len(lives.people),
        "rows": {name: found["row"] for name, found in played.items()},
        "hour": {name: found["hour"] for name, found in played.items()},
    }


def _changes() -> dict[str, Any]:
    """Both labels change by themselves, each to the other value."""
    return {
        name: [[1 - chance, chance], [chance, 1 - chance]]
        for name, chance in (("secret", SECRET_CHANGES), ("useful", USEFUL_CHANGES))
    }


def _lives(model: Model, effort: Effort) -> Trajectories:
    """Some hours of every person."""
    recorded = people(model)
    codes = Codebook.of(model).codes(recorded.values)
    anywhere = np.full(model.prior.shape, 1 / model.prior.size)
    hours = [
        switched(recorded, codes, model.dynamics, anywhere, effort.steps, effort.seed + hour)
        for hour in range(effort.hours)
    ]
    return together(hours)


def _task(model: Model, bound: Bound, enforcement: Enforcement, effort: Effort) -> Monitoring:
    return Monitoring(model, bound, PRICES, enforcement, effort.steps)


def _played(process: OngoingProcess, lives: Trajectories, effort: Effort) -> dict[str, Any]:
    """What is known on average, and the first hour moment by moment."""
    replayed = process.reading_from(FromTrajectories.of(lives, effort.steps))
    days = play_days(replayed, CheapestStep(process).act, effort.hours * len(lives.people), effort.seed)
    found = summarise_days(process, days, effort.seed)
    row = {
        "useful": asdict(found.accuracy_useful),
        "secret": asdict(found.accuracy_secret),
        "hindsight": asdict(found.accuracy_secret_hindsight),
        "releases": found.releases.value,
        "highest_now": found.highest_filter,
        "highest": max(found.highest_filter, found.highest_smoother, found.highest_prediction),
    }
    prior, moves = process.task.model.prior, process.task.model.dynamics
    sent = days.likelihood[:1]
    beliefs = {"now": filtered(prior, moves, sent), "hindsight": smoothed(prior, moves, sent)}
    hour = {name: secret_marginal(belief)[0, :, -1].tolist() for name, belief in beliefs.items()}
    return {"row": row, "hour": {**hour, "secret": days.secret[0].tolist()}}
