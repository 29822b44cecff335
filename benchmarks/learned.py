"""Learned beliefs on the synthetic problem, where the truth is known; and the replay process's speed and memory."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from benchmarks.record import save
from reticent import Confidence, Information, synthetic
from reticent.audit.provider import final_beliefs
from reticent.belief.filter import NearestSymbolFilter
from reticent.belief.generator import Generator
from reticent.belief.information import secret_information_bits
from reticent.belief.learn import Examples, Settings, learn_belief, learn_generator, stretches
from reticent.belief.lstm import LstmFilter
from reticent.data.readings import ReadingKind, Readings
from reticent.process.process import Process
from reticent.solve.a2c import Recipe, advance, initialise

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


def main() -> None:
    model = synthetic()
    places = jnp.asarray(np.broadcast_to(PLACES[None, :, None], (3, 50, 1)))
    bayes = NearestSymbolFilter(jnp.asarray(model.prior), jnp.asarray(model.channel), places)
    source, held_out = (stretches(recorded(4, 4000, seed), LEARNING.readings) for seed in (0, 1))
    fresh = LstmFilter(bayes.prior, 3, 1, jax.random.key(0), twins=32)
    provider = learn_belief(source, held_out, fresh, 0, LEARNING)
    generator = learn_generator(source, held_out, Generator(3, 3, 3, 1, jax.random.key(1)), 0, LEARNING)
    provider = provider.with_law(generator.law())
    rows = [*_beliefs(provider, bayes), *_information(provider, bayes)]
    notes = [
        "Synthetic problem seed 0, where Bayes is exact. TV: total variation between the LSTM's belief and Bayes' on "
        "readings it has not seen, mean over episodes (estimate). Information about S of the first reading of each "
        "sensor: the estimate with learned LSTM and learned generator, with its 95 % interval over draws, beside the "
        "exact value. The estimate is a lower bound in the mean, up to the generator's errors.",
    ]
    save("learned", "Learned beliefs beside the truth", ["what", "learned", "exact", "difference"], rows, notes)
    # With as many draws per estimate as in training; its speed does not depend on what was learned.
    _speed(LstmFilter(bayes.prior, 3, 1, jax.random.key(0)).with_law(generator.law()))


def _beliefs(provider: LstmFilter, bayes: NearestSymbolFilter) -> list[list[str]]:
    examples = stretches(recorded(2, 4000, 7), 10).draw(jax.random.key(5), JUDGED, 10)
    rows = []
    for length in (1, 3, 5, 10):
        cut = Examples(examples.sensor, examples.reading, jnp.full(JUDGED, length), examples.secret, examples.useful)
        said, exact = (np.asarray(final_beliefs(p, cut)) for p in (provider, bayes))
        distance = 0.5 * np.abs(said - exact).sum((1, 2))
        right = [np.mean(b.sum(1).argmax(1) == np.asarray(examples.useful)) for b in (said, exact)]
        rows.append(
            [f"U right after {length} readings", f"{right[0]:.1%}", f"{right[1]:.1%}", f"TV {distance.mean():.3f}"]
        )
    return rows


def _information(provider: LstmFilter, bayes: NearestSymbolFilter) -> list[list[str]]:
    keys = jax.random.split(jax.random.key(1), ESTIMATES)
    estimate = eqx.filter_jit(lambda keys: jax.vmap(provider.information_bits, (0, None))(keys, provider.initial()))
    bits = np.asarray(estimate(keys))
    exact = np.asarray(secret_information_bits(bayes.prior, bayes.exact.channel))
    reach = stats.norm.ppf(0.975) * bits.std(0, ddof=1) / np.sqrt(ESTIMATES)
    return [
        [f"bits of sensor {a}", f"{m:.4f} [{m - r:.4f}, {m + r:.4f}]", f"{e:.4f}", f"{m / e - 1:+.1%}"]
        for a, (m, r, e) in enumerate(zip(bits.mean(0), reach, exact, strict=True))
    ]


def _speed(provider: LstmFilter) -> None:
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
            name = "confidence" if isinstance(bound, Confidence) else "information"
            rows.append([f"{9 * people:,}", name, f"{len(streams.stream):,}", f"{held / 1e6:.1f} MB", f"{speed:,.0f}"])
    notes = [
        "A2C in the replay process with the LSTM belief, training included; the memory is that of the process, "
        "networks and all recordings together: it grows with the readings, not with the episodes.",
    ]
    save(
        "replay", "Replay over recordings", ["streams", "bound", "readings", "memory", "steps per second"], rows, notes
    )


if __name__ == "__main__":
    main()
