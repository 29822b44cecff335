"""Learned beliefs on data whose truth is known: the network beside Bayes, the observation model beside the
channel, and the estimate of information beside the exact value."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.provider import final_beliefs
from reticent.belief.filter import NearestSymbolFilter
from reticent.belief.information import entropy_bits, secret_information_bits
from reticent.belief.lstm import LstmFilter
from reticent.belief.observation_model import ObservationModel, ReadingLaw
from reticent.belief.store import load_provider, save_provider
from reticent.belief.training import Settings, _belief_loss, stretches, train_filter, train_observation_model
from reticent.errors import InputError
from reticent.policy.contracts import check_process
from reticent.problem.bound import Information
from reticent.problem.model import Model
from reticent.process.process import Process
from tests.streams import readings_of

# A normal reading on a fine grid: sensor 0 tells the secret, sensor 1 the useful value, both a little of the other.
GRID = np.linspace(-6, 6, 61)
MEANS = np.array([[[-0.8, -0.5], [0.5, 0.8]], [[-1.0, 0.9], [-0.8, 1.1]]])
DEVIATIONS = np.array([[[1.0, 1.2], [0.9, 1.0]], [[0.8, 1.0], [1.2, 0.9]]])


def normal_model() -> Model:
    law = np.exp(-0.5 * ((GRID - MEANS[..., None]) / DEVIATIONS[..., None]) ** 2)
    names: dict[str, Any] = {"secrets": ("s0", "s1"), "useful": ("u0", "u1"), "sensors": ("a0", "a1")}
    symbols = tuple(map(str, range(len(GRID))))
    return Model(np.full((2, 2), 0.25), law / law.sum(-1, keepdims=True), **names, symbols=symbols)


MODEL = normal_model()
PLACES = np.broadcast_to(GRID[None, :, None], (2, len(GRID), 1)).copy()
BAYES = NearestSymbolFilter(jnp.asarray(MODEL.prior), jnp.asarray(MODEL.channel), jnp.asarray(PLACES))
# Readings are few numbers, so a short training shows whether it learns.
SHORT = Settings(updates=600, batch=64, readings=6, between=100, patience=3, held_out_episodes=512)


def fresh(look_back=None, antithetic_pairs=1, hidden_pairs=None):
    return LstmFilter(jnp.asarray(MODEL.prior), 2, 1, jax.random.key(0), look_back, antithetic_pairs, hidden_pairs)


def recordings(people, seed):
    return readings_of(MODEL, PLACES, people=people, length=800, seed=seed)


@pytest.fixture(scope="module")
def learned():
    source, held_out = (stretches(recordings(4, seed), SHORT.readings) for seed in (0, 1))
    provider = train_filter(source, held_out, fresh(antithetic_pairs=64), 0, SHORT)
    return provider.with_law(
        ReadingLaw(jnp.asarray(MEANS[..., None], jnp.float32), jnp.asarray(DEVIATIONS[..., None], jnp.float32))
    )


@pytest.mark.slow
def test_the_network_comes_near_bayes(learned):
    examples = stretches(recordings(2, 7), 6).draw(jax.random.key(5), 2000, 6)
    said, exact = (np.asarray(final_beliefs(provider, examples)) for provider in (learned, BAYES))
    distance = 0.5 * np.abs(said - exact).sum((1, 2))
    prior = 0.5 * np.abs(0.25 - exact).sum((1, 2))
    assert distance.mean() < 0.08
    assert distance.mean() < 0.2 * prior.mean()


@pytest.mark.slow
def test_the_estimate_of_information_is_near_the_exact_one(learned):
    keys = jax.random.split(jax.random.key(1), 64)
    bits = np.asarray(jax.vmap(learned.information_bits, (0, None))(keys, learned.initial()))
    exact = np.asarray(secret_information_bits(BAYES.initial(), BAYES.exact.channel))
    mean, error = bits.mean(0), bits.std(0) / np.sqrt(len(bits))
    # A lower bound in the mean: a network that is not Bayes can only lose, but for four standard errors.
    assert (mean <= exact + 4 * error).all()
    assert abs(mean[0] - exact[0]) <= 0.05 * exact[0] + 4 * error[0]


@pytest.mark.slow
def test_drawing_hidden_pairs_gives_the_same_information_as_taking_all_of_them(learned):
    parts = lambda p: (p.layers, p.head, p.law)  # noqa: E731
    drawn = eqx.tree_at(parts, fresh(None, 1, 4_000), parts(learned), is_leaf=lambda x: x is None)
    keys = jax.random.split(jax.random.key(2), 32)
    every = np.asarray(jax.vmap(learned.information_bits, (0, None))(keys, learned.initial())).mean(0)
    found = np.asarray(drawn.information_bits(jax.random.key(3), drawn.initial()))
    # A term has a spread of at most 1.2 bits here: four standard errors of 4,000 of them are .076.
    assert (np.abs(found - every) < 0.076).all()
    assert (found > 0).all()


def test_the_estimate_of_the_paper_is_kept_in_the_file(tmp_path):
    save_provider(tmp_path / "p.safetensors", fresh(hidden_pairs=8))
    assert load_provider(tmp_path / "p.safetensors").hidden_pairs == 8


@pytest.mark.slow
def test_the_generator_comes_near_the_channel():
    source, held_out = (stretches(recordings(4, seed), SHORT.readings) for seed in (0, 1))
    law = train_observation_model(source, held_out, ObservationModel(2, 2, 2, 1, jax.random.key(1)), 0, SHORT).law()
    assert np.allclose(law.mean[..., 0], MEANS, atol=0.1)
    assert np.allclose(law.deviation[..., 0], DEVIATIONS, atol=0.1)


def test_before_the_first_reading_the_belief_is_the_prior():
    provider = fresh()
    assert np.array_equal(provider.belief(provider.initial()), MODEL.prior)


def test_look_back_forgets_what_is_older():
    provider = fresh(look_back=2)

    def after(readings):
        known = provider.initial()
        for reading in readings:
            known = provider.remember(known, jnp.asarray(1), jnp.asarray([reading]))
        return np.asarray(provider.belief(known))

    assert np.allclose(after([9.0, 0.5, -0.5]), after([-9.0, 0.5, -0.5]))
    assert np.allclose(after([9.0, 0.5, -0.5]), after([0.5, -0.5]))
    assert not np.allclose(after([0.5, -0.5]), after([-0.5]))


def test_pairs_that_cannot_be_are_never_believed():
    prior = jnp.asarray([[0.5, 0.25], [0.25, 0.0]])
    provider = LstmFilter(prior, 2, 1, jax.random.key(0))
    known = provider.remember(provider.initial(), jnp.asarray(0), jnp.asarray([1.0]))
    belief = np.asarray(provider.belief(known))
    assert belief[1, 1] == 0
    assert belief.sum() == pytest.approx(1, abs=1e-12)
    gradient = eqx.filter_grad(lambda p: p.log_belief(known)[0, 0])(provider)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.slow
def test_early_stopping_keeps_the_best():
    source, held_out = (stretches(recordings(2, seed), 6) for seed in (0, 1))
    seen = []
    settings = Settings(
        updates=40, batch=4, readings=6, between=10, patience=10, held_out_episodes=64, learning_rate=0.3
    )
    best = train_filter(source, held_out, fresh(), 0, settings, lambda done, loss: seen.append((done, loss)))
    assert [done for done, _ in seen] == [10, 20, 30, 40]
    _, held_out_key = jax.random.split(jax.random.key(0))
    judged = held_out.draw(held_out_key, 64, 6)
    assert float(_belief_loss(best, judged)) == pytest.approx(min(loss for _, loss in seen), abs=1e-5)


def test_a_provider_survives_its_file(tmp_path):
    path = tmp_path / "p.safetensors"
    provider = fresh(look_back=3, antithetic_pairs=2).with_law(ObservationModel(2, 2, 2, 1, jax.random.key(1)).law())
    save_provider(path, provider)
    again = load_provider(path)
    assert eqx.tree_equal(again, provider)
    assert (again.look_back, again.antithetic_pairs) == (3, 2)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="damaged"):
        load_provider(path)


@pytest.mark.slow
def test_the_ledger_of_a_learned_provider_keeps_the_contract():
    provider = fresh().with_law(ObservationModel(2, 2, 2, 1, jax.random.key(1)).law())
    process = Process.over(provider, recordings(2, 0), Information(0.2), horizon=4)
    check_process(process)
    assert float(entropy_bits(process.prior.sum(1))) == 1.0
