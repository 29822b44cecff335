"""Bidirectional recurrent attacker: one LSTM reads what was released forwards, another backwards, and both together
say what was hidden at every moment."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float, Int

from reticent.audit.look_back import LookBackAttacker
from reticent.audit.moving_traces import MovingTraces, pair_frequencies
from reticent.audit.network import Network
from reticent.audit.posterior import Posterior, posterior_of
from reticent.audit.traces import PADDING
from reticent.types import Array, PRNGKey, Scalar

# Episodes are read in pieces of so many steps; the outer quarters only tell what came before and after.
STEPS = 128
MARGIN = STEPS // 4
BATCH, UPDATES, BETWEEN, PATIENCE = 64, 600, 25, 4
LEARNING_RATE, DECAY = 2e-3, 0.5
HELD_OUT = 0.2
PIECES_AT_ONCE = 256
SURE = 6.0


class Pieces(NamedTuple):
    """Pieces of episodes as network input; steps of weight zero are beyond an episode's end, or in a margin."""

    sensor: Int[Any, "N T"]
    symbol: Int[Any, "N T"]
    numbers: Float[Any, "N T K"]
    pair: Int[Any, "N T"]
    weight: Float[Any, "N T"]


class Bidirectional(eqx.Module):
    """Two networks, one of which reads backwards; their logits add up."""

    forward: Network
    backward: Network

    def __init__(self, sizes: tuple[int, int, int], pairs: int, key: PRNGKey) -> None:
        first, second = jax.random.split(key)
        self.forward, self.backward = Network(*sizes, pairs, first), Network(*sizes, pairs, second)

    def log_beliefs(self, seen: Pieces, possible: Bool[Array, " P"]) -> Float[Array, "N T P"]:
        """Log posterior of the pair at each step, given all of the piece."""
        said = seen.sensor, seen.symbol, seen.numbers
        backwards = self.backward.logits(*(jnp.flip(each, 1) for each in said))
        logits = self.forward.logits(*said) + jnp.flip(backwards, 1)
        return jax.nn.log_softmax(jnp.where(possible[None, None], logits, -1e9))


class BiLstm(LookBackAttacker):
    """Trained until the loss on held-out people no longer falls; the network with the lowest is kept."""

    name = "bidirectional LSTM"

    def __init__(self, seed: int = 0, report: Callable[[int, float], None] | None = None) -> None:
        self.seed, self.report = seed, report

    def fit(self, traces: MovingTraces) -> None:
        rng = np.random.default_rng(self.seed)
        held_out = _held_out(traces, rng)
        learned, judged = pieces_of(traces.take(~held_out)), pieces_of(traces.take(held_out))
        judged = _first(judged, PIECES_AT_ONCE)
        self.prior = pair_frequencies(traces)
        possible = jnp.asarray(self.prior.reshape(-1) > 0)
        sizes = len(traces.names.sensors) + 1, len(traces.names.symbols) + 1, learned.numbers.shape[2]
        network = Bidirectional(sizes, self.prior.size, jax.random.key(self.seed))
        state, lowest, waited = _optimiser().init(network), np.inf, 0
        self.network = network
        for done in range(BETWEEN, UPDATES + 1, BETWEEN):
            rows = rng.integers(len(learned.sensor), size=(BETWEEN, BATCH))
            network, state = _advance(network, state, possible, _taken(learned, rows))
            loss = float(_loss(network, possible, judged))
            waited = 0 if loss < lowest else waited + 1
            if loss < lowest:
                self.network, lowest = network, loss
            if self.report:
                self.report(done, lowest)
            if waited >= PATIENCE:
                break

    def posterior(self, traces: MovingTraces) -> Posterior:
        seen, rows = pieces_of(traces), _rows_of(traces)
        possible, belief = jnp.asarray(self.prior.reshape(-1) > 0), np.zeros((len(traces), self.prior.size))
        for start in range(0, len(rows), PIECES_AT_ONCE):
            found = np.asarray(_beliefs(self.network, possible, _first(seen, PIECES_AT_ONCE, start)), float)
            own = rows[start : start + PIECES_AT_ONCE]
            counts = seen.weight[start : start + PIECES_AT_ONCE] > 0
            belief[own[counts]] = found[: len(own)][counts]
        return posterior_of((belief / belief.sum(1, keepdims=True)).reshape(-1, *self.prior.shape), self.prior)


