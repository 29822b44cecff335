"""Learned beliefs on the synthetic problem, where the truth is known; and the replay process's speed and memory."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from benchmarks.catalogue import Measured, Rows
from reticent import Confidence, Information, synthetic
from reticent.audit.provider import final_beliefs
from reticent.belief.filter import NearestSymbolFilter
from reticent.belief.information import secret_information_bits
from reticent.belief.lstm import LstmFilter
from reticent.belief.observation_model import ObservationModel
from reticent.belief.training import Examples, Settings, stretches, train_filter, train_observation_model
from reticent.data.readings import ReadingKind, Readings
from reticent.process.process import Process
from reticent.solve.actor_critic import Recipe, advance, initialise

PLACES = np.linspace(-4.5, 7.5, 50)
LEARNING = Settings(updates=6000, batch=128, readings=10, between=200, patience=5, held_out_episodes=2048)
JUDGED, ESTIMATES = 4000, 200
RECIPE = Recipe(inputs="described", environments=128)


def recorded(people: int, length: int, seed: int) -> Readings:
    """Independent readings of the synthetic problem: one stream per person and pair."""
    model, rng = synthetic(), np.random.default_rng(seed)
    sensors, secrets, useful, symbols = model.channel.shape
    owners = [(p, s, u) for p in range(people) for s in range(secrets) for u in range(useful)]
    values = np.stack(
        [
            np.stack([PLACES[rng.choice(symbols, length, p=model.channel[a, s, u])] for a in range(sensors)], axis=1)
            for _, s, u in owners
        ]
    )
    columns = [np.repeat(column, length) for column in np.array(owners).T]
    return Readings(
        values=values.reshape(-1, sensors, 1).astype(np.float32),
        stream=np.repeat(np.arange(len(owners)), length),
        person=columns[0],
        secret=columns[1],
        useful=columns[2],
        features=(1,) * sensors,
        people=tuple(map(str, range(people))),
        sensors=model.sensors,
        secrets=model.secrets,
        useful_values=model.useful,
        kind=ReadingKind("sample"),
    )


def beliefs() -> Measured:
    """The LSTM and its estimates of information beside Bayes."""
    model = synthetic()
    places = jnp.asarray(np.broadcast_to(PLACES[None, :, None], (3, 50, 1)))
    bayes = NearestSymbolFilter(jnp.asarray(model.prior), jnp.asarray(model.channel), places)
    source, held_out = (stretches(recorded(4, 4000, seed), LEARNING.readings) for seed in (0, 1))
    fresh = LstmFilter(bayes.prior, 3, 1, jax.random.key(0), antithetic_pairs=32)
    provider = train_filter(source, held_out, fresh, 0, LEARNING)
    observation_model = train_observation_model(
        source, held_out, ObservationModel(3, 3, 3, 1, jax.random.key(1)), 0, LEARNING
    )
    provider = provider.with_law(observation_model.law())
    rows = [*_beliefs(provider, bayes), *_information(provider, bayes)]
    notes = [
        "Synthetic problem seed 0, where Bayes is exact. TV: total variation between the LSTM's belief and Bayes' on "
        "readings it has not seen, mean over episodes (estimate). Information about S of the first reading of each "
        "sensor: the estimate with trained LSTM and observation model, with its 95 % interval over draws, beside the "
        "exact value. The estimate is a lower bound in the mean, up to the observation model's errors.",
    ]
    return rows, notes


def _beliefs(provider: LstmFilter, bayes: NearestSymbolFilter) -> Rows:
    examples = stretches(recorded(2, 4000, 7), 10).draw(jax.random.key(5), JUDGED, 10)
    rows = []
    for length in (1, 3, 5, 10):
        cut = Examples(examples.sensor, examples.reading, jnp.full(JUDGED, length), examples.secret, examples.useful)
        said, exact = (np.asarray(final_beliefs(p, cut)) for p in (provider, bayes))
        distance = 0.5 * np.abs(said - exact).sum((1, 2))
        right = [np.mean(b.sum(1).argmax(1) == np.asarray(examples.useful)) for b in (said, exact)]
        row = {"what": f"accuracy on U after {length} readings", "learned": right[0], "exact": right[1]}
        rows.append({**row, "total_variation": distance.mean()})
    return rows


def _information(provider: LstmFilter, bayes: NearestSymbolFilter) -> Rows:
    keys = jax.random.split(jax.random.key(1), ESTIMATES)
    estimate = eqx.filter_jit(lambda keys: jax.vmap(provider.information_bits, (0, None))(keys, provider.initial()))
    bits = np.asarray(estimate(keys))
    exact = np.asarray(secret_information_bits(bayes.prior, bayes.exact.channel))
    reach = stats.norm.ppf(0.975) * bits.std(0, ddof=1) / np.sqrt(ESTIMATES)
    return [
        {"what": f"bits of sensor {a}", "learned": m, "learned_low": m - r, "learned_high": m + r, "exact": e}
        for a, (m, r, e) in enumerate(zip(bits.mean(0), reach, exact, strict=True))
    ]


def replay() -> Measured:
    """Speed and memory of training in the replay process; what the networks have learned does not matter here."""
    prior, law = jnp.asarray(synthetic().prior), ObservationModel(3, 3, 3, 1, jax.random.key(1)).law()
    provider = LstmFilter(prior, 3, 1, jax.random.key(0)).with_law(law)
    rows = []
    for people in (2, 20, 200):
        streams = recorded(people, 200, 3)
        for bound in (Confidence(0.8), Information(1.0)):
            process = Process.over(provider, streams, bound)
            state, total = initialise(process, RECIPE, 0), jnp.asarray(100)
            state, _ = advance(process, RECIPE, state, jnp.asarray(4), total)
            started = time.perf_counter()
            state, progress = advance(process, RECIPE, state, jnp.asarray(4), total)
            jax.block_until_ready(progress)
            speed = 4 * RECIPE.steps_per_update / (time.perf_counter() - started)
            held = sum(leaf.nbytes for leaf in jax.tree.leaves(eqx.filter(process, eqx.is_array)))
            row = {"streams": 9 * people, "bound": bound.name, "readings": len(streams.stream)}
            rows.append({**row, "megabytes": held / 1e6, "environment_steps_per_second": speed})
    notes = [
        "The agent in the replay process with the LSTM belief, training included; the memory is that of the process, "
        "networks and all recordings together: it grows with the readings, not with the episodes.",
    ]
    return rows, notes
