"""A recurrent attacker: a network that reads what was released, one release after the other.

It starts from several seeds at once and learns until none of them gets better on episodes that it does not learn from.
The best network counts, of all that it was ever fitted to: fitted again to more traces, it also remembers those of
before, so that it is never worse than its own learning curve but by chance. All updates, of all seeds and for any
number of episodes, are one compiled program.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float, Int

from reticent.audit.attackers import Attacker
from reticent.audit.confidence import Confidence, confidence_of, frequencies
from reticent.audit.features import Scale, scaled
from reticent.audit.traces import NOTHING, Traces
from reticent.belief.filter import Filter
from reticent.belief.learn import Examples
from reticent.types import Array, Belief, PRNGKey, Scalar

WIDTH, SEEDS, BATCH = 48, 4, 128
# Strong decay: what single episodes say by chance is forgotten again.
LEARNING_RATE, DECAY = 7e-3, 0.5
# A look at the held-out episodes after so many updates; so many looks without a lower loss end it.
BETWEEN, PATIENCE, MOST_UPDATES = 50, 14, 1500
PORTIONS = (50, 25, 10, 5, 2, 1)
# Fewer updates where episodes are few, or long: each is seen so often, and so many steps are learned in all.
MOST_EPOCHS, MOST_STEPS_LEARNED = 100, 60_000
# Of longer episodes it reads the beginning only.
MOST_STEPS = 200
# Episodes that it is judged on, or that it looks at in one go; numbers of episodes that are handed over in one go.
EPISODES_AT_ONCE, NUMBERS_AT_ONCE = 1024, 2**22
HELD_OUT = 0.2


class Released(NamedTuple):
    """Episodes as the network reads them; the stop is a step of its own. Symbols, or numbers (readings, waits)."""

    sensor: Int[np.ndarray, "N T"]
    symbol: Int[np.ndarray, "N T"]
    numbers: Float[np.ndarray, "N T K"]
    length: Int[np.ndarray, " N"]
    pair: Int[np.ndarray, " N"]

    def take(self, rows: Any) -> "Released":
        """Some of the episodes."""
        return Released(*(each[rows] for each in self))


class Network(eqx.Module):
    """One LSTM layer and a softmax over the hidden pairs. What a sensor and what a symbol add to the gates is looked
    up; numbers are weighed."""

    sensor: Float[Array, "A G"]
    symbol: Float[Array, "Z G"]
    numbers: Float[Array, "K G"]
    recurrent: Float[Array, "W G"]
    head: Float[Array, "W P"]
    bias: Float[Array, " P"]

    def __init__(self, sensors: int, symbols: int, numbers: int, pairs: int, key: PRNGKey) -> None:
        keys = jax.random.split(key, 4)

        def drawn(key: PRNGKey, rows: int) -> Array:
            return 0.3 * jax.random.normal(key, (rows, 4 * WIDTH), jnp.float32)

        self.sensor, self.symbol, self.numbers = (
            drawn(k, n) for k, n in zip(keys[:3], (sensors, symbols, numbers), strict=True)
        )
        self.recurrent = jax.random.normal(keys[3], (WIDTH, 4 * WIDTH), jnp.float32) / np.float32(WIDTH**0.5)
        self.head, self.bias = jnp.zeros((WIDTH, pairs), jnp.float32), jnp.zeros(pairs, jnp.float32)

    def log_beliefs(self, seen: Released, possible: Bool[Array, " P"]) -> Float[Array, "N T P"]:
        """After each step of each episode; pairs that never came are impossible."""
        gates = self.sensor[seen.sensor] + self.symbol[seen.symbol] + seen.numbers @ self.numbers

        def step(carry, gates):
            hidden, memory = carry
            take_in, keep, give, new = jnp.split(gates + hidden @ self.recurrent, 4, -1)
            # Memory lasts unless it learns to forget.
            memory = jax.nn.sigmoid(keep + 1) * memory + jax.nn.sigmoid(take_in) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(give) * jnp.tanh(memory)
            return (hidden, memory), hidden

        start = jnp.zeros((len(seen.sensor), WIDTH), jnp.float32)
        _, hidden = jax.lax.scan(step, (start, start), jnp.swapaxes(gates, 0, 1))
        logits = jnp.swapaxes(hidden, 0, 1) @ self.head + self.bias[None, None]
        return jax.nn.log_softmax(jnp.where(possible[None, None], logits, -1e9))


class Learned(NamedTuple):
    """A network, what it takes for usual and for possible, and its loss on held-out episodes."""

    network: Network
    scale: Scale | None
    before: Float[np.ndarray, "S U"]
    loss: float


class Lstm(Attacker):
    """A recurrent network over the releases, with the stop as a step of its own. Of very long episodes it reads the
    beginning."""

    name = "LSTM"

    def __init__(self, seed: int = 0, report: Callable[[int, float], None] | None = None) -> None:
        self.seed, self.report = seed, report
        self.known: list[Learned] = []

    def fit(self, traces: Traces) -> None:
        held_out = _held_out(traces, self.seed)
        judged = traces.take(held_out)
        # Networks of earlier fits are judged anew, by what the new ones are judged by.
        again = [
            one._replace(loss=float(_losses(_alone(one.network), *_checked(judged, one))[0])) for one in self.known
        ]
        self.known = [*again, self._learned(traces.take(~held_out), judged, traces)]
        self.best = min(self.known, key=lambda one: one.loss)

    def confidence(self, traces: Traces) -> Confidence:
        seen, before = released(traces, self.best.scale), self.best.before
        possible = jnp.asarray(before.reshape(-1) > 0)
        starts = range(0, len(traces), EPISODES_AT_ONCE)
        pieces = [_ends(self.best.network, possible, seen.take(_piece(start, len(traces)))) for start in starts]
        belief = np.concatenate(pieces)[: len(traces)].astype(float).reshape(-1, *before.shape)
        # Who has seen nothing yet believes what is usual.
        belief = np.where((seen.length > 0)[:, None, None], belief / belief.sum((1, 2), keepdims=True), before)
        return confidence_of(belief, before)

    def _learned(self, learned_from: Traces, judged: Traces, both: Traces) -> Learned:
        seen = released(learned_from, scale := Scale.of(both))
        best = Learned(_fresh(self.seed, seen, both), scale, frequencies(both), np.inf)
        possible, *checked = _checked(judged, best)
        networks, optimiser, rng, waited = best.network, _optimiser_states(best.network), _rng(self.seed), 0
        for done in range(BETWEEN, _updates(seen) + 1, BETWEEN):
            for _ in range(0, BETWEEN, portion := _portion(seen)):
                rows = rng.integers(len(seen.sensor), size=(portion, SEEDS, BATCH))
                networks, optimiser = _advance(networks, optimiser, possible, seen.take(rows))
            losses = np.asarray(_losses(networks, possible, *checked))
            waited = 0 if losses.min() < best.loss else waited + 1
            if waited == 0:
                best = best._replace(network=_of(networks, int(losses.argmin())), loss=float(losses.min()))
            if self.report:
                self.report(done, best.loss)
            if waited >= PATIENCE:
                break
        return best


def released(traces: Traces, scale: Scale | None) -> Released:
    """Traces as a network reads them; readings in units of what is usual."""
    traces = traces.padded(min(traces.longest, MOST_STEPS))
    room = ((0, 0), (0, 1))
    stop = np.where(np.arange(traces.longest + 1)[None] == traces.length[:, None], traces.stopped[:, None], False)
    sensor = np.pad(traces.sensor, room, constant_values=NOTHING)
    spoken = np.zeros_like(traces.sensor) if traces.symbol is None else traces.symbol
    silent = max(len(traces.names.symbols), 1)
    symbol = np.pad(spoken, room, constant_values=NOTHING)
    reading, numbers = scaled(traces, scale).reading, [np.zeros((*sensor.shape, 0), np.float32)]
    if reading is not None:
        numbers.append(np.pad(reading, (*room, (0, 0))))
    if traces.waits is not None:
        numbers.append(np.log1p(traces.waits))
    return Released(
        sensor=np.maximum(np.where(stop, len(traces.names.sensors), sensor), 0),
        # The stop says nothing but that it came.
        symbol=np.where(symbol == NOTHING, silent, symbol),
        numbers=np.concatenate(numbers, axis=2, dtype=np.float32),
        length=traces.length + stop.any(1),
        pair=traces.secret * len(traces.names.useful) + traces.useful,
    )


def _held_out(traces: Traces, seed: int) -> Bool[np.ndarray, " N"]:
    """Which episodes are not learned from: those of some people, always the same ones, whoever else there is."""
    chance = _rng(seed).random(int(traces.person.max()) + 1)[traces.person]
    held_out = chance < max(HELD_OUT, float(chance.min()) + 1e-12)
    return held_out if not held_out.all() else np.arange(len(traces)) % 5 == 0


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _checked(judged: Traces, learned: Learned) -> tuple[Array, Released, Float[np.ndarray, " N"]]:
    """What a network holds for possible, and what it is judged by: as many rows for any number of episodes."""
    count = min(len(judged), EPISODES_AT_ONCE)
    weight = (np.arange(EPISODES_AT_ONCE) < count) / count
    seen = released(judged, learned.scale).take(_piece(0, count))
    return jnp.asarray(learned.before.reshape(-1) > 0), seen, weight


def _piece(start: int, count: int) -> Int[np.ndarray, " E"]:
    """So many rows as are looked at in one go, and after the last one that again."""
    return np.minimum(start + np.arange(EPISODES_AT_ONCE), count - 1)


def _updates(seen: Released) -> int:
    episodes, steps = seen.sensor.shape
    return max(4 * BETWEEN, min(MOST_UPDATES, MOST_EPOCHS * episodes // BATCH, MOST_STEPS_LEARNED // steps))


def _portion(seen: Released) -> int:
    """How many updates are handed over in one go."""
    numbers = SEEDS * BATCH * seen.sensor.shape[1] * (2 + seen.numbers.shape[2])
    return next(portion for portion in PORTIONS if portion == 1 or portion * numbers <= NUMBERS_AT_ONCE)


def _fresh(seed: int, seen: Released, traces: Traces) -> Network:
    """Networks of all seeds."""
    sizes = len(traces.names.sensors) + 1, max(len(traces.names.symbols), 1) + 1, seen.numbers.shape[2]
    pairs = len(traces.names.secrets) * len(traces.names.useful)
    return jax.vmap(lambda key: Network(*sizes, pairs, key))(jax.random.split(jax.random.key(seed), SEEDS))


def _of(networks: Network, number: int) -> Network:
    return jax.tree.map(lambda leaf: leaf[number], networks)


def _alone(network: Network) -> Network:
    """One network where there is room for those of all seeds."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (SEEDS, *leaf.shape)), network)


