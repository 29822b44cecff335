"""How the hidden pair moves: a Markov chain counted in recordings whose labels change, smoothed towards staying.

Moves n(x' | x) from one step to the next are counted within each trajectory, so none is counted across a gap. Every
person counts alike, however long the recording. The chain is the mean of the posterior under a Dirichlet prior that has
seen STAYED steps of staying with each pair, and MOVED moves, spread over the other recorded pairs:

    T(x' | x)  proportional to  n(x' | x) + STAYED 1[x' = x] + MOVED / (K - 1) 1[x' != x]
"""

import numpy as np
from jaxtyping import Float

from reticent.data.trajectories import Trajectories

STAYED, MOVED = 10.0, 0.1


def moves(lives: Trajectories) -> Float[np.ndarray, "P X X"]:
    """How often each person who was recorded went from each pair to each, a step later."""
    pairs = len(lives.secrets) * len(lives.useful_values)
    people, person = np.unique(lives.person, return_inverse=True)
    rows = np.flatnonzero(lives.trajectory[1:] == lives.trajectory[:-1])
    counts = np.zeros((len(people), pairs, pairs))
    np.add.at(counts, (person[rows], lives.pair[rows], lives.pair[rows + 1]), 1)
    return counts


def fit_transition(
    lives: Trajectories, prior: Float[np.ndarray, "S U"], weight: Float[np.ndarray, " P"] | None = None
) -> Float[np.ndarray, "S U S U"]:
    """The transition of these people, who count alike or by weight. A pair that the prior excludes is left at once, as
    the prior has it."""
    own = moves(lives)
    weight = np.ones(len(own)) if weight is None else weight
    each = own.sum((1, 2), keepdims=True)
    share = (weight / weight.sum())[:, None, None]
    counts = (share * own * each.sum() / np.maximum(each, 1)).sum(0)
    possible = prior.reshape(-1) > 0
    others = np.outer(possible, possible) & ~np.eye(prior.size, dtype=bool)
    counts = counts + STAYED * np.diag(possible) + MOVED * others / max(possible.sum() - 1, 1)
    counts = np.where(possible[:, None], counts, prior.reshape(-1))
    return (counts / counts.sum(1, keepdims=True)).reshape(prior.shape * 2)


def mean_stays(
    transition: Float[np.ndarray, "S U S U"], prior: Float[np.ndarray, "S U"]
) -> tuple[Float[np.ndarray, " S"], Float[np.ndarray, " U"]]:
    """Mean steps that each secret and each useful value lasts, entered as often as the prior has it."""

    def lasting(kept: Float[np.ndarray, "S U"], axis: int) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return prior.sum(axis) / (prior * (1 - kept)).sum(axis)

    return lasting(np.einsum("susv->su", transition), 1), lasting(np.einsum("sutu->su", transition), 0)
