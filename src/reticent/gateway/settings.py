"""Settings of a gateway."""

from dataclasses import dataclass
from pathlib import Path

from reticent.errors import InputError
from reticent.gateway.share import EVERYTHING, Share


@dataclass(frozen=True)
class Settings:
    """How a gateway behaves. The file `policy` is watched: once it changes, nothing is released."""

    policy: Path
    rest: float = 60.0
    """Seconds between a stop and the next session of the same subject."""
    stale: float = 30.0
    """A reading that is older than this many seconds is dropped."""
    subjects: int = 10_000
    """Subjects kept in memory; others are restored from the ledger."""
    drift_check: bool = True
    """Release nothing more of subjects whose readings the model does not fit."""
    share: Share = EVERYTHING
    """The subjects that are decided for here."""

    def __post_init__(self) -> None:
        if not (self.rest >= 0 and self.stale > 0):
            raise InputError(
                f"--rest must be at least 0 and --stale above 0 seconds; they are {self.rest:g} and {self.stale:g}."
            )
        if self.subjects < 1:
            raise InputError(f"--subjects must be at least 1; it is {self.subjects}.")