def _optimiser() -> Any:  # optax's types do not know Equinox modules
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(LEARNING_RATE, weight_decay=DECAY))


def _optimiser_states(networks: Network) -> Any:
    return jax.vmap(_optimiser().init)(networks)


def _loss(network: Network, possible: Bool[Array, " P"], seen: Released, weight: Float[Array, " N"] | float) -> Scalar:
    """Cross-entropy with the hidden pair: the mean over the steps of each episode, and over episodes."""
    said = network.log_beliefs(seen, possible)
    true = jnp.take_along_axis(said, seen.pair[:, None, None], axis=2)[:, :, 0]
    counts = jnp.arange(true.shape[1])[None] < seen.length[:, None]
    each = -jnp.sum(jnp.where(counts, true, 0.0), axis=1) / jnp.maximum(seen.length, 1)
    return jnp.sum(weight * each)


@jax.jit
def _losses(networks: Network, possible: Array, seen: Released, weight: Array) -> Float[Array, " R"]:
    losses = jax.vmap(lambda network: _loss(network, possible, seen, weight))(networks)
    # A network that has run away is not the best.
    return jnp.where(jnp.isnan(losses), jnp.inf, losses)


@jax.jit
def _advance(networks: Network, optimiser: Any, possible: Array, seen: Released) -> tuple[Network, Any]:
    """One update of every seed for each portion of episodes."""

    def one(network: Network, state: Any, seen: Released) -> tuple[Network, Any]:
        gradient = jax.grad(_loss)(network, possible, seen, 1 / BATCH)
        step, state = _optimiser().update(gradient, state, network)
        return eqx.apply_updates(network, step), state

    def update(carry, seen):
        networks, optimiser = carry
        return jax.vmap(one)(networks, optimiser, seen), None

    return jax.lax.scan(update, (networks, optimiser), seen)[0]


