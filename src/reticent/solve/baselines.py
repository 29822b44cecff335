"""Tuned baselines: each heuristic with the stopping threshold of least cost, found on a seed of its own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from reticent.policy.heuristics import ThresholdRule, threshold_rules
from reticent.policy.policy import NEVER
from reticent.process.process import Process, State
from reticent.process.rollout import Act, begin, rollout
from reticent.types import Array, PRNGKey

# Zero stops at once.
THRESHOLDS = np.concatenate([[0.0], np.linspace(0.34, 0.98, 65), [0.985, 0.99, 0.995, 0.999, NEVER]])
STEPS_AT_ONCE = 10


def tuned_baseline(name: str, process: Process, seed: int, episodes: int = 2048) -> ThresholdRule:
    """The named baseline with the settings of least mean cost over the tuning episodes."""
    rules = list(threshold_rules(name, process).values())
    costs = np.array([_threshold_costs(process, rule.act, seed, episodes) for rule in rules])
    rule, threshold = np.unravel_index(costs.argmin(), costs.shape)
    return eqx.tree_at(_threshold, rules[rule], jnp.asarray(THRESHOLDS[threshold]))


def _threshold(rule: ThresholdRule) -> Array:
    return rule.threshold


def _threshold_costs(process: Process, act: Act, seed: int, episodes: int) -> Float[np.ndarray, " K"]:
    """Mean cost of a rule under each threshold, all from the same episodes.

    The rule plays on without a threshold; stopping at the first moment when max_u beta(u) reaches one would have
    cost what was paid until then plus the stop there. Episodes are cut, and declared, after lambda / C_T releases: by
    then they have cost more than declaring at once ever could.
    """
    length = int(np.ceil(process.objective.error_penalty / process.objective.time_cost))
    played = _play(process, act, seed, episodes, length)
    length = played.cost.shape[1]
    done = played.terminated | played.truncated
    ended = np.where(done.any(1), done.argmax(1), length - 1)
    paid = np.cumsum(played.cost, axis=1)
    rows = np.arange(episodes)
    cut = np.where(played.terminated[rows, ended], 0.0, played.stop_after[rows, ended])
    costs = []
    for threshold in THRESHOLDS:
        reached = played.sure >= threshold
        first = np.where(reached.any(1), reached.argmax(1), length)
        at = np.minimum(first, ended)
        stopped = paid[rows, at] - played.cost[rows, at] + played.stop[rows, at]
        costs.append(np.where(first <= ended, stopped, paid[rows, ended] + cut).mean())
    return np.array(costs)


class _Played(eqx.Module):
    """What tuning needs to know of each step; `sure` is max_u beta(u) before it, `stop` the stop cost there."""

    cost: Float[Array, "*N T"]
    terminated: Bool[Array, "*N T"]
    truncated: Bool[Array, "*N T"]
    sure: Float[Array, "*N T"]
    stop: Float[Array, "*N T"]
    stop_after: Float[Array, "*N T"]


def _play(process: Process, act: Act, seed: int, episodes: int, length: int) -> _Played:
    """`length` steps of each episode, or fewer if all have ended before."""
    begin_key, *keys = jax.random.split(jax.random.key(seed), 1 + -(-length // STEPS_AT_ONCE))
    states = begin(process, jax.random.split(begin_key, episodes))
    pieces, ended = [], np.zeros(episodes, bool)
    for key in keys:
        states, piece = _play_on(process, act, jax.random.split(key, episodes), states)
        pieces.append(jax.device_get(piece))
        ended |= (pieces[-1].terminated | pieces[-1].truncated).any(1)
        if ended.all():
            break
    return jax.tree.map(lambda *parts: np.concatenate(parts, axis=1)[:, :length], *pieces)


@eqx.filter_jit
def _play_on(process: Process, act: Act, keys: PRNGKey, states: State) -> tuple[State, _Played]:
    def one(start: tuple[PRNGKey, State]) -> tuple[State, _Played]:
        state, moments = rollout(process, act, *start, STEPS_AT_ONCE)
        before, after = (jax.vmap(process.stop_cost)(public.belief) for public in (moments.public, moments.after))
        sure = moments.public.belief.sum(1).max(1)
        return state, _Played(moments.cost, moments.terminated, moments.truncated, sure, before, after)

    # In pieces: under a guarantee each moment holds the kernels in force, too much for all episodes at once.
    return jax.lax.map(one, (keys, states), batch_size=128)
