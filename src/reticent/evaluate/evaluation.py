"""Performance of a policy in a process, estimated by simulation: every number with its interval."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from reticent.errors import InputError
from reticent.evaluate.estimate import CONFIDENCE_LEVEL, Estimate, mean, rate
from reticent.policy.policy import Policy
from reticent.process.process import Process
from reticent.process.rollout import EPISODES_PER_LANE, LANES, Episode, simulate


@dataclass(frozen=True)
class Evaluation:
    """What a solution does, over simulated episodes: every number with its 95 % interval.

    `Solution.evaluate` makes it. `episodes` were simulated with this `seed`; the rest are estimates.

    `cost` is the total cost under the objective; `cost_without_penalty` excludes the cost of the bound, which is the
    violation cost or the multiplier's share of the stopping cost. `releases` is the stopping time tau. `spent_bits` is
    the information spent, sum_t I_t(S; Z_t); its mean is an unbiased estimate of H(S) - E[H(beta_tau(S))].
    `confidence_useful` is max_u beta(u) and `confidence_secret` is max_s beta(s), both at the end of the episode;
    `highest_confidence_secret` is the largest max_s beta(s) at any step, of any provider of the model's panel.
    `accuracy_useful` and `accuracy_secret`, and of each value `accuracy_per_useful` and `accuracy_per_secret`, are of
    the MAP guess of the provider at the end, by exact Bayes with the true model. `violation_rate` is the share of
    episodes that crossed the bound at any step, for any provider of the panel, `truncated_rate` the share cut off at
    the horizon (and charged the stopping cost there).

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> task = rt.Task(tells_useful(), rt.Confidence(0.8))
        >>> found = rt.Solution.of(task, rt.OneStepLookahead(rt.Process.of(task))).evaluate(1_000)
        >>> print(found.accuracy_useful)
        1 [0.9963, 1]
    """

    episodes: int
    seed: int
    cost: Estimate
    cost_without_penalty: Estimate
    releases: Estimate
    confidence_useful: Estimate
    confidence_secret: Estimate
    highest_confidence_secret: Estimate
    spent_bits: Estimate
    accuracy_useful: Estimate
    accuracy_secret: Estimate
    accuracy_per_useful: list[Estimate | None]
    accuracy_per_secret: list[Estimate | None]
    violation_rate: Estimate
    truncated_rate: Estimate

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        return {"kind": "estimate", "level": CONFIDENCE_LEVEL, **asdict(self)}


# Episodes from which it is judged how many make an interval narrow enough.
PILOT = LANES * EPISODES_PER_LANE


def evaluate(process: Process, policy: Policy, episodes: int = 100_000, seed: int = 0) -> Evaluation:
    """Simulate independent episodes and summarise them. Deterministic given the seed."""
    check_episodes(episodes)
    return summarise(simulate(process, policy.act, episodes, seed), seed)


def check_episodes(episodes: int, precision: float | None = None) -> None:
    """Raise InputError if there are too few episodes for an interval, or if none could be as narrow as this."""
    if episodes < 2:
        raise InputError(f"An interval needs at least two episodes; got {episodes}. Simulate more.")
    if precision is not None and not precision > 0:
        raise InputError(f"The precision is half the width of an interval, above 0, but is {precision:g}.")


def enough(pilot: Episode, precision: float) -> int:
    """How many episodes make the interval of the mean cost so narrow: this far to each side, judged by a pilot.

    At least those of the pilot: the two stages of Stein (1945).
    """
    found = mean(pilot.cost)
    return max(len(pilot.cost), math.ceil(len(pilot.cost) * ((found.high - found.value) / precision) ** 2))


def summarise(records: Episode, seed: int) -> Evaluation:
    """Means, rates and intervals of simulated episodes."""
    by_useful, by_secret = records.belief.sum(1), records.belief.sum(2)
    named_useful = by_useful.argmax(1) == records.useful
    named_secret = by_secret.argmax(1) == records.secret
    return Evaluation(
        episodes=len(records.cost),
        seed=seed,
        cost=mean(records.cost),
        cost_without_penalty=mean(records.cost - records.violation_cost),
        releases=mean(records.releases),
        confidence_useful=mean(by_useful.max(1)),
        confidence_secret=mean(by_secret.max(1)),
        highest_confidence_secret=mean(records.highest_confidence),
        spent_bits=mean(records.spent_bits),
        accuracy_useful=rate(named_useful),
        accuracy_secret=rate(named_secret),
        accuracy_per_useful=[_rate_or_none(named_useful[records.useful == u]) for u in range(by_useful.shape[1])],
        accuracy_per_secret=[_rate_or_none(named_secret[records.secret == s]) for s in range(by_secret.shape[1])],
        violation_rate=rate(records.violated),
        truncated_rate=rate(records.truncated),
    )


def _rate_or_none(happened: Any) -> Estimate | None:
    """The rate, or None for a class that did not occur."""
    return rate(happened) if len(happened) else None
