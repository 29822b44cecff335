"""One record of how a policy does in a process: every number with its interval and what kind of number it is."""

from dataclasses import asdict, dataclass
from typing import Any

from reticent.errors import InputError
from reticent.estimate import CONFIDENCE_LEVEL, Estimate, mean, rate
from reticent.policy.policy import Policy
from reticent.process.process import Process
from reticent.process.rollout import Episode, simulate


@dataclass(frozen=True)
class Evaluation:
    """How a policy did over many independent episodes. All fields but the counts are estimates.

    `cost` is what the objective charges; `cost_without_penalty` leaves out what the bound charges: the violation
    cost, or the multiplier's part of the stop. `releases` is the stopping time tau. `spent_bits` is the ledger, whose
    mean estimates H(S) - E[H(beta_tau(S))] without bias. `confidence_useful` is max_u beta(u) at the end,
    `confidence_secret` max_s beta(s) at the end, `highest_confidence_secret` the largest max_s beta(s) on the way.
    Accuracies are of the provider's best guess at the end, which is exact Bayes with the true model. `violation_rate`
    counts episodes that ever crossed the bound, `truncated_rate` those cut at the horizon (and charged for declaring
    there).
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


def evaluate(process: Process, policy: Policy, episodes: int = 100_000, seed: int = 0) -> Evaluation:
    """Simulate independent episodes and sum them up. Deterministic given the seed."""
    check_episodes(episodes)
    return summarise(simulate(process, policy.act, episodes, seed), seed)


def check_episodes(episodes: int) -> None:
    """Refuse too few."""
    if episodes < 2:
        raise InputError(f"At least two episodes are needed for an interval, not {episodes}.")


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
    """A class that never occurred has no rate."""
    return rate(happened) if len(happened) else None
