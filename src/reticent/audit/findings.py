"""What an audit has found, and the verdict in words."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from reticent.audit.leakage import ChannelLeakage, PolicyLeakage
from reticent.audit.measures import Bin, Named
from reticent.audit.traces import Observer
from reticent.estimate import Estimate

OWN, RANDOM, NOTHING_LEARNED = "the policy's own traces", "random traces", "the model"
Fitted = Literal["the policy's own traces", "random traces", "the model"]
# What every number of an audit is, by where it stands in audit.json. An estimate may be wrong by chance, a bound only
# on one side but for chance; what is exact is so for the model.
KINDS = {
    "attacks: accuracy, balanced, per_class, confidence, over": "estimate",
    "attacks: bits": "lower bound on the information, up to its interval",
    "attacks: highest_confidence": "exact, of the episodes that were judged",
    "headline, over_time, learning, linked, calibration, calibration_error": "estimate",
    "observers": "estimate; bits as in attacks",
    "channels": "exact for the model",
    "leakage": "estimate",
    "baselines, same_utility, forgotten, carried, wrong_models": "estimate",
    "guess_secret, guess_useful, limit": "exact",
}


@dataclass(frozen=True)
class Attack:
    """One attacker, what it was fitted on, how well it names both labels at the end, and how often its own belief
    about the secret reached the bound at a moment that was looked at."""

    attacker: str
    fitted_on: Fitted
    secret: Named
    useful: Named
    over: Estimate | None


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
class Observed:
    """The strongest attacker who sees less."""

    observer: Observer
    attacker: str
    secret: Named
    useful: Named


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
    """Something that must be so."""

    name: str
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Audit:
    """All that was found. `KINDS` says which numbers are exact, bounds or estimates.

    `guess_secret` and `guess_useful` are what guessing gives: one over the number of classes that were judged.
    `headline` is the strongest attacker's balanced accuracy on the secret, with an interval that holds for all
    attackers at once (Bonferroni): whoever comes out strongest was also lucky.
    """

    episodes: int
    people: int | None
    splits: int
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    guess_secret: float
    guess_useful: float
    limit: float | None
    enforce: str | None
    attacks: list[Attack]
    headline: Estimate
    over_time: list[Moment]
    learning: list[Learning]
    observers: list[Observed]
    linked: Linked | None
    calibration: list[Bin]
    calibration_error: float
    calibrated: str
    channels: list[ChannelLeakage]
    leakage: PolicyLeakage | None
    checks: list[Check]
    notes: list[str] = field(default_factory=list)

    @property
    def strongest(self) -> Attack:
        """The attacker who names the secret best, classes counted alike."""
        return max(self.attacks, key=lambda attack: attack.secret.balanced.value)

    @property
    def passed(self) -> bool | None:
        """Whether all that must be so is so; none if nothing could be checked."""
        return all(check.passed for check in self.checks) if self.checks else None

    @property
    def verdict(self) -> list[str]:
        """What there is to say, in a few sentences; what is wrong comes first."""
        return [*(f"Not as it must be: {c.sentence}" for c in self.checks if not c.passed), *_sentences(self)]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "strongest": title(self.strongest),
            "kinds": KINDS,
            **asdict(self),
        }


def title(attack: Attack) -> str:
    """The attacker, and what it learned from if it learned."""
    return attack.attacker if attack.fitted_on == NOTHING_LEARNED else f"{attack.attacker} ({attack.fitted_on})"


def _sentences(audit: Audit) -> Iterator[str]:
    best, guess = audit.strongest, audit.guess_secret
    told = "" if audit.headline.low > guess else ", which it does not clearly beat"
    yield (
        f"The strongest of {len(audit.attacks)} attackers, {title(best)}, names the secret correctly in "
        f"{percent(audit.headline)} of episodes, every secret counted alike; guessing gives {100 * guess:.1f} %{told}."
    )
    useful = max(audit.attacks, key=lambda attack: attack.useful.balanced.value)
    whom = f"of {audit.people} people" if audit.people else f"in {audit.episodes:,} episodes"
    yield (
        f"The useful value is named correctly in {percent(useful.useful.balanced)} ({title(useful)}); guessing gives "
        f"{100 * audit.guess_useful:.1f} %. Both are means over classes, {whom} that the attacker had not learned from."
    )
    if (linked := audit.linked) is not None:
        yield (
            f"Who adds up all {linked.episodes_each:.0f} episodes of a person ({linked.attacker}) names the secret of "
            f"{percent(linked.secret)} of {linked.people} people."
        )
    if audit.limit is not None:
        believers = [attack for attack in audit.attacks if attack.fitted_on == NOTHING_LEARNED] or audit.attacks
        worst = max(believers, key=lambda attack: attack.over.value if attack.over else 0.0)
        assert worst.over is not None
        yield f"The belief of {title(worst)} reaches the bound {audit.limit:g} in {percent(worst.over)} of episodes."
    surest = max(audit.attacks, key=lambda attack: attack.secret.bits.low)
    if told and surest.secret.bits.low > 0:
        yield (
            f"Still, {title(surest)} believes more in the true secret than before, by {surest.secret.bits} bits on "
            "average: something is said about it."
        )


def percent(estimate: Estimate) -> str:
    """In percent, with its interval."""
    return f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