def _held_out(traces: MovingTraces, rng: np.random.Generator) -> Bool[np.ndarray, " N"]:
    """The rows of some people, or of some episodes where there is one person only."""
    unit = traces.person if len(np.unique(traces.person)) > 1 else traces.episode
    units = rng.permutation(np.unique(unit))
    return np.isin(unit, units[: max(1, int(HELD_OUT * len(units)))])


def _rows_of(traces: MovingTraces) -> Int[np.ndarray, "N T"]:
    """Which row stands at each step of each piece; beyond an episode's ends, `PADDING`."""
    found = []
    for rows in np.split(np.arange(len(traces)), np.flatnonzero(np.diff(traces.episode)) + 1):
        inner = STEPS - 2 * MARGIN
        starts = np.arange(0, len(rows), inner) - MARGIN
        place = starts[:, None] + np.arange(STEPS)
        inside = (place >= 0) & (place < len(rows))
        found.append(np.where(inside, rows[np.clip(place, 0, len(rows) - 1)], PADDING))
    return np.concatenate(found)


def pieces_of(traces: MovingTraces) -> Pieces:
    """All episodes in pieces that overlap by their margins."""
    rows = _rows_of(traces)
    inside = rows != PADDING
    spoke = inside & (traces.sensor[rows] != PADDING)
    inner = (np.arange(STEPS) >= MARGIN) & (np.arange(STEPS) < STEPS - MARGIN)
    return Pieces(
        sensor=np.where(spoke, traces.sensor[rows], len(traces.names.sensors)),
        symbol=np.where(spoke, traces.symbol[rows], len(traces.names.symbols)),
        numbers=_evidence(traces)[rows] * inside[..., None],
        pair=traces.pair[rows],
        weight=(inside & inner).astype(np.float32),
    )


def _evidence(traces: MovingTraces) -> Float[np.ndarray, "N K"]:
    """What the public rule says of each step, where the model is known; and that there is a step at all."""
    there = np.ones((len(traces), 1), np.float32)
    if traces.likelihood is None:
        return there
    logs = np.log(np.maximum(traces.likelihood.reshape(len(traces), -1), 1e-9))
    centred = np.clip(logs - logs.mean(1, keepdims=True), -SURE, SURE)
    return np.concatenate([there, centred], axis=1, dtype=np.float32)


def _taken(seen: Pieces, rows: Int[np.ndarray, "..."]) -> Pieces:
    return Pieces(*(each[rows] for each in seen))


def _first(seen: Pieces, count: int, start: int = 0) -> Pieces:
    """So many pieces from one on; the last is repeated, without weight, to fill the shape."""
    rows = start + np.arange(count)
    taken = _taken(seen, np.minimum(rows, len(seen.sensor) - 1))
    return taken._replace(weight=taken.weight * (rows < len(seen.sensor))[:, None])


def _optimiser() -> Any:  # optax's types do not know Equinox modules
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(LEARNING_RATE, weight_decay=DECAY))


def _cross_entropy(network: Bidirectional, possible: Array, seen: Pieces) -> Scalar:
    log_beliefs = network.log_beliefs(seen, possible)
    true = jnp.take_along_axis(log_beliefs, seen.pair[..., None], axis=2)[..., 0]
    return -jnp.sum(seen.weight * true) / jnp.maximum(jnp.sum(seen.weight), 1.0)


_loss = jax.jit(_cross_entropy)


@jax.jit
def _beliefs(network: Bidirectional, possible: Array, seen: Pieces) -> Float[Array, "N T P"]:
    return jnp.exp(network.log_beliefs(seen, possible))


@jax.jit
def _advance(network: Bidirectional, state: Any, possible: Array, batches: Pieces) -> tuple[Bidirectional, Any]:
    """One update per batch, stacked along the first axis, in one compiled scan."""

    def update(carry, seen):
        network, state = carry
        gradient = jax.grad(_cross_entropy)(network, possible, seen)
        step, state = _optimiser().update(gradient, state, network)
        return (eqx.apply_updates(network, step), state), None

    return jax.lax.scan(update, (network, state), batches)[0]
