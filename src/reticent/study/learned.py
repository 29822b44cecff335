"""What one rotation of people teaches: belief, observation model, adversary and finite model of recordings.

The belief is learned from one portion of the people, policies are trained on another, the adversary on a third, and all
numbers are of a fourth that nobody has learned from.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np

from reticent.belief.lstm import LstmFilter
from reticent.belief.observation_model import ObservationModel
from reticent.belief.store import load_provider, save_provider
from reticent.belief.training import DEFAULT, Settings, Stretches, stretches, train_filter, train_observation_model
from reticent.data.portions import Portions, portions
from reticent.data.readings import Readings, uniform_prior
from reticent.fit.model import CODES, fit_model
from reticent.problem.model import Model, read_problem
from reticent.study.run import PROGRESS
from reticent.types import PRNGKey

PROVIDER, ADVERSARY, MODEL = "provider.safetensors", "adversary.safetensors", "model.json"


@dataclass(frozen=True)
class Conditions:
    """What an episode over recordings is, and how its belief is learned: at most so many readings, of which the belief
    sees the last `look_back`, or all; the price of one; codes per sensor of the finite model, at most. The estimate of
    information takes `readings_per_pair` of each of the `hidden_pairs` that it draws, or of all of them."""

    readings: int = 10
    look_back: int | None = None
    codes: int = CODES
    # The paper's.
    time_cost: float = 0.5
    learning: Settings = DEFAULT
    hidden_pairs: int | None = None
    readings_per_pair: int = 2


@dataclass(frozen=True, eq=False)
class Learned:
    """What one rotation of people has taught. `readings` are standardised."""

    portions: Portions
    readings: Readings
    provider: LstmFilter
    adversary: LstmFilter
    model: Model

    def of(self, people: tuple[int, ...]) -> Readings:
        """Standardised readings of some people."""
        return self.readings.of(people)

    def save(self, folder: Path) -> None:
        """The networks and the finite model; the readings stay where they are."""
        folder.mkdir(parents=True, exist_ok=True)
        save_provider(folder / PROVIDER, self.provider)
        save_provider(folder / ADVERSARY, self.adversary)
        (folder / MODEL).write_text(json.dumps(self.model.to_json()))

    @classmethod
    def load(cls, folder: Path, recorded: Readings, rotation: int) -> "Learned":
        """What a rotation has saved."""
        who = portions(recorded, rotation)
        provider, adversary = (load_provider(folder / name) for name in (PROVIDER, ADVERSARY))
        return cls(who, standardised(recorded, who.predictor), provider, adversary, read_problem(folder / MODEL))


def standardised(recorded: Readings, people: tuple[int, ...]) -> Readings:
    """Readings in units of those of the people that the belief is learned from."""
    base = recorded.of(people).values
    mean, deviation = base.mean(0), np.maximum(base.std(0), 1e-6)
    return replace(recorded, values=((recorded.values - mean) / deviation).astype(np.float32))


def learn(recorded: Readings, conditions: Conditions, rotation: int) -> Learned:
    """Belief, observation model, adversary and finite model of one rotation.

    The policy's people are those on whom the networks' learning is stopped: neither learned from nor measured on.
    """
    who = portions(recorded, rotation)
    scaled = standardised(recorded, who.predictor)
    provider = learn_provider(scaled.of(who.predictor), scaled.of(who.policy), conditions, rotation)
    attacked, held_out = (stretches(scaled.of(people), conditions.readings) for people in (who.adversary, who.policy))
    fresh = _fresh(attacked, conditions, jax.random.fold_in(jax.random.key(rotation), 1))
    adversary = train_filter(attacked, held_out, fresh, rotation, conditions.learning, _telling("adversary", rotation))
    own = recorded.of(who.predictor + who.policy)
    model = fit_model(own, conditions.codes, rotation, uniform_prior(own))
    return Learned(who, scaled, provider, adversary, model)


def learn_provider(own: Readings, held_out: Readings, conditions: Conditions, seed: int) -> LstmFilter:
    """The belief of somebody who learned from some people, and its law of readings."""
    source, stopping = (stretches(people, conditions.readings) for people in (own, held_out))
    key, law_key = jax.random.split(jax.random.key(seed))
    fresh = _fresh(source, conditions, key)
    provider = train_filter(source, stopping, fresh, seed, conditions.learning, _telling("belief", seed))
    secrets, useful = source.prior.shape
    observation_model = ObservationModel(fresh.sensors, secrets, useful, source.readings.shape[2], law_key)
    learned = train_observation_model(
        source, stopping, observation_model, seed, conditions.learning, _telling("observation model", seed)
    )
    return provider.with_law(learned.law())


def _fresh(source: Stretches, conditions: Conditions, key: PRNGKey) -> LstmFilter:
    _, sensors, features = source.readings.shape
    antithetic_pairs = conditions.readings_per_pair // 2
    return LstmFilter(
        source.prior, sensors, features, key, conditions.look_back, antithetic_pairs, conditions.hidden_pairs
    )


def _telling(what: str, rotation: int) -> Callable[[int, float], None]:
    return lambda done, loss: PROGRESS.info("%s %d: update %d, loss %.3f", what, rotation, done, loss)
