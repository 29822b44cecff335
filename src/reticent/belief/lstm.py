"""The learned belief: a recurrent network over the readings sent so far (the paper's model of the provider)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from reticent.belief.bayes import normalise, secret_marginal
from reticent.belief.filter import LearnedFilter, Reading
from reticent.belief.information import NATS_PER_BIT, entropy_bits
from reticent.belief.observation_model import ReadingLaw
from reticent.belief.prospect import EstimatedProspect
from reticent.types import Array, Belief, Flag, Index, Kernels, PerSensor, PRNGKey

WIDTH, LAYERS = 128, 2
# Of the information before the first reading, which is estimated once.
FIRST_ESTIMATES = 64


class Remembered(eqx.Module):
    """The network's state (hidden and cell of each layer), the last few inputs under `look_back`, and how many came."""

    cells: Float[Array, "L 2 W"]
    recent: Float[Array, "K I"]
    count: Index


class LstmFilter(LearnedFilter):
    """Softmax over the hidden pairs of a two-layer LSTM. Before the first reading the belief is the prior.

    `look_back` feeds only the last few readings, as the paper does with two; by default the state carries on over all
    of them. `law` serves the estimate of information: it takes so many `antithetic_pairs` of readings for each of the
    `hidden_pairs` (s, u) that it draws, or for all of them once, weighted by the belief, where it draws none.
    """

    prior: Belief
    layers: tuple[eqx.nn.LSTMCell, ...]
    head: eqx.nn.Linear
    law: ReadingLaw | None
    sensors: int = eqx.field(static=True)
    look_back: int | None = eqx.field(static=True)
    antithetic_pairs: int = eqx.field(static=True)
    hidden_pairs: int | None = eqx.field(static=True)

    def __init__(
        self,
        prior: Belief,
        sensors: int,
        features: int,
        key: PRNGKey,
        look_back: int | None = None,
        antithetic_pairs: int = 1,
        hidden_pairs: int | None = None,
    ) -> None:
        *keys, head_key = jax.random.split(key, LAYERS + 1)
        sizes = [features + sensors, *[WIDTH] * (LAYERS - 1)]
        self.prior, self.law, self.sensors = jnp.asarray(prior), None, sensors
        self.look_back, self.antithetic_pairs, self.hidden_pairs = look_back, antithetic_pairs, hidden_pairs
        self.layers = tuple(
            eqx.nn.LSTMCell(size, WIDTH, dtype=jnp.float32, key=k) for size, k in zip(sizes, keys, strict=True)
        )
        self.head = eqx.nn.Linear(WIDTH, prior.size, dtype=jnp.float32, key=head_key)

    def with_law(self, law: ReadingLaw) -> "LstmFilter":
        """The provider that can estimate what the next reading would say."""
        return eqx.tree_at(lambda p: p.law, self, law, is_leaf=lambda x: x is None)

    def initial(self) -> Remembered:
        width, inputs = self.layers[0].hidden_size, self.layers[0].input_size
        recent = jnp.zeros((self.look_back or 0, inputs), jnp.float32)
        return Remembered(jnp.zeros((len(self.layers), 2, width), jnp.float32), recent, jnp.zeros((), int))

    def update(
        self, memory: Remembered, sensor: Index, observed: Reading, kernels: Kernels | None
    ) -> tuple[Remembered, Flag]:
        """A reading is impossible only where the network's belief is not a number: that is never under a bound."""
        assert kernels is None
        after = self.remember(memory, sensor, observed)
        return after, jnp.all(jnp.isfinite(self.belief(after)))

    def remember(self, known: Remembered, sensor: Index, reading: Reading) -> Remembered:
        """The network's state after one reading more."""
        x = jnp.concatenate([reading.astype(jnp.float32), jax.nn.one_hot(sensor, self.sensors, dtype=jnp.float32)])
        if self.look_back is None:
            return Remembered(self._through(known.cells, x), known.recent, known.count + 1)
        recent, count = jnp.concatenate([known.recent[1:], x[None]]), known.count + 1
        cells = jnp.zeros_like(known.cells)
        for i in range(self.look_back):
            came = count >= self.look_back - i
            cells = jnp.where(came, self._through(cells, recent[i]), cells)
        return Remembered(cells, recent, count)

    def _through(self, cells: Float[Array, "L 2 W"], x: Float[Array, " I"]) -> Float[Array, "L 2 W"]:
        after = []
        for layer, cell in zip(self.layers, cells, strict=True):
            hidden, memory = layer(x, (cell[0], cell[1]))
            after.append(jnp.stack([hidden, memory]))
            x = hidden
        return jnp.stack(after)

    def log_belief(self, known: Remembered) -> Float[Array, "S U"]:
        """log beta(s, u); pairs that cannot be have none."""
        logits = self.head(known.cells[-1, 0]).reshape(self.prior.shape)
        return jax.nn.log_softmax(jnp.where(self.prior > 0, logits, -jnp.inf).reshape(-1)).reshape(self.prior.shape)

    def belief(self, memory: Remembered) -> Belief:
        learned = normalise(jnp.exp(self.log_belief(memory)).astype(self.prior.dtype))
        return jnp.where(memory.count > 0, learned, self.prior)

    def first_prospect(self, kernels: Kernels | None) -> EstimatedProspect:
        """With more draws than at every step."""
        assert kernels is None
        keys = jax.random.split(jax.random.key(0), FIRST_ESTIMATES)
        bits = lambda: jnp.mean(jax.vmap(self.information_bits, (0, None))(keys, self.initial()), axis=0)  # noqa: E731
        return EstimatedProspect(self.prior, jnp.zeros(()), self.sensors, bits)

    def information_bits(self, key: PRNGKey, memory: Remembered) -> PerSensor:
        """The Barber-Agakov estimate (paper, eq. EstMI): a lower bound in the mean, so it can never prove privacy.

            I_a  ~  H(beta(S)) + sum_j w_j mean_i log2 Q(s_j | z_i, a, what is known),   z_i ~ law(a, s_j, u_j)

        The paper draws n = `hidden_pairs` from the belief, w_j = 1/n; all of them once with w = beta(s, u) have the
        same mean and less noise.
        """
        assert self.law is not None
        belief = self.belief(memory)
        pair_key, key = (key, key) if self.hidden_pairs is None else jax.random.split(key)
        pair, weight = self._pairs(pair_key, belief)
        mean, deviation = (
            x.reshape(self.sensors, belief.size, -1)[:, None, pair] for x in (self.law.mean, self.law.deviation)
        )
        readings = ReadingLaw(mean, deviation).draw(key, self.antithetic_pairs)[:, 0]

        def named(sensor: Index, readings: Float[Array, "P K D"]) -> Float[Array, " P"]:
            after = lambda z: secret_marginal(self.belief(self.remember(memory, sensor, z)))  # noqa: E731
            right = jax.vmap(lambda own, secret: jax.vmap(after)(own)[:, secret])(readings, pair // belief.shape[1])
            return jnp.mean(jnp.log(jnp.maximum(right, 1e-9)), axis=1) / NATS_PER_BIT

        # One sensor after the other: the readings of one fit the cache.
        said = jax.lax.map(lambda each: named(*each), (jnp.arange(self.sensors), readings))
        bits = entropy_bits(secret_marginal(belief)) + jnp.sum(weight[None] * said, axis=1)
        return jnp.maximum(bits, 0.0)

    def _pairs(self, key: PRNGKey, belief: Belief) -> tuple[Int[Array, " P"], Float[Array, " P"]]:
        """Hidden pairs, numbered row by row, and their weights."""
        if self.hidden_pairs is None:
            return jnp.arange(belief.size), belief.reshape(-1)
        drawn = jax.random.choice(key, belief.size, (self.hidden_pairs,), p=belief.reshape(-1))
        return drawn, jnp.full(self.hidden_pairs, 1 / self.hidden_pairs)
