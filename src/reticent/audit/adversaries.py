"""Attackers who learn from traces: what they name the secret, and the useful value, from all that was released.

An attacker sees one row of features per episode: what was released at each step, and on average over the steps. Each
is fitted on traces of other people than it is judged on; the best one counts.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from reticent.belief.learn import Examples
from reticent.belief.provider import Provider
from reticent.process.rollout import Episode, Sent
from reticent.types import Array, Belief

NEVER = -1


@dataclass(frozen=True, eq=False)
class Released:
    """What was released in each episode, padded with -1: the sensor and the symbol (or row) at each step; the truth."""

    sensor: Int[np.ndarray, "N T"]
    symbol: Int[np.ndarray, "N T"]
    secret: Int[np.ndarray, " N"]
    useful: Int[np.ndarray, " N"]


def released(records: Episode, sent: Sent, sensors: int, horizon: int) -> Released:
    """The traces of whole episodes, one row each."""
    count = len(records.secret)
    sensor, symbol = (np.full((count, horizon), NEVER) for _ in range(2))
    spoke = np.asarray(sent.action) < sensors
    where = np.asarray(sent.episode)[spoke], np.asarray(sent.step)[spoke]
    sensor[where], symbol[where] = np.asarray(sent.action)[spoke], np.asarray(sent.symbol)[spoke]
    return Released(sensor, symbol, np.asarray(records.secret), np.asarray(records.useful))


def reading_features(traces: Released, readings: Float[np.ndarray, "R A D"]) -> Float[np.ndarray, "N F"]:
    """Readings as they were, in the columns of their sensor; zero where it did not speak, with a flag that it did."""
    sensors = readings.shape[1]
    spoke = traces.sensor != NEVER
    values = np.where(spoke[:, :, None], readings[traces.symbol, traces.sensor], 0.0)
    hot = np.eye(sensors)[traces.sensor] * spoke[:, :, None]
    steps = np.concatenate([hot, (hot[..., None] * values[:, :, None, :]).reshape(*spoke.shape, -1)], axis=2)
    return _over_steps(steps, spoke)


def symbol_features(traces: Released, sensors: int, symbols: int) -> Float[np.ndarray, "N F"]:
    """One column for every symbol of every sensor, merged ones included."""
    spoke = traces.sensor != NEVER
    place = np.where(spoke, traces.sensor * symbols + traces.symbol, sensors * symbols)
    return _over_steps(np.eye(sensors * symbols + 1, dtype=np.float32)[place][..., :-1], spoke)


def _over_steps(steps: Float[np.ndarray, "N T F"], spoke: np.ndarray) -> Float[np.ndarray, "N G"]:
    """Each step, and the mean over those that were released, and how many these were."""
    count = spoke.sum(1, keepdims=True)
    mean = steps.sum(1) / np.maximum(count, 1)
    return np.concatenate([steps.reshape(len(steps), -1), mean, count], axis=1).astype(np.float32)


def attack(
    fitted_on: Float[np.ndarray, "N F"],
    truth: Int[np.ndarray, " N"],
    judged_on: Float[np.ndarray, "M F"],
    seed: int = 0,
) -> dict[str, Int[np.ndarray, " M"]]:
    """What each attacker names, by the attacker's name."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(truth)) < 2:
        return {"constant": np.full(len(judged_on), truth[0])}
    attackers: dict[str, Any] = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500)),
        "boosted trees": HistGradientBoostingClassifier(
            max_iter=100,
            max_leaf_nodes=15,
            min_samples_leaf=20,
            random_state=seed,
            early_stopping=False,  # type: ignore[arg-type]
        ),
    }
    return {name: attacker.fit(fitted_on, truth).predict(judged_on) for name, attacker in attackers.items()}


def balanced_accuracy(named: np.ndarray, truth: np.ndarray) -> float:
    """Mean over classes of how often the class is named right: guessing gives one over their number."""
    return float(np.mean([np.mean(named[truth == value] == value) for value in np.unique(truth)]))


@eqx.filter_jit
def final_beliefs(provider: Provider, examples: Examples) -> Float[Array, "N S U"]:
    """What a provider believes at the end of each trace."""

    def one(example: Examples) -> Belief:
        def step(carry, step):
            known, count = carry
            sensor, reading = step
            learned = provider.learn(known, sensor, reading)
            known = jax.tree.map(lambda old, new: jax.numpy.where(count < example.length, new, old), known, learned)
            return (known, count + 1), None

        (known, _), _ = jax.lax.scan(step, (provider.start(), 0), (example.sensor, example.reading))
        return provider.belief(known)

    return jax.lax.map(one, examples, batch_size=256)


def examples_of(traces: Released, readings: Float[np.ndarray, "R A D"]) -> Examples:
    """Traces of raw readings, for a provider that learns."""
    spoke = traces.sensor != NEVER
    sensor = np.where(spoke, traces.sensor, 0)
    reading = np.where(spoke[:, :, None], readings[traces.symbol, sensor], 0.0).astype(np.float32)
    arrays = sensor, reading, spoke.sum(1), traces.secret, traces.useful
    return Examples(*(jax.numpy.asarray(x) for x in arrays))
