"""Everything an audit found, and the verdict in words: whether it leaks, how much, and where."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from reticent.audit.findings import (
    EVERYTHING,
    KINDS,
    NOTHING_LEARNED,
    Attack,
    Check,
    Learning,
    Linked,
    Moment,
    percent,
    title,
)
from reticent.audit.leakage import ChannelLeakage, PolicyLeakage
from reticent.audit.measures import Bin
from reticent.evaluate.estimate import Estimate

# Of fewer people no statement about others is made.
ENOUGH_PEOPLE = 10
# An attacker who may be right in more than this part of what lies between guessing and certainty: nothing is settled.
UNSETTLED = 0.25
# A part of the traces carries a leak if it tells this much of what all of them tell beyond guessing.
CARRIES = 0.5
HOW_TO_READ = (
    "How to read this: attackers learn from one part of the episodes and are tried on the rest. Percentages say how "
    "often they name a value correctly, every class counted alike, with intervals of 95 %; an interval that lies above "
    "guessing is a leak, and one that does not is no proof that there is none."
)


class Outcome(StrEnum):
    """What an audit comes to."""

    LEAKS = "it leaks"
    NONE_FOUND = "no leak found"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Audit:
    """All that was found. `KINDS` says which numbers are exact, bounds or estimates.

    `guess_secret` and `guess_useful` are what guessing gives: one over the number of classes that were judged.
    `headline` is the balanced accuracy on the secret of `strongest`, the best of all `contenders`: every attacker,
    every observer, every part of the traces and every size of what was learned from. Its interval holds for all of
    them at once (Bonferroni): the strongest is partly so by chance. `surest` gains clearly more than no bits
    about the secret, also among all of them, if anybody does. `claimed`: somebody says that the limit is never reached.
    """

    episodes: int
    people: int | None
    splits: int
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    guess_secret: float
    guess_useful: float
    limit: float | None
    claimed: bool
    enforce: str | None
    contenders: int
    strongest: Attack
    headline: Estimate
    surest: Attack | None
    attacks: list[Attack]
    observers: list[Attack]
    by_sensor: list[Attack]
    by_step: list[Attack]
    over_time: list[Moment]
    learning: list[Learning]
    linked: Linked | None
    calibration: list[Bin]
    calibration_error: float
    calibrated: str
    channels: list[ChannelLeakage]
    leakage: PolicyLeakage | None
    checks: list[Check]
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool | None:
        """Whether all that must be so is so; none if nothing could be checked."""
        return all(check.passed for check in self.checks) if self.checks else None

    @property
    def checkable(self) -> bool:
        """Whether there was something to check, or to find, and enough to do it with."""
        return self.passed is not None or not (self.claimed or self.outcome == Outcome.CANNOT_TELL)

    @property
    def outcome(self) -> Outcome:
        """Whether it leaks."""
        if any(check.shows_leak and not check.passed for check in self.checks):
            return Outcome.LEAKS
        if self.doubt is not None:
            return Outcome.CANNOT_TELL
        return Outcome.LEAKS if self._clear else Outcome.NONE_FOUND

    @property
    def doubt(self) -> str | None:
        """Why nothing can be told, if so."""
        if self.people is not None and self.people < ENOUGH_PEOPLE:
            return f"only {self.people} people were judged, and {ENOUGH_PEOPLE} are needed to speak of others"
        room = self.headline.high - self.guess_secret
        if not self._clear and room > UNSETTLED * (1 - self.guess_secret):
            return (
                f"{self.episodes:,} judged episodes are too few: some attacker may be right in up to "
                f"{100 * self.headline.high:.1f} % of others"
            )
        return None

    @property
    def _clear(self) -> bool:
        return self.headline.low > self.guess_secret or self.surest is not None

    @property
    def verdict(self) -> list[str]:
        """What there is to say, in a few sentences: the outcome, where the leak is, what must be so and is not, and
        the rest."""
        failed = [f"Check failed: {check.sentence}" for check in self.checks if not check.passed]
        return [_outcome(self), *_where(self), *failed, *_claim(self), *_rest(self), *_cheaper(self)]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        return {
            "outcome": self.outcome,
            "verdict": self.verdict,
            "how_to_read": HOW_TO_READ,
            "passed": self.passed,
            "checkable": self.checkable,
            "kinds": KINDS,
            **asdict(self),
            "strongest": title(self.strongest),
            "surest": None if self.surest is None else title(self.surest),
        }


def _outcome(audit: Audit) -> str:
    guessing = f"guessing gives {100 * audit.guess_secret:.1f} %"
    named = (
        f"the strongest of {audit.contenders} attackers, {title(audit.strongest)}, names the secret correctly in "
        f"{percent(audit.headline)} of episodes, every secret counted alike; {guessing}"
    )
    return outcome_sentence(audit.outcome, audit.headline, named, _by_bits(audit), audit.doubt)


def outcome_sentence(
    outcome: Outcome, headline: Estimate, found: str, besides: str = "", doubt: str | None = ""
) -> str:
    """The outcome and what was `found`; `besides` goes with a leak, `doubt` is why nothing can be told."""
    match outcome:
        case Outcome.LEAKS:
            return f"It leaks: {found}{besides}."
        case Outcome.NONE_FOUND:
            return f"No leak found, up to {100 * headline.high:.1f} %: {found}, which it does not clearly beat."
        case Outcome.CANNOT_TELL:
            return f"Cannot tell, because {doubt}: {found}."


def _by_bits(audit: Audit) -> str:
    """Where no guess is clearly right more often, but beliefs have moved."""
    if audit.headline.low > audit.guess_secret or audit.surest is None:
        return ""
    return (
        f", which it does not clearly beat, but {title(audit.surest)} believes more in the true secret than before, by "
        f"{audit.surest.secret.bits} bits on average"
    )


def _where(audit: Audit) -> Iterator[str]:
    """Which part of the traces carries the leak."""
    guess, aspects = (
        audit.guess_secret,
        [each for each in audit.observers if each.observer != EVERYTHING],
    )
    found = [max(each, key=_named_secret) for each in (audit.by_sensor, audit.by_step, aspects) if each]
    found = sorted((each for each in found if each.secret.balanced.low > guess), key=_named_secret, reverse=True)
    if audit.outcome != Outcome.LEAKS or not (audit.by_sensor or audit.by_step or aspects):
        return
    enough = guess + CARRIES * (audit.headline.value - guess)
    carriers = [each for each in found if _named_secret(each) >= enough]
    if not carriers:
        most = f"; {_alone(found[0])} is the most that one of them tells" if found else ""
        yield f"Where: in no sensor and no release alone, but in how they go together{most}."
        return
    yield f"Where: {'; '.join(_alone(each) for each in carriers)}."


def _alone(attack: Attack) -> str:
    return f"an observer of {attack.observer} names the secret correctly in {percent(attack.secret.balanced)}"


def _named_secret(attack: Attack) -> float:
    return attack.secret.balanced.value


def _claim(audit: Audit) -> Iterator[str]:
    """What became of the claim that the limit is never reached."""
    if audit.claimed and audit.passed is None:
        yield f"The claim that no belief reaches {audit.limit:g} could not be checked: {audit.doubt or 'no model'}."
    yield from (f"{check.sentence}" for check in audit.checks if check.passed and check.name == NOT_REFUTED)
    if audit.limit is not None:
        believers = [attack for attack in audit.attacks if attack.fitted_on == NOTHING_LEARNED] or audit.attacks
        worst = max(believers, key=lambda attack: attack.over.value if attack.over else 0.0)
        assert worst.over is not None
        yield f"The belief of {title(worst)} reaches the bound {audit.limit:g} in {percent(worst.over)} of episodes."


def _rest(audit: Audit) -> Iterator[str]:
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


def _cheaper(audit: Audit) -> Iterator[str]:
    """A sensor whose releases alone tell as much of the useful value and less of the secret."""
    told = max((each.useful.balanced for each in audit.attacks), key=lambda each: each.low)
    better = [
        each
        for each in audit.by_sensor
        if each.useful.balanced.high >= told.value and each.secret.balanced.high < audit.headline.low
    ]
    if better:
        least = min(better, key=_named_secret)
        yield (
            f"A cheaper alternative: {least.observer} tells as much of the useful value "
            f"({percent(least.useful.balanced)}) and gives away less of the secret ({percent(least.secret.balanced)}, "
            f"to {least.attacker})."
        )


# The check that works without a model.
NOT_REFUTED = "accuracy stays within the bound"
