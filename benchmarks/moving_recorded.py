"""A secret that moves: real readings of people never learned from, under the guard, and attackers who look back."""

import sys
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from benchmarks.recordings import data
from reticent.audit.moving_audit import audit_moving
from reticent.audit.moving_days import traces_of_days
from reticent.audit.trial import AuditOptions
from reticent.data.load import Source, load
from reticent.data.readings import Readings, readings, uniform_prior
from reticent.data.switched import switched
from reticent.data.trajectories import Trajectories, together, trajectories
from reticent.demo.moving import PRICES
from reticent.evaluate.monitoring import summarise_days
from reticent.fit.model import fit_model
from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import Penalty
from reticent.problem.model import Model
from reticent.problem.monitoring import Monitoring
from reticent.problem.objective import Objective
from reticent.process.days import Day, play_days
from reticent.process.ongoing import OngoingProcess
from reticent.process.source import FromTrajectories
from reticent.solve.long_run import weighted

CODES, SEED = 10, 0
WEAK = Objective(time_cost=0.0001, error_penalty=10.0)


@dataclass(frozen=True)
class Lived:
    """Recorded lives of people whom the model was not fitted to, cut into days of so many steps."""

    name: str
    model: Model
    lives: Trajectories
    steps: int
    limits: tuple[float, ...]
    slots: int | None
    prices: Objective = PRICES


def dsa() -> Measured:
    """Switched by a chosen chain: in an elevator or not for four minutes, still or moving for fifty seconds."""
    read = readings(load(Source("dsa", data())))
    fitted, others = _halves(read)
    moves = {name: [[1 - p, p], [p, 1 - p]] for name, p in (("secret", 0.02), ("useful", 0.1))}
    model = fit_model(read.of(fitted), CODES, SEED, uniform_prior(read.of(fitted))).moving(moves)
    own, anywhere = read.of(others), np.full(model.prior.shape, 1 / model.prior.size)
    codes = Codebook.of(model).codes(own.values)
    hours = [switched(own, codes, model.dynamics, anywhere, 720, SEED + hour) for hour in range(4)]
    lived = Lived(
        "still or moving against elevator (DSA, switched)", model, together(hours), 720, (0.6, 0.7, 0.8), None
    )
    note = (
        f"DSA, right wrist: a model of {len(fitted)} people, {len(others)} others measured, four hours each with a "
        "reading every five seconds. Their own recordings are played in the order of a Markov chain: real readings, "
        "chosen dynamics."
    )
    return _rows(lived), [note, *NOTES]


def extrasensory() -> Measured:
    """Everyday life, a minute a step; the chain is fitted."""
    read = readings(load(Source("extrasensory", data())))
    fitted, others = _halves(read)
    model = fit_model(read.of(fitted), 25, SEED)
    own = read.of(others)
    lives = trajectories(own, Codebook.of(model).codes(own.values))
    lived = Lived("posture against home (ExtraSensory)", model, lives, 120, (0.7, 0.8, 0.9), 256, WEAK)
    note = (
        f"ExtraSensory: a model of {len(fitted)} people with its transition, {len(others)} others measured, in "
        "unbroken stretches of two hours. The secret moves so slowly that by default thousands of moments "
        "would be kept open; here 256 are, and the device is silent where they do not suffice."
    )
    return _rows(lived), [note, *NOTES]


NOTES = [
    "Policy: lookahead for the long run with weights of one, kernels alike; lambda 10, C_T 0.01 (DSA) and 0.0001 "
    "(ExtraSensory, whose readings say little one by one).",
    "Attackers who look back: the smoother of the model, a refitted hidden Markov model and boosted trees on windows, "
    "the learned ones trained on what was sent of the other people measured. Accuracies are balanced; that on U at the "
    "time by the model's filter is not. Highest posteriors by the model, of any moment at any time.",
]


def _halves(read: Readings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """To fit to, and to measure."""
    people = [int(person) for person in np.unique(read.person)]
    return tuple(people[: len(people) // 2]), tuple(people[len(people) // 2 :])


def _rows(lived: Lived) -> list[dict[str, Any]]:
    task = Monitoring(lived.model, Unbounded(), lived.prices, Penalty(), lived.steps)
    free = weighted(task, 1.0, 1.0)
    rows = [_row(lived, None, free.process, free.policy)]
    for limit in lived.limits:
        bounded = Monitoring(lived.model, Confidence(limit), lived.prices, horizon=lived.steps, slots=lived.slots)
        found = weighted(bounded, 1.0, 1.0)
        rows.append(_row(lived, limit, found.process, found.policy))
    return rows


def _row(lived: Lived, limit: float | None, process: OngoingProcess, policy: Any) -> dict[str, Any]:
    source = FromTrajectories.of(lived.lives, lived.steps)
    day = _each_once(process.reading_from(source), policy, source)
    found = summarise_days(process.reading_from(source), day, SEED)
    first = np.asarray(source.starts)
    traces = traces_of_days(process.task, day)
    traces = replace(traces, person=np.repeat(lived.lives.person[first], lived.steps))
    attacked = audit_moving(traces, lived.model, limit, AuditOptions(SEED, quick=True))
    useful = max((attack.useful.balanced for attack in attacked.attacks), key=lambda estimate: estimate.value)
    row = {
        "recordings": lived.name,
        "confidence_limit": limit,
        "people": attacked.people,
        "days": len(first),
        **interval("accuracy_useful_at_the_time", found.accuracy_useful),
        **interval("balanced_accuracy_useful_strongest", useful),
        "strongest_on_secret": attacked.strongest.attacker,
        **interval("balanced_accuracy_secret_strongest", attacked.headline),
        **interval("confidence_justified", attacked.justified.right),
        "releases_per_step": found.releases.value,
        "locked_share": found.locked.value,
        "highest_posterior": max(found.highest_filter, found.highest_smoother, found.highest_prediction),
    }
    print(row, file=sys.stderr, flush=True)
    return row


def _each_once(process: OngoingProcess, policy: Any, source: FromTrajectories) -> Day:
    """Every recorded day once, in their order."""
    days = [
        play_days(process.reading_from(replace_starts(source, start)), policy.act, 1, SEED + place)
        for place, start in enumerate(source.starts)
    ]
    return jax.tree.map(lambda *each: np.concatenate(each), *days)


def replace_starts(source: FromTrajectories, start: Any) -> FromTrajectories:
    """The same recordings with one day only."""
    return FromTrajectories(source.codes, source.secret, source.useful, start[None])
