"""What an attacker believes about the secret and about the useful value, episode by episode."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.traces import Traces

Label = Literal["secret", "useful"]
LABELS: tuple[Label, ...] = get_args(Label)


@dataclass(frozen=True, eq=False)
class Confidence:
    """Beliefs over the secret and over the useful value, one line per episode; and those before anything was seen."""

    secret: Float[np.ndarray, "N S"]
    useful: Float[np.ndarray, "N U"]
    secret_before: Float[np.ndarray, "N S"]
    useful_before: Float[np.ndarray, "N U"]

    def fair_guess(self, label: Label) -> Int[np.ndarray, " N"]:
        """The class whose belief has grown most: what is right most often on average over classes, rare or not."""
        return fair_guess(getattr(self, label), getattr(self, f"{label}_before"))


def fair_guess(belief: Float[np.ndarray, "N C"], before: Float[np.ndarray, "#N C"]) -> Int[np.ndarray, " N"]:
    """argmax belief / prior = argmax P(what was seen | class)."""
    return np.where(before > 0, belief / np.where(before > 0, before, 1.0), -1.0).argmax(1)


def confidence_of(belief: Float[np.ndarray, "N S U"], before: Float[np.ndarray, "S U"]) -> Confidence:
    """From beliefs over pairs, and the one that they started from."""
    return confidence_of_each(belief.sum(2), belief.sum(1), before)


def confidence_of_each(
    secret: Float[np.ndarray, "N S"], useful: Float[np.ndarray, "N U"], before: Float[np.ndarray, "S U"]
) -> Confidence:
    """From beliefs over the secret and over the useful value, and the one over pairs that they started from."""
    starts = np.broadcast_to(before.sum(1), secret.shape), np.broadcast_to(before.sum(0), useful.shape)
    return Confidence(secret, useful, *starts)


def together(parts: list[Confidence]) -> Confidence:
    """Beliefs on parts of the episodes, one part after the other."""
    return Confidence(*(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True)))


def frequencies(traces: Traces) -> Float[np.ndarray, "S U"]:
    """How often each hidden pair came."""
    found = np.zeros((len(traces.names.secrets), len(traces.names.useful)))
    np.add.at(found, (traces.secret, traces.useful), 1 / len(traces))
    return found
