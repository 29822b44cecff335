"""How often the labels of recordings change while somebody is recorded. Models of a pair that stays assume that they
do not."""

from dataclasses import asdict, dataclass
from typing import Any

FIELD = "changes_per_second"
ASSUMED = "A fitted model assumes that secret and useful value stay the same during an episode."


@dataclass(frozen=True)
class LabelChanges:
    """Changes of the secret and of the useful label per second of unbroken recording."""

    secret: float
    useful: float

    @classmethod
    def of(cls, fitted: dict[str, Any] | None) -> "LabelChanges | None":
        """What `reticent fit` measured and stored with a model; None of other models."""
        match fitted:
            case {"changes_per_second": {"secret": float(secret), "useful": float(useful)}}:
                return cls(secret, useful)
        return None

    def stored(self) -> dict[str, dict[str, float]]:
        """As a model's `fitted` record keeps them."""
        return {FIELD: asdict(self)}

    @property
    def some(self) -> bool:
        """Whether any label ever changed."""
        return self.secret > 0 or self.useful > 0

    def sentence(self) -> str:
        """What is assumed, and how often it is not so."""
        rates = {"the secret": self.secret, "the useful value": self.useful}
        often = [f"{label} changes every {duration(1 / rate)}" for label, rate in rates.items() if rate > 0]
        if not often:
            return f"{ASSUMED} In the recordings, neither changes within an unbroken stretch."
        never = [f"{label} never does" for label, rate in rates.items() if rate == 0]
        return (
            f"{ASSUMED} In the recordings, on average, {' and '.join([*often, *never])}. The bound does not cover "
            "an episode that such a change falls into."
        )


def duration(seconds: float) -> str:
    """A time in the unit that fits."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
