"""Training of several LSTM seeds at once: initialisation, compiled updates, held-out losses and their schedule."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float

from reticent.audit.network import Network, cross_entropy
from reticent.audit.sequences import Sequences
from reticent.audit.traces import Traces
from reticent.types import Array

SEEDS, BATCH = 4, 128
# After so many updates only the seed with the lowest held-out loss goes on: by then it shows which ones got stuck.
UPDATES_OF_ALL_SEEDS = 300
# Strong weight decay against overfitting on few episodes.
LEARNING_RATE, DECAY = 7e-3, 0.5
# Updates between two evaluations on held-out episodes.
BETWEEN = 50
# Updates per compiled call: the largest of these whose batches stay below NUMBERS_AT_ONCE.
PORTIONS, NUMBERS_AT_ONCE = (50, 25, 10, 5, 2, 1), 2**22
# The number of updates is also limited by passes over the episodes, and by steps of long episodes.
MOST_UPDATES, MOST_EPOCHS, MOST_STEPS_LEARNED = 1500, 100, 60_000


def initial_networks(seed: int, seen: Sequences, traces: Traces) -> Network:
    """Networks of all seeds, stacked along the first axis of every leaf."""
    sizes = len(traces.names.sensors) + 1, max(len(traces.names.symbols), 1) + 1, seen.numbers.shape[2]
    pairs = len(traces.names.secrets) * len(traces.names.useful)
    return jax.vmap(lambda key: Network(*sizes, pairs, key))(jax.random.split(jax.random.key(seed), SEEDS))


def selected(networks: Network, number: int) -> Network:
    """One network of a stack."""
    return jax.tree.map(lambda leaf: leaf[number], networks)


def only(stack: Any, number: int) -> Any:
    """A stack of one: this seed's networks or optimiser state."""
    return jax.tree.map(lambda leaf: leaf[number : number + 1], stack)


def stacked(network: Network) -> Network:
    """A stack of copies of one network, so that it fits the program compiled for all seeds."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (SEEDS, *leaf.shape)), network)


def updates_of(seen: Sequences) -> int:
    """The most updates for this many episodes of this length."""
    episodes, steps = seen.sensor.shape
    return max(4 * BETWEEN, min(MOST_UPDATES, MOST_EPOCHS * episodes // BATCH, MOST_STEPS_LEARNED // steps))


def portion_of(seen: Sequences) -> int:
    """Updates per compiled call."""
    numbers = SEEDS * BATCH * seen.sensor.shape[1] * (2 + seen.numbers.shape[2])
    return next(portion for portion in PORTIONS if portion == 1 or portion * numbers <= NUMBERS_AT_ONCE)


def _optimiser() -> Any:  # optax's types do not know Equinox modules
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(LEARNING_RATE, weight_decay=DECAY))


def optimiser_states(networks: Network) -> Any:
    """Initial optimiser state of each seed."""
    return jax.vmap(_optimiser().init)(networks)


@jax.jit
def losses(networks: Network, possible: Array, seen: Sequences, weight: Array) -> Float[Array, " R"]:
    """Loss of each seed; infinite where training has diverged."""
    found = jax.vmap(lambda network: cross_entropy(network, possible, seen, weight))(networks)
    return jnp.where(jnp.isnan(found), jnp.inf, found)


@jax.jit
def advance(networks: Network, optimiser: Any, possible: Array, seen: Sequences) -> tuple[Network, Any]:
    """One update of every seed per batch; batches are stacked as [updates, seeds, BATCH]."""

    def one(network: Network, state: Any, seen: Sequences) -> tuple[Network, Any]:
        gradient = jax.grad(cross_entropy)(network, possible, seen, 1 / BATCH)
        step, state = _optimiser().update(gradient, state, network)
        return eqx.apply_updates(network, step), state

    def update(carry, seen):
        # One seed after the other: products of small matrices in batches take over three times as long.
        return jax.lax.map(lambda each: one(*each), (*carry, seen)), None

    return jax.lax.scan(update, (networks, optimiser), seen)[0]
