"""Sources: what the sensors really say."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from reticent.belief.bayes import emitted
from reticent.belief.filter import Filter
from reticent.data.episodes import Episodes, episodes_of
from reticent.data.readings import Readings
from reticent.data.trajectories import Trajectories
from reticent.errors import InputError
from reticent.problem.bound import ROUNDING
from reticent.types import Array, Belief, Channel, Index, Kernels, PRNGKey


class Hidden(eqx.Module):
    """What nobody outside sees: the hidden pair and, where readings are recorded, the row that the next one is in."""

    secret: Index
    useful: Index
    row: Index | None

    def after(self) -> "Hidden":
        """One reading later."""
        return Hidden(self.secret, self.useful, None if self.row is None else self.row + 1)


class Source(eqx.Module):
    """What the chosen sensor says, or what is sent in its place."""

    # Whether the hidden pair alone decides what may be read, so that an episode can start anywhere.
    stationary: ClassVar[bool]

    @abc.abstractmethod
    def begin(self, key: PRNGKey, prior: Belief) -> Hidden:
        """A fresh episode: the hidden pair is drawn from the prior."""

    @abc.abstractmethod
    def emit(
        self, key: PRNGKey, hidden: Hidden, sensor: Index, filter: Filter, kernels: Kernels | None
    ) -> tuple[Any, Index]:
        """What is observed, and its index: of the symbol or, where readings are sent as they are, of the row."""


class FromModel(Source):
    """Readings drawn from the filter's own model."""

    stationary: ClassVar[bool] = True

    def begin(self, key: PRNGKey, prior: Belief) -> Hidden:
        return _drawn(key, prior)

    def emit(
        self, key: PRNGKey, hidden: Hidden, sensor: Index, filter: Filter, kernels: Kernels | None
    ) -> tuple[Any, Index]:
        symbol = draw(key, emitted(filter.model_channel, kernels)[sensor, hidden.secret, hidden.useful])
        return symbol, symbol

    def moved(self, key: PRNGKey, hidden: Hidden, transition: Float[Array, "S U S U"]) -> Hidden:
        """One step of time later: the pair is drawn from T(. | s, u)."""
        return _drawn(key, transition[hidden.secret, hidden.useful])


class FromChannel(Source):
    """Readings drawn from another channel than the model's; the belief is still the model's."""

    stationary: ClassVar[bool] = True
    channel: Channel

    def begin(self, key: PRNGKey, prior: Belief) -> Hidden:
        return _drawn(key, prior)

    def emit(
        self, key: PRNGKey, hidden: Hidden, sensor: Index, filter: Filter, kernels: Kernels | None
    ) -> tuple[Any, Index]:
        del filter
        symbol = draw(key, emitted(self.channel, kernels)[sensor, hidden.secret, hidden.useful])
        return symbol, symbol


class FromCodes(Source):
    """Recorded codes: what a sensor says at a step is the code of what it said at that moment."""

    stationary: ClassVar[bool] = False
    codes: Int[Array, "N A"]
    episodes: Episodes

    def begin(self, key: PRNGKey, prior: Belief) -> Hidden:
        return _started(key, prior, self.episodes)

    def emit(
        self, key: PRNGKey, hidden: Hidden, sensor: Index, filter: Filter, kernels: Kernels | None
    ) -> tuple[Any, Index]:
        del filter
        return _sent(key, self.codes[hidden.row, sensor], sensor, kernels)


