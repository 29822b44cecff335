"""The paper's adversary: a recurrent network that reads what was released, one release after the other."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from reticent.audit.attackers import Attacker
from reticent.audit.confidence import Confidence, confidence_of, frequencies
from reticent.audit.features import Scale, axes_of, scaled
from reticent.audit.traces import NOTHING, Traces
from reticent.belief.learn import Examples, Settings, learn_belief
from reticent.belief.lstm import LstmProvider
from reticent.belief.provider import Provider
from reticent.types import Array, Belief, Index, PRNGKey

# Episodes that it looks at in one go.
EPISODES_AT_ONCE = 1024
# Of longer episodes it reads the beginning only.
MOST_STEPS = 200
LEARNING = Settings(updates=1000, between=50, patience=4, held_out_episodes=2048)


class Lstm(Attacker):
    """The paper's adversary: a recurrent network over the releases, with the stop as a step of its own. Of very long
    episodes it reads the beginning."""

    name = "LSTM"

    def __init__(self, seed: int = 0, report: Callable[[int, float], None] | None = None) -> None:
        self.seed, self.report = seed, report

    def fit(self, traces: Traces) -> None:
        self.before, self.scale = frequencies(traces), Scale.of(traces)
        # Learning stops early on people, or episodes, that it does not learn from.
        people = np.random.default_rng(self.seed).permutation(np.unique(traces.person))
        held_out = np.isin(traces.person, people[: max(1, len(people) // 5)])
        held_out = held_out if len(people) > 1 else np.arange(len(traces)) % 5 == 0
        learned, judged = (self._released(traces.take(rows)) for rows in (~held_out, held_out))
        features = len(traces.names.symbols) or axes_of(traces)
        sensors = len(traces.names.sensors) + 1
        fresh = LstmProvider(jnp.asarray(self.before), sensors, features, jax.random.key(self.seed))
        length = learned.sensor.shape[1]
        settings = Settings(**{**vars(LEARNING), "readings": length})
        self.provider = learn_belief(learned, judged, fresh, self.seed, settings, self.report)

    def confidence(self, traces: Traces) -> Confidence:
        released = self._released(traces)
        starts = range(0, len(traces), EPISODES_AT_ONCE)
        pieces = [final_beliefs(self.provider, released.piece(start)) for start in starts]
        return confidence_of(np.concatenate(pieces)[: len(traces)], self.before)

    def _released(self, traces: Traces) -> "_Drawn":
        traces = traces.padded(min(traces.longest, MOST_STEPS))
        reading = scaled(traces, self.scale).reading
        stop = np.where(np.arange(traces.longest + 1)[None] == traces.length[:, None], traces.stopped[:, None], False)
        sensor, symbol = (
            np.pad(x, ((0, 0), (0, 1)), constant_values=NOTHING)
            for x in (traces.sensor, np.zeros_like(traces.sensor) if traces.symbol is None else traces.symbol)
        )
        sensor = np.where(stop, len(traces.names.sensors), sensor)
        # Room for the next power of two, so that the network is compiled once for parts of about the same size.
        room = 2 ** int(np.ceil(np.log2(len(traces)))) - len(traces)

        def roomy(values: np.ndarray) -> Array:
            return jnp.asarray(np.pad(values, [(0, room), *[(0, 0)] * (values.ndim - 1)]))

        return _Drawn(
            sensor=roomy(np.maximum(sensor, 0)),
            # A symbol of minus one is a row of zeros: the stop says nothing but that it came.
            symbol=roomy(np.where(stop, NOTHING, symbol)),
            reading=None if reading is None else roomy(np.pad(reading, ((0, 0), (0, 1), (0, 0)))),
            length=roomy(traces.length + stop.any(1)),
            secret=roomy(traces.secret),
            useful=roomy(traces.useful),
            count=jnp.asarray(len(traces)),
            symbols=len(traces.names.symbols),
        )


class _Drawn(eqx.Module):
    """Released episodes, drawn at random with replacement: what a recurrent network learns from. The first `count`
    rows are episodes."""

    sensor: Int[Array, "N T"]
    symbol: Int[Array, "N T"]
    reading: Float[Array, "N T D"] | None
    length: Int[Array, " N"]
    secret: Int[Array, " N"]
    useful: Int[Array, " N"]
    count: Index
    symbols: int = eqx.field(static=True)

    def draw(self, key: PRNGKey, count: int, length: int) -> Examples:
        """So many episodes."""
        del length
        return self._examples(jax.random.randint(key, (count,), 0, self.count))

    def piece(self, start: int) -> Examples:
        """So many of the rows as are looked at in one go, and after the last one that again."""
        return self._examples(jnp.minimum(start + jnp.arange(EPISODES_AT_ONCE), self.count - 1))

    def _examples(self, rows: Int[Array, " B"]) -> Examples:
        if self.reading is None:
            reading = jax.nn.one_hot(self.symbol[rows], self.symbols, dtype=jnp.float32)
        else:
            reading = self.reading[rows]
        return Examples(self.sensor[rows], reading, self.length[rows], self.secret[rows], self.useful[rows])


@eqx.filter_jit
def final_beliefs(provider: Provider, examples: Examples) -> Float[Array, "N S U"]:
    """What a provider believes at the end of each trace."""

    def one(example: Examples) -> Belief:
        def step(carry, step):
            known, count = carry
            sensor, reading = step
            learned = provider.remember(known, sensor, reading)
            known = jax.tree.map(lambda old, new: jnp.where(count < example.length, new, old), known, learned)
            return (known, count + 1), None

        (known, _), _ = jax.lax.scan(step, (provider.start(), 0), (example.sensor, example.reading))
        return provider.belief(known)

    return jax.lax.map(one, examples, batch_size=256)


def examples_of(traces: Traces) -> Examples:
    """Traces of raw readings, for a provider who knows nothing of stops."""
    assert traces.reading is not None
    arrays = np.maximum(traces.sensor, 0), traces.reading, traces.length, traces.secret, traces.useful
    return Examples(*(jnp.asarray(x) for x in arrays))
