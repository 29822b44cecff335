"""Posterior of an attacker over the secret and over the useful value, one row per episode."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.traces import Traces

Label = Literal["secret", "useful"]
LABELS: tuple[Label, ...] = get_args(Label)


@dataclass(frozen=True, eq=False)
class Posterior:
    """P(secret | trace) and P(useful | trace) of each episode, with the priors they started from."""

    secret: Float[np.ndarray, "N S"]
    useful: Float[np.ndarray, "N U"]
    secret_prior: Float[np.ndarray, "N S"]
    useful_prior: Float[np.ndarray, "N U"]

    def fair_guess(self, label: Label) -> Int[np.ndarray, " N"]:
        """Maximum-likelihood guess of a label, which maximises balanced accuracy: rare classes count like others."""
        return fair_guess(getattr(self, label), getattr(self, f"{label}_prior"))


def fair_guess(belief: Float[np.ndarray, "N C"], prior: Float[np.ndarray, "#N C"]) -> Int[np.ndarray, " N"]:
    """argmax_c P(trace | c) = argmax_c P(c | trace) / P(c)."""
    return np.where(prior > 0, belief / np.where(prior > 0, prior, 1.0), -np.inf).argmax(1)


def posterior_of(belief: Float[np.ndarray, "N S U"], prior: Float[np.ndarray, "S U"]) -> Posterior:
    """Marginals of beliefs over hidden pairs (s, u)."""
    return from_marginals(belief.sum(2), belief.sum(1), prior)


def from_marginals(
    secret: Float[np.ndarray, "N S"], useful: Float[np.ndarray, "N U"], prior: Float[np.ndarray, "S U"]
) -> Posterior:
    """Posterior from its two marginals and the joint prior."""
    priors = np.broadcast_to(prior.sum(1), secret.shape), np.broadcast_to(prior.sum(0), useful.shape)
    return Posterior(secret, useful, *priors)


def concatenated(parts: list[Posterior]) -> Posterior:
    """Posteriors of several groups of episodes, one group after the other."""
    return Posterior(*(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True)))


def frequencies(traces: Traces) -> Float[np.ndarray, "S U"]:
    """Empirical distribution of the hidden pairs."""
    found = np.zeros((len(traces.names.secrets), len(traces.names.useful)))
    np.add.at(found, (traces.secret, traces.useful), 1 / len(traces))
    return found