class FromTrajectories(Source):
    """Recorded codes and the labels that changed along with them, step after step, for a process that goes on.

    A day begins in one of the rows `starts`.
    """

    stationary: ClassVar[bool] = False
    codes: Int[Array, "N A"]
    secret: Int[Array, " N"]
    useful: Int[Array, " N"]
    starts: Int[Array, " D"]

    @classmethod
    def of(cls, recorded: Trajectories, steps: int) -> "FromTrajectories":
        """Days of so many steps, one after the other in each trajectory that is long enough."""
        firsts, lengths = np.cumsum(recorded.lengths) - recorded.lengths, recorded.lengths
        starts = [
            np.arange(first, first + length - steps + 1, steps) for first, length in zip(firsts, lengths, strict=True)
        ]
        if not (found := np.concatenate(starts)).size:
            raise InputError(f"No trajectory has {steps} steps; the longest has {lengths.max()}. Take fewer steps.")
        return cls(*map(jnp.asarray, (recorded.codes, recorded.secret, recorded.useful, found)))

    def begin(self, key: PRNGKey, prior: Belief) -> Hidden:
        del prior
        return self._at(jax.random.choice(key, self.starts))

    def moved(self, key: PRNGKey, hidden: Hidden, transition: Float[Array, "S U S U"]) -> Hidden:
        """One step of time later: what was recorded then."""
        del key, transition
        assert hidden.row is not None
        return self._at(jnp.minimum(hidden.row + 1, len(self.secret) - 1))

    def emit(
        self, key: PRNGKey, hidden: Hidden, sensor: Index, filter: Filter, kernels: Kernels | None
    ) -> tuple[Any, Index]:
        del filter
        return _sent(key, self.codes[hidden.row, sensor], sensor, kernels)

    def _at(self, row: Index) -> Hidden:
        return Hidden(self.secret[row], self.useful[row], row)


class FromReadings(Source):
    """Recorded readings, sent as they are. Episodes are stretches of one person's recording."""

    stationary: ClassVar[bool] = False
    readings: Float[Array, "N A D"]
    episodes: Episodes

    @classmethod
    def of(cls, recorded: Readings, horizon: int) -> "FromReadings":
        """Stretches of `horizon` readings."""
        return cls(jnp.asarray(recorded.values), episodes_of(recorded, horizon))

    def begin(self, key: PRNGKey, prior: Belief) -> Hidden:
        return _started(key, prior, self.episodes)

    def emit(
        self, key: PRNGKey, hidden: Hidden, sensor: Index, filter: Filter, kernels: Kernels | None
    ) -> tuple[Any, Index]:
        del key, filter
        assert hidden.row is not None
        assert kernels is None
        return self.readings[hidden.row, sensor], hidden.row


def check_channel(
    channel: Float[np.ndarray, "..."], model: Float[np.ndarray, "A S U Z"], prior: Float[np.ndarray, "S U"]
) -> None:
    """Refuse a true channel that a model cannot account for: it must call possible whatever a sensor can say."""
    if channel.shape != model.shape:
        raise InputError(f"The true channel must have the model's shape {model.shape}, not {channel.shape}.")
    if (channel < 0).any() or not np.allclose(channel.sum(-1), 1.0, rtol=0, atol=ROUNDING):
        raise InputError("Every row of the true channel must hold probabilities that sum to one.")
    if ((channel > 0) & (model <= 0) & (prior > 0)[None, :, :, None]).any():
        raise InputError("The true channel gives readings of a pair that the model calls impossible for this pair.")


def draw(key: PRNGKey, law: Float[Array, " X"]) -> Index:
    """One draw by inverse distribution function; never an outcome of probability zero."""
    cumulative = jnp.cumsum(law)
    return jnp.sum(cumulative <= jax.random.uniform(key) * cumulative[-1])


def _sent(key: PRNGKey, code: Index, sensor: Index, kernels: Kernels | None) -> tuple[Index, Index]:
    """What is sent for a code, as observed and as an index."""
    if kernels is None:
        return code, code
    option = draw(key, kernels[sensor, :, code])
    symbol = jnp.where(option == 0, code, kernels.shape[-1] + option - 1)
    return symbol, symbol


def _drawn(key: PRNGKey, prior: Belief) -> Hidden:
    return Hidden(*jnp.divmod(draw(key, prior.reshape(-1)), prior.shape[1]), None)


def _started(key: PRNGKey, prior: Belief, episodes: Episodes) -> Hidden:
    """The pair from the prior, then a person and a row."""
    pair_key, row_key = jax.random.split(key)
    pair = draw(pair_key, prior.reshape(-1))
    return Hidden(*jnp.divmod(pair, prior.shape[1]), episodes.begin(row_key, pair))
