"""Upper confidence limits on what a rule for answers lets the provider know, from episodes of private reading.

A *source* x is how private reading ended: (time, best guess). A *cell* c is what the provider sees: (time, answer), or
silence up to a time. A rule gives each cell a weight k(c | x), and P(s | c) < L if and only if

    E[ k(c | x) (beta(s) - L) ] < 0,    beta the device's own belief at the end, x its source:

beliefs are used in place of drawn secrets, which have the same mean and more noise. All of beta's mean is the prior,
which is known, so c (beta(s) - prior(s)) can be taken off to lessen the noise, for any slope c fixed beforehand.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from reticent.policy.answer import best_guess
from reticent.process.rollout import Episode
from reticent.types import Array, Scalar

# Bisections of [0, 1] for a limit: finer than anything that is shown.
HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Moments:
    """Means over episodes, by source: of 1, of beta(s, u), of beta(s)^2, each counted as zero in other sources."""

    episodes: int
    mass: Float[np.ndarray, " X"]
    joint: Float[np.ndarray, "X S U"]
    square: Float[np.ndarray, "X S"]

    @property
    def secret(self) -> Float[np.ndarray, "X S"]:
        """Mean of beta(s), by source."""
        return self.joint.sum(2)

    def law(self, prior: Float[np.ndarray, "S U"]) -> Float[np.ndarray, "X S U"]:
        """P(x, s, u) = prior(s, u) P(x | s, u): the estimate whose sum over sources is exactly the prior."""
        total = self.joint.sum(0)
        return self.joint * np.where(total > 0, prior / np.where(total > 0, total, 1.0), 0.0)


def moments_of(private: Episode, times: Int[np.ndarray, " K"]) -> Moments:
    """Moments of episodes of private reading; one that ends between two times counts for the later."""
    belief = np.asarray(private.belief)
    episodes, secrets, useful = belief.shape
    source = np.searchsorted(times, private.releases) * useful + best_guess(private)

    def by_source(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " X"]:
        return np.bincount(source, values, len(times) * useful) / episodes

    joint = [by_source(belief[:, s, u]) for s in range(secrets) for u in range(useful)]
    square = [by_source(belief[:, s].sum(1) ** 2) for s in range(secrets)]
    shape = (-1, secrets, useful)
    return Moments(episodes, by_source(np.ones(episodes)), np.stack(joint, 1).reshape(shape), np.stack(square, 1))


@dataclass(frozen=True)
class Reach:
    """How far a true mean may lie above a sample's: `deviations` sqrt(variance) + `ranges` range."""

    deviations: float
    ranges: float

    def wider(self, factor: float) -> "Reach":
        """The same, several times as far."""
        return Reach(factor * self.deviations, factor * self.ranges)


def reach(episodes: int, mistake: float) -> Reach:
    """The empirical Bernstein bound (Maurer and Pontil, 2009, theorem 4): wrong with at most this chance, for any n."""
    log = np.log(2 / mistake)
    return Reach(float(np.sqrt(2 * log / (episodes - 1))), float(7 * log / (3 * (episodes - 1))))


def slopes(moments: Moments, limit: float) -> Float[np.ndarray, "X S"]:
    """Regression of 1_x (beta(s) - L) on beta(s): the slope of a cell is the sum of these, weighted by its chances."""
    first, total = moments.secret, moments.secret.sum(0)
    variance = moments.square.sum(0) - total**2
    covariance = moments.square - limit * first - (first - limit * moments.mass[:, None]) * total
    return covariance / np.where(variance > 1e-12, variance, np.inf)


def excess(
    weights: Float[Array, " X"],
    slope: Scalar,
    moments: tuple[Float[Array, " X"], Float[Array, " X"], Float[Array, " X"]],
    prior: Scalar,
    limit: Scalar,
    reach: tuple[Scalar, Scalar],
) -> Scalar:
    """Upper confidence limit of E[k (beta - L) - c (beta - prior)] for one cell and one secret: negative if it is safe.

    Convex in the weights, and twice the weights have twice the excess.
    """
    mass, first, square = moments
    # In an episode of source x with belief beta the summand is tilt[x] beta + level[x].
    tilt, level = weights - slope, slope * prior - weights * limit
    mean = jnp.sum(tilt * first + level * mass)
    variance = jnp.sum(tilt**2 * square + 2 * tilt * level * first + level**2 * mass) - mean**2
    ends = jnp.concatenate([level, level + tilt])
    # The floor keeps the derivative of the root finite; it is far below the noise of any sample.
    deviation = jnp.sqrt(jnp.maximum(variance, 1e-24))
    # By index: the derivative of a maximum looks for the entries that equal it, and once compiled none need be found.
    span = ends[jnp.argmax(ends)] - ends[jnp.argmin(ends)]
    return mean + reach[0] * deviation + reach[1] * span


# Over secrets, then over cells.
_all_excesses = jax.jit(
    jax.vmap(jax.vmap(excess, (None, 0, (None, 1, 1), 0, None, None)), (0, 0, (None, None, None), None, 0, None))
)


def excesses(
    weights: Float[np.ndarray, "C X"],
    slope: Float[np.ndarray, "C S"],
    moments: Moments,
    prior: Float[np.ndarray, " S"],
    limit: Float[np.ndarray, " C"],
    reach: Reach,
) -> Float[np.ndarray, "C S"]:
    """The excess of every cell and secret, each cell over a limit of its own."""
    of = moments.mass, moments.secret, moments.square
    return np.asarray(_all_excesses(weights, slope, of, prior, limit, (reach.deviations, reach.ranges)))


def upper_limits(
    weights: Float[np.ndarray, "C X"],
    slope: Float[np.ndarray, "C S"],
    moments: Moments,
    prior: Float[np.ndarray, " S"],
    reach: Reach,
) -> Float[np.ndarray, " C"]:
    """The smallest limit on the largest P(s | c) that the sample supports, one where it supports none below."""
    low, high = np.zeros(len(weights)), np.ones(len(weights))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        safe = (excesses(weights, slope, moments, prior, middle, reach) < 0).all(1)
        low, high = np.where(safe, low, middle), np.where(safe, middle, high)
    return high
