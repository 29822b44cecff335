"""Wrong models: the device decides with the model that it assumes, but its sensors follow another channel.

The informed adversary knows that channel and the public rule. It sees what is sent and does exact Bayes,

    beta(s, u)  becomes proportional to  beta(s, u) sum_z chance(z sent as this symbol) q_true(z | a, s, u),

so a guarantee that holds for the assumed belief need not hold for its own.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from reticent.belief.bayes import update
from reticent.errors import InputError
from reticent.evaluate.estimate import Estimate, mean, rate
from reticent.evaluate.evaluation import check_episodes
from reticent.policy.policy import Policy
from reticent.process.process import Process
from reticent.process.rollout import Sent, simulate_traced

RAREST = 1e-12


@dataclass(frozen=True)
class Mismatch:
    """What the informed adversary learns from a device with a wrong model.

    `violation_rate` counts episodes in which its confidence in a secret reached the bound at any moment; only a bound
    on confidence has one. `confidence_secret` is its max_s beta(s) at the end, `highest_confidence` the largest of any
    episode at any moment. `accuracy_secret_assumed` is of somebody who trusts the assumed model.
    """

    episodes: int
    seed: int
    violation_rate: Estimate | None
    accuracy_secret: Estimate
    accuracy_useful: Estimate
    accuracy_secret_assumed: Estimate
    confidence_secret: Estimate
    highest_confidence: float


def mismatch(
    process: Process,
    policy: Policy,
    true_channel: Float[np.ndarray, "A S U Z"],
    episodes: int = 20_000,
    seed: int = 0,
) -> Mismatch:
    """Simulate episodes whose readings follow the true channel. Deterministic given the seed."""
    check_episodes(episodes)
    records, sent = simulate_traced(process.with_true_channel(true_channel), policy.act, episodes, seed)
    beliefs, highest = informed_beliefs(np.asarray(process.prior), true_channel, sent, episodes)
    by_secret, by_useful = beliefs.sum(2), beliefs.sum(1)
    limit = process.bound.posterior_limit(by_secret.shape[1])
    return Mismatch(
        episodes=episodes,
        seed=seed,
        violation_rate=None if limit is None else rate(highest >= limit),
        accuracy_secret=rate(by_secret.argmax(1) == records.secret),
        accuracy_useful=rate(by_useful.argmax(1) == records.useful),
        accuracy_secret_assumed=rate(records.belief.sum(2).argmax(1) == records.secret),
        confidence_secret=mean(by_secret.max(1)),
        highest_confidence=float(highest.max()),
    )


def informed_beliefs(
    prior: Float[np.ndarray, "S U"], true_channel: Float[np.ndarray, "A S U Z"], sent: Sent, episodes: int
) -> tuple[Float[np.ndarray, "N S U"], Float[np.ndarray, " N"]]:
    """The belief at the end of each episode, by the true channel, and the highest confidence in a secret on the way."""
    belief = np.repeat(prior[None], episodes, axis=0)
    highest = belief.sum(2).max(1)
    step, released = np.asarray(sent.step), ~np.asarray(sent.stopped)
    for now in range(step.max() + 1):
        rows = np.flatnonzero(released & (step == now))
        episode = np.asarray(sent.episode)[rows]
        belief[episode], possible = update(belief[episode], _likelihood(true_channel, sent, rows))
        assert possible.all(), "Sensors said what their own channel calls impossible."
        highest[episode] = np.maximum(highest[episode], belief[episode].sum(2).max(1))
    return belief, highest


def _likelihood(channel: Float[np.ndarray, "A S U Z"], sent: Sent, rows: np.ndarray) -> Float[np.ndarray, "R S U"]:
    """Chance of what was sent in these rows, for each pair."""
    action = np.asarray(sent.action)[rows]
    if sent.chances is None:  # Nothing is merged: a symbol is its own reading for sure.
        return channel[action, :, :, np.asarray(sent.symbol)[rows]]
    chances = np.asarray(sent.chances)[rows]
    likelihood = np.empty((len(rows), *channel.shape[1:3]))
    for sensor, mechanism in enumerate(channel):
        likelihood[action == sensor] = np.tensordot(chances[action == sensor], mechanism, (1, 2))
    return likelihood


def sharpened(channel: Float[np.ndarray, "A S U Z"], factor: float) -> Float[np.ndarray, "A S U Z"]:
    """Every law with its deviation scaled by the factor, q^(1 / factor^2) normalised: below one it says more.

    For normal laws on a grid this is exactly sigma times the factor.
    """
    if not factor > 0:
        raise InputError(f"Deviations are scaled by a factor above zero, not {factor}.")
    # The likeliest reading becomes one first, so that powers do not all vanish.
    power = (channel / channel.max(-1, keepdims=True)) ** factor**-2
    return power / power.sum(-1, keepdims=True)


def moved_apart(channel: Float[np.ndarray, "A S U Z"], factor: float) -> Float[np.ndarray, "A S U Z"]:
    """Every law moved away from what all pairs have in common, g (q / g)^factor normalised, with g the geometric mean
    over the pairs: above one they are easier to tell apart.

    For normal laws of one deviation on a grid, the distances between means are exactly multiplied by the factor.
    """
    if not factor >= 0:
        raise InputError(f"Distances are multiplied by a factor that is not negative, not {factor}.")
    # A reading that some pair never gives would have no mean; it is taken as very rare instead, and stays impossible.
    logs = np.log(np.where(channel > 0, channel, RAREST))
    common = logs.mean((1, 2), keepdims=True)
    power = np.where(channel > 0, common + factor * (logs - common), -np.inf)
    moved = np.exp(power - power.max(-1, keepdims=True))
    return moved / moved.sum(-1, keepdims=True)


def mixed(channel: Float[np.ndarray, "A S U Z"], share: float) -> Float[np.ndarray, "A S U Z"]:
    """Every law moved towards the others: (1 - share) q + share times the mean over all other pairs."""
    if not 0 <= share <= 1:
        raise InputError(f"The share of the other pairs lies between zero and one, not at {share}.")
    pairs = channel.shape[1] * channel.shape[2]
    if pairs < 2:
        raise InputError("With one pair only there is nothing to mix with.")
    others = (channel.sum((1, 2), keepdims=True) - channel) / (pairs - 1)
    return (1 - share) * channel + share * others
