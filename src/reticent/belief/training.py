"""Trains a provider on recordings: its filter by cross-entropy, its observation model by maximum likelihood.

Both stop early: on people who are not learned from, the loss is measured every so often; once it has not fallen for a
while, the best network so far is kept. What the network sees are random sensors of random stretches (paper, policy
pi_R).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float, Int

from reticent.belief.lstm import LstmFilter
from reticent.belief.observation_model import ObservationModel
from reticent.data.episodes import Episodes, episodes_of
from reticent.data.readings import Readings, uniform_prior
from reticent.types import Array, Belief, Index, PRNGKey, Scalar

Learner = TypeVar("Learner", LstmFilter, ObservationModel)


@dataclass(frozen=True)
class Settings:
    """How to learn: at most `updates` of `batch` episodes of `readings` each, a look at the held-out people every
    `between`; `patience` looks without a lower loss end it. `memory` is the weight of the past in the running average
    of networks, which is what is looked at and kept."""

    updates: int = 3000
    batch: int = 64
    readings: int = 10
    between: int = 40
    patience: int = 6
    held_out_episodes: int = 1024
    learning_rate: float = 2e-3
    memory: float = 0.98


DEFAULT = Settings()


class Examples(eqx.Module):
    """Sequences of released readings, and the pair that was hidden. Of shorter ones only the first `length` count."""

    sensor: Int[Array, "B T"]
    reading: Float[Array, "B T D"]
    length: Int[Array, " B"]
    secret: Int[Array, " B"]
    useful: Int[Array, " B"]


@runtime_checkable
class Source(Protocol):
    """Endless examples."""

    def draw(self, key: PRNGKey, count: int, length: int) -> Examples:
        """So many sequences, with room for `length` readings each."""
        ...


class Stretches(eqx.Module):
    """Random sensors over random stretches of recordings: endless examples."""

    prior: Belief
    readings: Float[Array, "N A D"]
    episodes: Episodes

    def draw(self, key: PRNGKey, count: int, length: int) -> Examples:
        """So many sequences."""
        pair_key, row_key, sensor_key = jax.random.split(key, 3)
        pair = jax.random.choice(pair_key, self.prior.size, (count,), p=self.prior.reshape(-1))
        row = jax.vmap(self.episodes.begin)(jax.random.split(row_key, count), pair)
        sensor = jax.random.randint(sensor_key, (count, length), 0, self.readings.shape[1])
        reading = self.readings[row[:, None] + jnp.arange(length)[None], sensor]
        secret, useful = jnp.divmod(pair, self.prior.shape[1])
        return Examples(sensor, reading, jnp.full(count, length), secret, useful)


def stretches(recorded: Readings, length: int) -> Stretches:
    """Random releases of these people; the prior is uniform over the recorded pairs."""
    return Stretches(jnp.asarray(uniform_prior(recorded)), jnp.asarray(recorded.values), episodes_of(recorded, length))


def train_filter(
    source: Source,
    held_out: Source,
    fresh: LstmFilter,
    seed: int = 0,
    settings: Settings = DEFAULT,
    report: Callable[[int, float], None] | None = None,
) -> LstmFilter:
    """The provider after learning. `report` is called with the updates done and the held-out loss in nats."""
    return _learn(_belief_loss, fresh, source, held_out, seed, settings, report)


def train_observation_model(
    source: Source,
    held_out: Source,
    fresh: ObservationModel,
    seed: int = 0,
    settings: Settings = DEFAULT,
    report: Callable[[int, float], None] | None = None,
) -> ObservationModel:
    """The observation_model after learning."""
    return _learn(_observation_loss, fresh, source, held_out, seed, settings, report)


def _belief_loss(provider: LstmFilter, examples: Examples) -> Scalar:
    """Cross-entropy with the hidden pair, at every reading of every sequence."""

    def sequence(example: Examples) -> Scalar:
        def one(known: Any, step: tuple[Index, Array]) -> tuple[Any, Scalar]:
            known = provider.remember(known, *step)
            return known, -provider.log_belief(known)[example.secret, example.useful]

        _, losses = jax.lax.scan(one, provider.initial(), (example.sensor, example.reading))
        counts = jnp.arange(losses.size) < example.length
        return jnp.sum(jnp.where(counts, losses, 0.0)) / jnp.maximum(example.length, 1)

    return jnp.mean(jax.vmap(sequence)(examples))


def _observation_loss(observation_model: ObservationModel, examples: Examples) -> Scalar:
    """Negative log-likelihood of the readings."""
    law = observation_model.law()

    def one(example: Examples) -> Scalar:
        surprise = jax.vmap(law.surprise, (0, None, None, 0))
        return jnp.mean(surprise(example.sensor, example.secret, example.useful, example.reading))

    return jnp.mean(jax.vmap(one)(examples))


class _Learning(NamedTuple):
    learner: Any
    average: Any
    optimiser: Any
    key: Array


def _learn(loss, fresh: Learner, source: Source, held_out: Source, seed: int, settings: Settings, report) -> Learner:
    key, held_out_key = jax.random.split(jax.random.key(seed))
    judged = held_out.draw(held_out_key, settings.held_out_episodes, settings.readings)
    state = _Learning(fresh, fresh, _optimiser(settings).init(_trained(fresh)), key)
    best, lowest, waited = fresh, float("inf"), 0
    for done in range(settings.between, settings.updates + 1, settings.between):
        state = _Learning(*_advance(loss, settings, source, *state))
        reached = float(_judge(loss, state.average, judged))
        if report:
            report(done, reached)
        waited = 0 if reached < lowest else waited + 1
        if reached < lowest:
            best, lowest = state.average, reached
        if waited >= settings.patience:
            break
    return best


@eqx.filter_jit
def _judge(loss, learner: Any, examples: Examples) -> Scalar:
    return loss(learner, examples)


@eqx.filter_jit
def _advance(loss, settings: Settings, source: Source, learner: Any, average: Any, optimiser: Any, key: Array):
    """`between` updates in one compiled scan."""
    constant = eqx.filter(learner, lambda x: not _is_trained(x))

    def one(carry, key):
        trained, average, optimiser = carry
        examples = source.draw(key, settings.batch, settings.readings)
        gradient = jax.grad(lambda trained: loss(eqx.combine(trained, constant), examples))(trained)
        step, optimiser = _optimiser(settings).update(gradient, optimiser)
        trained = eqx.apply_updates(trained, step)
        average = jax.tree.map(lambda old, new: settings.memory * old + (1 - settings.memory) * new, average, trained)
        return (trained, average, optimiser), None

    key, *keys = jax.random.split(key, settings.between + 1)
    start = (_trained(learner), _trained(average), optimiser)
    (trained, average, optimiser), _ = jax.lax.scan(one, start, jnp.stack(keys))
    return eqx.combine(trained, constant), eqx.combine(average, constant), optimiser, key


def _is_trained(leaf: Any) -> bool:
    """Networks are of 32-bit floats; the prior is not, and is not trained."""
    return eqx.is_array(leaf) and leaf.dtype == jnp.float32


_trained = partial(eqx.filter, filter_spec=_is_trained)


def _optimiser(settings: Settings) -> Any:  # optax's types do not know Equinox modules
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(settings.learning_rate))
