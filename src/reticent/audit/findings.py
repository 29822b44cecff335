"""Findings of an audit: attacks, moments, learning curves, checks."""

from dataclasses import dataclass
from typing import Literal, get_args

from reticent.audit.measures import Named
from reticent.evaluate.estimate import Estimate

# What an attacker was trained on: traces of the audited system, traces of random sensors, or nothing (exact Bayes).
Fitted = Literal["own", "random", "model"]
OWN, RANDOM, NOTHING_LEARNED = get_args(Fitted)
WORDS: dict[Fitted, str] = {"own": "the policy's own traces", "random": "random traces", "model": "the model"}
EVERYTHING = "everything"
# Kind of every number, by its key in audit.json: exact (for the model), a bound (up to its interval), or an estimate.
KINDS = {
    "attacks: accuracy, balanced, per_class, confidence, over": "estimate",
    "attacks: bits": "lower bound on the information, up to its interval",
    "attacks: highest_confidence": "exact, of the episodes that were judged",
    "headline, over_time, learning, linked, calibration, calibration_error": "estimate",
    "observers, by_sensor, by_step, strongest, surest": "estimate; bits as in attacks",
    "channels": "exact for the model",
    "leakage": "estimate",
    "baselines, same_utility, audited, forgotten, carried, wrong_models": "estimate",
    "by_person": "estimate",
    "guess_secret, guess_useful, limit": "exact",
}


@dataclass(frozen=True)
class Attack:
    """One attacker: what it was fitted on, and its measures for both labels at the end of episodes.

    `over` is the share of episodes in which its own belief in a secret reached the bound at an evaluated step.
    `observer` is what it sees; `episodes` the size of its training set, None for all of it.
    """

    attacker: str
    fitted_on: Fitted
    secret: Named
    useful: Named
    over: Estimate | None = None
    observer: str = EVERYTHING
    episodes: int | None = None


@dataclass(frozen=True)
class Moment:
    """Balanced accuracies after `step` steps; None is the end of the episode."""

    attacker: str
    fitted_on: Fitted
    step: int | None
    secret: Estimate
    useful: Estimate


@dataclass(frozen=True)
class Learning:
    """Point of a learning curve: balanced accuracy on the secret after training on `episodes` episodes."""

    attacker: str
    episodes: int
    secret: Estimate


@dataclass(frozen=True)
class Linked:
    """Linkage attack on people whose secret is constant: the share whose secret is identified from all their episodes,
    combined as if independent."""

    attacker: str
    people: int
    episodes_each: float
    secret: Estimate


@dataclass(frozen=True)
class Check:
    """A property that must hold. `shows_leak`: its failure means that the traces reveal more than they may."""

    name: str
    passed: bool
    sentence: str
    shows_leak: bool = True


def title(attack: Attack) -> str:
    """The attacker with its training traces, if any, and its observer, if restricted."""
    about = [
        *([] if attack.fitted_on == NOTHING_LEARNED else [WORDS[attack.fitted_on]]),
        *([] if attack.episodes is None else [f"{attack.episodes:,} episodes"]),
        *([] if attack.observer == EVERYTHING else [f"observing {attack.observer}"]),
    ]
    return f"{attack.attacker} ({', '.join(about)})" if about else attack.attacker


def percent(estimate: Estimate) -> str:
    """Percentage with its interval."""
    return f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
