"""What a policy does in a problem that goes on, estimated over simulated days.

What is known of the secret is computed from what was sent alone, by the filter, the smoother and the predictions of
`reticent.belief.chain`: nothing that the guard keeps enters.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from reticent.belief.bayes import secret_marginal, useful_marginal
from reticent.belief.chain import Sequences, filtered, predict, smoothed
from reticent.belief.trajectory import directed_bits
from reticent.errors import InputError
from reticent.evaluate.estimate import CONFIDENCE_LEVEL, Estimate, mean
from reticent.policy.policy import Policy
from reticent.process.days import Day, play_days
from reticent.process.ongoing import OngoingProcess
from reticent.process.source import FromModel

# The course of a day is told in so many parts.
PARTS = 12
# How many steps ahead predictions are looked at.
AHEAD = 60


@dataclass(frozen=True)
class Monitored:
    """What a policy does over simulated days: means with their 95 % intervals, and the course of the day.

    `monitor` makes it, of so many `days` of so many `steps` with this `seed`. `cost` is per step under the objective.
    `accuracy_useful` is how often the provider's best guess of U_t, with all that was sent up to t, is right;
    `accuracy_secret` the same of S_t, and `accuracy_secret_hindsight` with all that was sent until the end of the day.
    `releases` is the share of steps in which something is sent, `locked` that in which no sensor is allowed.
    `spent_bits` is the information about the secret of the moment, per step, and `directed_bits` that about all secrets
    up to the moment (None where lives are played that do not follow the chain).

    `highest_filter`, `highest_smoother` and `highest_prediction` are the largest posterior of a secret that occurred:
    of the present, of any moment with all that was sent until the end of the day, and of up to 60 steps ahead; by the
    model or by any other of its panel.

    `course` tells the day in twelve parts: the share of silent steps, of locked ones, the accuracy on U_t, and the bits
    about the secret of the moment that a step says, of each. `days_locked` is the share of days that lock at all; they
    do so after `lock_step` steps first (the median; None where none locks), for `lock_length` steps in the mean.

    Example:
        >>> from reticent.problem.synthetic import two_binary_sensors
        >>> moves = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.8, 0.2], [0.2, 0.8]]}
        >>> task = rt.Monitoring(two_binary_sensors().moving(moves), rt.Confidence(0.7), horizon=100)
        >>> process = rt.OngoingProcess(task)
        >>> found = rt.monitor(process, rt.CheapestStep(process), days=4)
        >>> max(found.highest_filter, found.highest_smoother, found.highest_prediction) < 0.7
        True
    """

    days: int
    steps: int
    seed: int
    cost: Estimate
    accuracy_useful: Estimate
    accuracy_secret: Estimate
    accuracy_secret_hindsight: Estimate
    releases: Estimate
    locked: Estimate
    spent_bits: Estimate
    directed_bits: Estimate | None
    highest_filter: float
    highest_smoother: float
    highest_prediction: float
    course: list[dict[str, Any]]
    days_locked: float
    lock_step: float | None
    lock_length: float | None

    @property
    def silence(self) -> str:
        """When a day typically locks, and when it is free again, in words."""
        if self.lock_step is None or self.lock_length is None:
            return "No day locks: at every step some sensor may speak."
        return (
            f"{100 * self.days_locked:.0f} % of days lock: first after {self.lock_step:.0f} steps (median), and free "
            f"again {self.lock_length:.1f} steps later (mean). Locked are {100 * self.locked.value:.1f} % of all "
            f"steps, and {100 * self.course[-1]['locked']:.1f} % of those at the end of the day."
        )

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        return {"kind": "estimate", "level": CONFIDENCE_LEVEL, **asdict(self), "silence": self.silence}


def monitor(process: OngoingProcess, policy: Policy, days: int = 100, seed: int = 0) -> Monitored:
    """Simulate independent days of a policy and summarise them. Deterministic given the seed.

    Args:
        process: The process that goes on.
        policy: Who chooses the sensor, or silence.
        days: How many days; each has the horizon's number of steps.
        seed: Of the days.

    Returns:
        What it does, and what it lets others know.

    Example:
        >>> from reticent.problem.synthetic import two_binary_sensors
        >>> moves = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.8, 0.2], [0.2, 0.8]]}
        >>> task = rt.Monitoring(two_binary_sensors().moving(moves), rt.Confidence(0.7), horizon=100)
        >>> process = rt.OngoingProcess(task)
        >>> rt.monitor(process, rt.CheapestStep(process), days=4).steps
        100
    """
    check_days(days)
    return summarise_days(process, play_days(process, policy.act, days, seed), seed)


def check_days(days: int) -> None:
    """Refuse too few days for an interval."""
    if days < 2:
        raise InputError(f"An interval needs at least two days; got {days}. Simulate more.")


def summarise_days(process: OngoingProcess, day: Day, seed: int) -> Monitored:
    """Means over days, and what is known of the secret by exact computation from what was sent."""
    model = process.task.model
    now, hindsight = (look(model.prior, model.dynamics, day.likelihood) for look in (filtered, smoothed))
    right = useful_marginal(now).argmax(-1) == day.useful
    first, length = _locks(day.locked)
    return Monitored(
        days=len(day.cost),
        steps=day.cost.shape[1],
        seed=seed,
        cost=_by_day(day.cost),
        accuracy_useful=_by_day(right),
        accuracy_secret=_by_day(secret_marginal(now).argmax(-1) == day.secret),
        accuracy_secret_hindsight=_by_day(secret_marginal(hindsight).argmax(-1) == day.secret),
        releases=_by_day(day.sent),
        locked=_by_day(day.locked),
        spent_bits=_by_day(day.bits),
        directed_bits=_directed(process, day),
        highest_filter=max(_highest(filtered(*known)) for known in _providers(process, day)),
        highest_smoother=max(_highest(smoothed(*known)) for known in _providers(process, day)),
        highest_prediction=max(_highest_ahead(*known) for known in _providers(process, day)),
        course=_course({"silent": ~day.sent, "locked": day.locked, "accuracy_useful": right, "bits": day.bits}),
        days_locked=float(day.locked.any(1).mean()),
        lock_step=first,
        lock_length=length,
    )


def _by_day(values: Any) -> Estimate:
    return mean(np.asarray(values, float).mean(1))


def _directed(process: OngoingProcess, day: Day) -> Estimate | None:
    if not isinstance(process.source, FromModel):
        return None
    model = process.task.model
    return _by_day(directed_bits(model.prior, model.dynamics, day.likelihood, day.secret))


def _highest(beliefs: Sequences) -> float:
    return float(secret_marginal(beliefs).max())


def _providers(process: OngoingProcess, day: Day) -> list[tuple[Any, Any, Any]]:
    """What each provider goes by: its prior, its transition, and the likelihoods of what was sent."""
    models = process.task.model, *process.task.panel
    told = [day.likelihood, *([] if day.panel is None else np.moveaxis(day.panel, 2, 0))]
    return [(model.prior, model.dynamics, own) for model, own in zip(models, told, strict=False)]


def _highest_ahead(
    prior: Float[np.ndarray, "S U"], moves: Float[np.ndarray, "S U S U"], likelihoods: Sequences
) -> float:
    beliefs, highest = filtered(prior, moves, likelihoods), 0.0
    for _ in range(AHEAD):
        beliefs = predict(beliefs, moves)
        highest = max(highest, _highest(beliefs))
    return highest


def _course(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The means over days of each part of the day, with the step at which it begins."""
    steps = next(iter(values.values())).shape[1]
    parts = np.array_split(np.arange(steps), min(PARTS, steps))
    return [{"step": int(p[0]), **{name: float(each[:, p].mean()) for name, each in values.items()}} for p in parts]


def _locks(locked: Any) -> tuple[float | None, float | None]:
    """After how many steps days lock first (median of those that do), and how long locked stretches are (mean)."""
    if not locked.any():
        return None, None
    began = locked & ~np.pad(locked, ((0, 0), (1, 0)))[:, :-1]
    days = locked[locked.any(1)]
    return float(np.median(days.argmax(1))), float(locked.sum() / began.sum())
