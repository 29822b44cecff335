"""What an audit finds: attacks, moments, checks."""

from dataclasses import dataclass
from typing import Literal

from reticent.audit.measures import Named
from reticent.estimate import Estimate

OWN, RANDOM, NOTHING_LEARNED = "the policy's own traces", "random traces", "the model"
Fitted = Literal["the policy's own traces", "random traces", "the model"]
EVERYTHING = "everything"
# What every number of an audit is, by where it stands in audit.json. An estimate may be wrong by chance, a bound only
# on one side but for chance; what is exact is so for the model.
KINDS = {
    "attacks: accuracy, balanced, per_class, confidence, over": "estimate",
    "attacks: bits": "lower bound on the information, up to its interval",
    "attacks: highest_confidence": "exact, of the episodes that were judged",
    "headline, over_time, learning, linked, calibration, calibration_error": "estimate",
    "observers, by_sensor, by_step, strongest, surest": "estimate; bits as in attacks",
    "channels": "exact for the model",
    "leakage": "estimate",
    "baselines, same_utility, audited, forgotten, carried, wrong_models": "estimate",
    "guess_secret, guess_useful, limit": "exact",
}


@dataclass(frozen=True)
class Attack:
    """One attacker, what it was fitted on, how well it names both labels at the end, and how often its own belief
    about the secret reached the bound at a moment that was looked at. `observer` says what it sees, `episodes` how
    many it learned from where that is fewer than all."""

    attacker: str
    fitted_on: Fitted
    secret: Named
    useful: Named
    over: Estimate | None = None
    observer: str = EVERYTHING
    episodes: int | None = None


@dataclass(frozen=True)
class Moment:
    """Balanced accuracies after so many steps; `step` is none for the end."""

    attacker: str
    fitted_on: Fitted
    step: int | None
    secret: Estimate
    useful: Estimate


@dataclass(frozen=True)
class Learning:
    """Balanced accuracy on the secret of an attacker who learned from so many episodes."""

    attacker: str
    episodes: int
    secret: Estimate


@dataclass(frozen=True)
class Linked:
    """Of people who have one secret for good: how many are found out by who adds up all that was released of each, as
    if their episodes were independent."""

    attacker: str
    people: int
    episodes_each: float
    secret: Estimate


@dataclass(frozen=True)
class Check:
    """Something that must be so. `shows_leak`: if it is not, the traces say more about the secret than they may."""

    name: str
    passed: bool
    sentence: str
    shows_leak: bool = True


def title(attack: Attack) -> str:
    """The attacker, what it learned from if it learned, and what it sees if that is not everything."""
    about = [
        *([] if attack.fitted_on == NOTHING_LEARNED else [attack.fitted_on]),
        *([] if attack.episodes is None else [f"{attack.episodes:,} episodes"]),
        *([] if attack.observer == EVERYTHING else [f"seeing {attack.observer}"]),
    ]
    return f"{attack.attacker} ({', '.join(about)})" if about else attack.attacker


def percent(estimate: Estimate) -> str:
    """In percent, with its interval."""
    return f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
