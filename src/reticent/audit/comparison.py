"""The same utility by simpler means: what baselines give away of the secret when they tell as much of the useful value.

A baseline releases readings as they are, with no bound, and stops when the provider is sure enough of U. Each
threshold is a point (accuracy on U, accuracy on S) of exact Bayes; between points the curve is drawn straight, which a
coin that chooses between two thresholds attains.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from reticent.audit.attackers import confidence_of
from reticent.audit.measures import balanced_accuracy
from reticent.policy.heuristics import InformationGain, OneStepLookahead
from reticent.policy.policy import Policy, RandomSensor
from reticent.problem.bound import NO_BOUND
from reticent.problem.task import Task
from reticent.process.release import ReleaseProcess
from reticent.process.rollout import simulate

THRESHOLDS = (0.0, 0.5, 0.7, 0.85, 0.95, 0.99)
EPISODES = 8_192


@dataclass(frozen=True)
class Point:
    """One baseline with one threshold: balanced accuracies of exact Bayes, and mean releases. Estimates."""

    policy: str
    threshold: float
    useful: float
    secret: float
    releases: float


@dataclass(frozen=True)
class SameUtility:
    """What a baseline that is as accurate on U gives away of S; none where it cannot be as accurate."""

    policy: str
    secret: float | None


def baseline_points(task: Task, seed: int) -> list[Point]:
    """Every baseline at every threshold, without bound."""
    process = ReleaseProcess(replace(task, bound=NO_BOUND, enforce="penalty"))
    start = jnp.asarray(0.0)
    baselines: dict[str, Policy] = {
        "random sensor": RandomSensor(start),
        "one-step lookahead": OneStepLookahead(process, start),
        "information on U less that on S": InformationGain(process, jnp.asarray(1.0), start),
    }
    points = []
    for name, policy in baselines.items():
        for threshold in THRESHOLDS:
            stops = eqx.tree_at(lambda p: p.threshold, policy, jnp.asarray(threshold))
            records = simulate(process, stops.act, EPISODES, seed)
            believed = confidence_of(np.asarray(records.belief), task.model.prior)
            useful, secret = (
                balanced_accuracy(believed.fair_guess(label), np.asarray(getattr(records, label)))
                for label in ("useful", "secret")
            )
            points.append(Point(name, threshold, useful, secret, float(records.releases.mean())))
    return points


def at_same_utility(points: list[Point], useful: float) -> list[SameUtility]:
    """Each baseline's accuracy on S where its accuracy on U is that of the policy."""
    found = []
    for name in dict.fromkeys(point.policy for point in points):
        curve = sorted((point.useful, point.secret) for point in points if point.policy == name)
        on_useful, on_secret = np.array(curve).T
        reached = on_useful[0] <= useful <= on_useful[-1]
        found.append(SameUtility(name, float(np.interp(useful, on_useful, on_secret)) if reached else None))
    return found
