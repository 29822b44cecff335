"""The same utility by simpler means: what baselines give away of the secret when they tell as much of the useful value.

A baseline releases readings as they are, or by a mechanism that is the same at every step (local differential privacy,
the privacy funnel), with no bound, and stops when the provider is sure enough of U. Each threshold is a point (accuracy
on U, accuracy on S) of exact Bayes; between points the curve is drawn straight, which a coin that chooses between two
thresholds attains.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from reticent.audit.exact_bayes import ExactBayes
from reticent.audit.measures import Resampler, balanced
from reticent.audit.play import play
from reticent.audit.posterior import Posterior
from reticent.audit.traces import Traces
from reticent.evaluate.estimate import Estimate
from reticent.policy.heuristics import BASELINES, OneStepLookahead, ThresholdRule, threshold_rules
from reticent.problem.bound import Unbounded
from reticent.problem.enforcement import Penalty
from reticent.problem.mechanisms import MECHANISMS
from reticent.problem.task import Task
from reticent.process.process import Process

THRESHOLDS = (0.0, 0.5, 0.7, 0.85, 0.95, 0.99)
EPISODES = 4_096
# One sensor alone may never make the provider sure enough; more readings than this are no simpler means.
LONGEST = 50


@dataclass(frozen=True)
class Point:
    """A baseline in one of its variants with one threshold (or number of readings): balanced accuracies, and mean
    releases. Estimates."""

    policy: str
    variant: str
    threshold: float
    useful: Estimate
    secret: Estimate
    releases: float


@dataclass(frozen=True)
class SameUtility:
    """What a baseline that is as accurate on U gives away of S, in its best variant; none where it cannot be."""

    policy: str
    variant: str
    secret: Estimate | None


def baseline_points(task: Task, seed: int) -> list[Point]:
    """Every baseline at every threshold, without bound; and every mechanism of others, with lookahead of one step."""
    free = replace(task, bound=Unbounded(), enforcement=Penalty(), horizon=min(task.horizon, LONGEST))
    process = Process.of(free)
    points = [
        point
        for name in BASELINES
        for variant, rule in threshold_rules(name, process).items()
        for point in _curve(free, name, variant, rule, seed)
    ]
    for name, variants in MECHANISMS.items():
        for mechanism in variants(task.model):
            replaced = replace(free, model=mechanism.model(task.model))
            points += _curve(replaced, name, mechanism.variant, OneStepLookahead(Process.of(replaced)), seed)
    return points


def _curve(task: Task, name: str, variant: str, rule: ThresholdRule, seed: int) -> Iterator[Point]:
    """One rule at every threshold."""
    # A threshold says when to stop and nothing else, so the highest one passes all others on its way.
    last = eqx.tree_at(lambda p: p.threshold, rule, jnp.asarray(max(THRESHOLDS)))
    _, traces = play(task, Process.of(task), last, EPISODES, seed)
    moments = list(ExactBayes(task.model.prior, "exact Bayes").along(traces))
    resampler = Resampler(np.arange(EPISODES), seed)
    for threshold in THRESHOLDS:
        believed, releases = _stopped(moments, traces, threshold)
        accuracies = both_balanced(believed, traces, resampler)
        yield Point(name, variant, threshold, *accuracies, float(releases.mean()))


def _stopped(moments: list[Posterior], traces: Traces, threshold: float) -> tuple[Posterior, Int[np.ndarray, " N"]]:
    """What is believed where the confidence in U first reaches the threshold or the episode ends, after so many
    releases."""
    sure = np.stack([moment.useful.max(1) >= threshold for moment in moments])
    first = np.where(sure.any(0), sure.argmax(0), len(moments))
    when, episode = np.minimum(first, traces.length), np.arange(len(traces))
    columns = zip(*(vars(moment).values() for moment in moments), strict=True)
    return Posterior(*(np.stack(column)[when, episode] for column in columns)), when


def both_balanced(believed: Posterior, truth: Traces, resampler: Resampler) -> tuple[Estimate, Estimate]:
    """Balanced accuracies on U and on S."""
    useful, secret = (
        balanced(believed.fair_guess(label), np.asarray(getattr(truth, label)), resampler)
        for label in ("useful", "secret")
    )
    return useful, secret


def at_same_utility(points: list[Point], useful: float) -> list[SameUtility]:
    """Each baseline's accuracy on S where its accuracy on U is that of the policy."""
    found = []
    for name in dict.fromkeys(point.policy for point in points):
        variants = dict.fromkeys(point.variant for point in points if point.policy == name)
        curves = {
            variant: _between([p for p in points if (p.policy, p.variant) == (name, variant)], useful)
            for variant in variants
        }
        reached = {variant: secret for variant, secret in curves.items() if secret is not None}
        best = min(reached, key=lambda variant: reached[variant].value, default="")
        found.append(SameUtility(name, best, reached.get(best)))
    return found


def _between(curve: list[Point], useful: float) -> Estimate | None:
    """The accuracy on S at an accuracy on U that lies between those of the curve; so are the ends of its interval."""
    curve = sorted(curve, key=lambda point: point.useful.value)
    at = [point.useful.value for point in curve]
    if not at[0] <= useful <= at[-1]:
        return None
    value, low, high = (
        float(np.interp(useful, at, [getattr(point.secret, end) for point in curve]))
        for end in ("value", "low", "high")
    )
    return Estimate(value, low, high, "bootstrap")