@jax.jit
def _ends(network: Network, possible: Array, seen: Released) -> Float[Array, "N P"]:
    """Beliefs after the last step of each episode."""
    said = network.log_beliefs(seen, possible)
    last = jnp.maximum(seen.length - 1, 0)[:, None, None]
    return jnp.exp(jnp.take_along_axis(said, last, axis=1)[:, 0])


@eqx.filter_jit
def final_beliefs(provider: Filter, examples: Examples) -> Float[Array, "N S U"]:
    """What a provider believes at the end of each trace."""

    def one(example: Examples) -> Belief:
        def step(carry, step):
            known, count = carry
            sensor, reading = step
            learned, _ = provider.update(known, sensor, reading, None)
            known = jax.tree.map(lambda old, new: jnp.where(count < example.length, new, old), known, learned)
            return (known, count + 1), None

        (known, _), _ = jax.lax.scan(step, (provider.initial(), 0), (example.sensor, example.reading))
        return provider.belief(known)

    return jax.lax.map(one, examples, batch_size=256)


def examples_of(traces: Traces) -> Examples:
    """Traces of raw readings, for a provider who knows nothing of stops."""
    assert traces.reading is not None
    arrays = np.maximum(traces.sensor, 0), traces.reading, traces.length, traces.secret, traces.useful
    return Examples(*(jnp.asarray(x) for x in arrays))
