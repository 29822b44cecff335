"""Running a process: a scan that restarts finished episodes, and whole episodes one after the other.

Both are written for one lane; callers vmap them.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from reticent.belief.bayes import secret_marginal
from reticent.process.release import PublicState, ReleaseProcess, ReleaseState, Transition
from reticent.types import Belief, Flag, Index, PRNGKey, Scalar

Act = Callable[[PRNGKey, PublicState], Index]


class Moment(eqx.Module):
    """One step of a rollout. `after` is the public state that the action led to, before any restart."""

    public: PublicState
    action: Index
    cost: Scalar
    terminated: Flag
    truncated: Flag
    after: PublicState


class Cursor(eqx.Module):
    """Where a rollout stands, so that the next one continues from there."""

    state: ReleaseState
    public: PublicState


def begin(process: ReleaseProcess, key: PRNGKey) -> Cursor:
    """A cursor at the start of a fresh episode."""
    state = process.init(key)
    return Cursor(state, process.public(state))


def rollout(process: ReleaseProcess, act: Act, key: PRNGKey, cursor: Cursor, length: int) -> tuple[Cursor, Moment]:
    """`length` steps from the cursor on; a finished episode restarts. Returns the new cursor and moments [T]."""

    def advance(cursor: Cursor, key: PRNGKey) -> tuple[Cursor, Moment]:
        act_key, step_key, init_key = jax.random.split(key, 3)
        action = act(act_key, cursor.public)
        transition = process.step(step_key, cursor.state, action)
        after = Cursor(transition.state, process.public(transition.state))
        done = transition.terminated | transition.truncated
        fresh = begin(process, init_key)
        moment = Moment(
            cursor.public, action, transition.cost, transition.terminated, transition.truncated, after.public
        )
        return jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, after), moment

    return jax.lax.scan(advance, cursor, jax.random.split(key, length))


class Episode(eqx.Module):
    """How one episode went. The stop cost of an episode cut at the horizon is charged where it was cut."""

    cost: Scalar
    violation_cost: Scalar
    releases: Index
    spent_bits: Scalar
    highest_confidence: Scalar
    violated: Flag
    truncated: Flag
    belief: Belief
    secret: Index
    useful: Index


def episodes(process: ReleaseProcess, act: Act, key: PRNGKey, count: int) -> Episode:
    """`count` episodes one after the other, each from the prior to its end. Returns their records [count].

    One flat loop over steps rather than a loop within a loop: lanes that run side by side then wait for the
    longest lane, not for the longest episode of each round.
    """
    first_key, key = jax.random.split(key)
    cursor = begin(process, first_key)
    record = _empty_record(cursor.state)
    records = jax.tree.map(lambda value: jnp.zeros((count, *value.shape), value.dtype), record)

    def advance(carry):
        cursor, record, records, finished, key = carry
        key, act_key, step_key, init_key = jax.random.split(key, 4)
        action = act(act_key, cursor.public)
        transition = process.step(step_key, cursor.state, action)
        record = _extend(process, record, action, transition)
        records = jax.tree.map(lambda all_, one: all_.at[finished].set(one), records, record)
        done = transition.terminated | transition.truncated
        after = Cursor(transition.state, process.public(transition.state))
        fresh = begin(process, init_key)
        restart = (fresh, _empty_record(fresh.state))
        cursor, record = jax.tree.map(lambda new, old: jnp.where(done, new, old), restart, (after, record))
        return cursor, record, records, finished + done, key

    start = (cursor, record, records, jnp.zeros((), int), key)
    return jax.lax.while_loop(lambda carry: carry[3] < count, advance, start)[2]


# Many episodes per lane even out their lengths, so that lanes wait little for the longest.
LANES, EPISODES_PER_LANE = 512, 16


def simulate(process: ReleaseProcess, act: Act, count: int, seed: int) -> Episode:
    """Records of `count` independent episodes, as numpy arrays [count]. Deterministic given the seed.

    Pieces of one size, whatever the count, so that a policy is compiled once for all its simulations.
    """
    piece = LANES * EPISODES_PER_LANE
    keys = jax.random.split(jax.random.key(seed), -(-count // piece))
    records = [jax.device_get(_simulate_piece(process, act, key)) for key in keys]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *records)


@eqx.filter_jit
def _simulate_piece(process: ReleaseProcess, act: Act, key: PRNGKey) -> Episode:
    lanes = jax.vmap(lambda key: episodes(process, act, key, EPISODES_PER_LANE))(jax.random.split(key, LANES))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), lanes)


def _empty_record(state: ReleaseState) -> Episode:
    return Episode(
        cost=jnp.zeros(()),
        violation_cost=jnp.zeros(()),
        releases=state.step,
        spent_bits=state.spent_bits,
        highest_confidence=jnp.max(secret_marginal(state.belief)),
        violated=jnp.zeros((), bool),
        truncated=jnp.zeros((), bool),
        belief=state.belief,
        secret=state.secret,
        useful=state.useful,
    )


def _extend(process: ReleaseProcess, record: Episode, action: Index, transition: Transition) -> Episode:
    state = transition.state
    plain = jnp.where(action >= process.sensors, transition.cost, process.time_cost)
    declared_late = jnp.where(transition.truncated, process.stop_cost(state.belief), 0.0)
    return Episode(
        cost=record.cost + transition.cost + declared_late,
        violation_cost=record.violation_cost + transition.cost - plain,
        releases=state.step,
        spent_bits=state.spent_bits,
        highest_confidence=jnp.maximum(record.highest_confidence, jnp.max(secret_marginal(state.belief))),
        violated=record.violated | transition.violated,
        truncated=transition.truncated,
        belief=state.belief,
        secret=state.secret,
        useful=state.useful,
    )
