"""Baselines at their best: each heuristic with the stopping threshold that costs least, tuned on a seed of its own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.policy.heuristics import (
    Chernoff,
    ExtrinsicJensenShannon,
    InformationGain,
    OneStepLookahead,
    chernoff_mixture,
)
from reticent.policy.policy import FixedSensor, RandomSensor
from reticent.process.release import ReleaseProcess
from reticent.process.rollout import Act, Moment, rollout
from reticent.types import Array, PRNGKey

ThresholdRule = RandomSensor | FixedSensor | OneStepLookahead | InformationGain | ExtrinsicJensenShannon | Chernoff
KAPPAS = (0.0, 0.5, 1.0)
# Zero stops at once; two is never reached.
THRESHOLDS = np.concatenate([[0.0], np.linspace(0.34, 0.98, 65), [0.985, 0.99, 0.995, 0.999, 2.0]])
NEVER = jnp.asarray(2.0)


def tuned_baseline(name: str, process: ReleaseProcess, seed: int, episodes: int = 2048) -> ThresholdRule:
    """The named baseline with the settings of least mean cost over the tuning episodes."""
    best, cheapest = None, np.inf
    for rule in _rules(name, process):
        costs = _threshold_costs(process, rule.act, seed, episodes)
        if costs.min() < cheapest:
            best, cheapest = eqx.tree_at(_threshold, rule, jnp.asarray(THRESHOLDS[costs.argmin()])), costs.min()
    assert best is not None
    return best


def _rules(name: str, process: ReleaseProcess) -> list[ThresholdRule]:
    """The variants of a baseline, none of which stops by threshold yet."""
    match name:
        case "random sensor":
            return [RandomSensor(NEVER)]
        case "fixed sensor":
            return [FixedSensor(sensor, NEVER) for sensor in jnp.arange(process.sensors)]
        case "one-step lookahead":
            return [OneStepLookahead(process, NEVER)]
        case "information gain":
            return [InformationGain(process, jnp.asarray(kappa), NEVER) for kappa in KAPPAS]
        case "EJS":
            return [ExtrinsicJensenShannon(process, NEVER)]
        case "Chernoff":
            mixture = chernoff_mixture(np.asarray(process.prior), np.asarray(process.channel))
            return [Chernoff(jnp.asarray(mixture), NEVER)]
        case _:
            raise ValueError(f"There is no baseline {name!r}.")


def _threshold(rule: ThresholdRule) -> Array:
    return rule.threshold


def _threshold_costs(process: ReleaseProcess, act: Act, seed: int, episodes: int) -> Float[np.ndarray, " K"]:
    """Mean cost of a rule under each threshold, all from the same episodes.

    The rule plays on without a threshold; stopping at the first moment when max_u beta(u) reaches one would have
    cost what was paid until then plus the stop there. Episodes are cut, and declared, after lambda / C_T releases: by
    then they have cost more than declaring at once ever could.
    """
    length = int(np.ceil(process.error_penalty / process.time_cost))
    moments = jax.device_get(_play(process, act, jax.random.split(jax.random.key(seed), episodes), length))
    done = moments.terminated | moments.truncated
    ended = np.where(done.any(1), done.argmax(1), length - 1)
    paid = np.cumsum(moments.cost, axis=1)
    rows = np.arange(episodes)
    stop = float(process.error_penalty) * (1 - moments.public.belief.sum(2).max(2))
    last = moments.after.belief[rows, ended].sum(1).max(1)
    cut = np.where(moments.terminated[rows, ended], 0.0, float(process.error_penalty) * (1 - last))
    costs = []
    for threshold in THRESHOLDS:
        reached = 1 - stop / float(process.error_penalty) >= threshold
        first = np.where(reached.any(1), reached.argmax(1), length)
        at = np.minimum(first, ended)
        stopped = paid[rows, at] - moments.cost[rows, at] + stop[rows, at]
        costs.append(np.where(first <= ended, stopped, paid[rows, ended] + cut).mean())
    return np.array(costs)


@eqx.filter_jit
def _play(process: ReleaseProcess, act: Act, keys: PRNGKey, length: int) -> Moment:
    def one(key: PRNGKey) -> Moment:
        begin_key, key = jax.random.split(key)
        return rollout(process, act, key, process.init(begin_key), length)[1]

    return jax.vmap(one)(keys)
