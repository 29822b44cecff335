"""Episodes as an agent plays them, compiled once for each kind of process: the numbers of a process are arguments.

All chance of an environment comes from one key, which every start and every move splits: (kept, used). So a vector
environment that restarts within compiled code plays what single environments play that are reset by hand.

The leaves of a process are arrays, so plain `jax.jit` will do: `eqx.filter_jit` would sort the arguments anew at every
step, which takes longer than the step.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.policy.actor import Features
from reticent.process.process import PublicState, State
from reticent.types import Allowed, Array, Flag, Index, PRNGKey, Scalar

# What Gymnasium's `info` says where nothing was sent; there it must be a number.
NO_SYMBOL = -1


class Play(eqx.Module):
    """An episode under way, and the key that the rest of its chance comes from."""

    state: State
    key: PRNGKey


class Sight(eqx.Module):
    """What an agent is told of a public state. `stop_cost` is what stopping there would cost."""

    observation: Float[Array, " F"]
    allowed: Allowed
    stop_cost: Scalar


class Outcome(eqx.Module):
    """What a move did. `symbol` is NO_SYMBOL after the stop."""

    cost: Scalar
    symbol: Index
    violated: Flag
    terminated: Flag
    truncated: Flag


def first_key(chance: np.random.Generator) -> PRNGKey:
    """The key of a seeded environment. It is drawn, because Gymnasium's seeds may be larger than JAX's."""
    return jax.random.key(int(chance.integers(2**63)))


def _sight(features: Features, public: PublicState) -> Sight:
    return Sight(features(public), public.allowed, features.process.stop_cost(public.belief))


def _start(features: Features, key: PRNGKey) -> tuple[Play, Sight]:
    key, used = jax.random.split(key)
    state = features.process.init(used)
    return Play(state, key), _sight(features, state.public)


def _move(features: Features, play: Play, action: Index) -> tuple[Play, Sight, Outcome]:
    key, used = jax.random.split(play.key)
    after = features.process.step(used, play.state, action)
    symbol = jnp.where(action < features.process.sensors, after.symbol, NO_SYMBOL)
    outcome = Outcome(after.cost, symbol, after.violated, after.terminated, after.truncated)
    return Play(after.state, key), _sight(features, after.state.public), outcome


@jax.jit
@eqx.debug.assert_max_traces(max_traces=None)
def start(features: Features, key: PRNGKey) -> tuple[Play, Sight]:
    """A fresh episode, and what its agent is told first."""
    return _start(features, key)


@jax.jit
@eqx.debug.assert_max_traces(max_traces=None)
def move(features: Features, play: Play, action: Index) -> tuple[Play, Sight, Outcome]:
    """One action that is allowed, what is seen where it led to, and what it did."""
    return _move(features, play, action)


@jax.jit
@eqx.debug.assert_max_traces(max_traces=None)
def start_all(features: Features, keys: PRNGKey) -> tuple[Play, Sight]:
    """Fresh episodes side by side, one per key."""
    return jax.vmap(lambda key: _start(features, key))(keys)


@jax.jit
@eqx.debug.assert_max_traces(max_traces=None)
def move_all(features: Features, plays: Play, actions: Array) -> tuple[Play, Sight, Sight, Outcome]:
    """One action in each episode. Where that ends it, play goes on in a fresh one, from which the first sight is; the
    second is of where the action led to."""

    def one(play: Play, action: Index) -> tuple[Play, Sight, Sight, Outcome]:
        play, reached, outcome = _move(features, play, action)
        fresh = _start(features, play.key)
        done = outcome.terminated | outcome.truncated
        play, seen = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, (play, reached))
        return play, seen, reached, outcome

    return jax.vmap(one)(plays, actions)
