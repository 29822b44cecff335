"""What an audit of a hidden pair that moves found, and the verdict in words."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from reticent.audit.findings import Attack, Check, Moment, percent, title
from reticent.audit.justified import Justified
from reticent.audit.verdict import ENOUGH_PEOPLE, Outcome, outcome_sentence
from reticent.evaluate.estimate import Estimate

HOW_TO_READ = (
    "How to read this: attackers learn from some people and are asked for the secret and the useful value of every "
    "moment of others, with everything that was released before and after it. Percentages say how often they name a "
    "value correctly, every class counted alike, with intervals of 95 % over people."
)
# Kind of every number, by its key in audit.json.
KINDS = {
    "attacks: accuracy, balanced, per_class, confidence, over": "estimate",
    "attacks: bits": "lower bound on the information about a moment, up to its interval",
    "attacks: highest_confidence": "exact, of the moments that were judged",
    "headline, justified, over_time": "estimate",
    "silent, guess_secret, guess_useful, limit": "exact",
}


@dataclass(frozen=True)
class MovingAudit:
    """All that was found. `KINDS` says which numbers are exact, bounds or estimates.

    `headline` is the balanced accuracy on the secret of the `strongest` attacker, with an interval that holds for all.
    `justified` is the largest confidence that any of them justifies, `silent` the share of steps in which nothing was
    sent, and `over_time` holds balanced accuracies by how late in its episode a moment is.
    """

    moments: int
    episodes: int
    people: int
    splits: int
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    guess_secret: float
    guess_useful: float
    limit: float | None
    strongest: Attack
    headline: Estimate
    justified: Justified
    attacks: list[Attack]
    over_time: list[Moment]
    silent: float
    checks: list[Check]
    notes: list[str]

    @property
    def passed(self) -> bool | None:
        """Whether all that must be so is so; none if nothing could be checked."""
        return all(check.passed for check in self.checks) if self.checks else None

    @property
    def checkable(self) -> bool:
        """Whether there was something to check, or to find, and enough to do it with."""
        return self.passed is not None or (self.limit is None and self.outcome is not Outcome.CANNOT_TELL)

    @property
    def outcome(self) -> Outcome:
        """Whether it leaks."""
        if self.passed is False:
            return Outcome.LEAKS
        if self.people < ENOUGH_PEOPLE:
            return Outcome.CANNOT_TELL
        return Outcome.LEAKS if self.headline.low > self.guess_secret else Outcome.NONE_FOUND

    @property
    def verdict(self) -> list[str]:
        """The outcome, the largest confidence, what must be so and is not, what became of a claim, and the rest."""
        failed = [f"Check failed: {check.sentence}" for check in self.checks if not check.passed]
        held = [check.sentence for check in self.checks if check.passed]
        return [_outcome(self), _confidence(self.justified), *failed, *held, *_rest(self)]

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
        }


def _outcome(audit: MovingAudit) -> str:
    found = (
        f"the strongest of {len(audit.attacks)} attackers who look back, {title(audit.strongest)}, names the secret of "
        f"a moment correctly in {percent(audit.headline)}, every secret counted alike; guessing gives "
        f"{100 * audit.guess_secret:.1f} %"
    )
    few = f"only {audit.people} people were judged, and {ENOUGH_PEOPLE} are needed to speak of others"
    return outcome_sentence(audit.outcome, audit.headline, found, doubt=few)


def _confidence(sure: Justified) -> str:
    return (
        f"The largest confidence in the secret of a moment that any of them justifies: {percent(sure.right)}. So often "
        f"is {sure.attacker} right in the {100 * sure.share:.3g} % of moments where it believes at least "
        f"{sure.threshold:.2f}."
    )


def _rest(audit: MovingAudit) -> Iterator[str]:
    useful = max(audit.attacks, key=lambda attack: attack.useful.balanced.value)
    yield (
        f"The useful value of a moment is named correctly in {percent(useful.useful.balanced)} ({title(useful)}); "
        f"guessing gives {100 * audit.guess_useful:.1f} %. Nothing was sent in {100 * audit.silent:.1f} % of the "
        f"{audit.moments:,} moments of {audit.people} people."
    )
    if audit.limit is not None:
        worst = max(audit.attacks, key=lambda attack: attack.over.value if attack.over else 0.0)
        assert worst.over is not None
        yield (
            f"The belief of {title(worst)} in the secret of a moment is {audit.limit:g} or more in "
            f"{percent(worst.over)} of moments."
        )
