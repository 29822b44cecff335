import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.belief.bayes import posteriors, secret_joint, update, useful_joint
from reticent.problem.synthetic import tells_useful, two_binary_sensors
from tests.problems import random_model

SEEDS = st.integers(0, 2**31 - 1)


def test_update_by_hand():
    # P1, sensor 0 says 1: P(z=1) = (.12 + .71 + .33 + .93) / 4 = .5225.
    model = two_binary_sensors()
    after, possible = update(jnp.asarray(model.prior), jnp.asarray(model.channel[0, :, :, 1]))
    assert possible
    assert np.allclose(after, np.array([[0.12, 0.71], [0.33, 0.93]]) / 4 / 0.5225)


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_an_impossible_symbol_is_told_and_leaves_the_belief_as_it_was(array):
    sure = array([[0.5, 0.0], [0.5, 0.0]])
    after, possible = update(sure, array(tells_useful().channel[0, :, :, 1]))
    assert not possible
    assert np.array_equal(after, sure)


@given(SEEDS)
def test_numpy_and_jax_update_whole_batches_alike(seed):
    rng = np.random.default_rng(seed)
    belief = rng.dirichlet(np.ones(6), 5).reshape(5, 3, 2)
    likelihood = rng.random((5, 3, 2)) * (rng.random(5) < 0.7)[:, None, None]
    ours, theirs = update(belief, likelihood), update(jnp.asarray(belief), jnp.asarray(likelihood))
    assert isinstance(ours[0], np.ndarray)
    assert np.allclose(ours[0], theirs[0], rtol=1e-14, atol=0)
    assert np.array_equal(ours[1], likelihood.any((1, 2)))
    assert np.array_equal(ours[1], theirs[1])


@given(SEEDS, st.booleans())
def test_belief_stays_on_the_simplex_and_is_a_martingale(seed, sparse):
    model = random_model(seed, secrets=3, useful=2, symbols=4, sparse=sparse)
    belief, mechanism = jnp.asarray(model.prior), jnp.asarray(model.channel[0])
    law, after = posteriors(belief, mechanism)
    assert np.allclose(law.sum(), 1)
    assert np.allclose(law, jnp.einsum("su,suz->z", belief, mechanism))
    assert (after >= 0).all()
    assert np.allclose(after.sum((1, 2)), 1)
    assert np.allclose(jnp.einsum("z,zsu->su", law, after), belief)


@given(SEEDS)
def test_update_agrees_with_posteriors_and_order_does_not_matter(seed):
    model = random_model(seed, sensors=2, symbols=3)
    belief, channel = jnp.asarray(model.prior), jnp.asarray(model.channel)
    one, two = channel[0, :, :, 1], channel[1, :, :, 2]
    _, after = posteriors(belief, channel[0])
    assert np.allclose(update(belief, one)[0], after[1])
    forth, _ = update(update(belief, one)[0], two)
    back, _ = update(update(belief, two)[0], one)
    assert np.allclose(forth, back)


@given(SEEDS)
def test_joints_marginalise_the_full_joint(seed):
    model = random_model(seed, sensors=2, secrets=3, useful=2, symbols=4)
    belief, channel = model.prior, model.channel
    full = belief[None, :, :, None] * channel
    assert np.allclose(secret_joint(jnp.asarray(belief), jnp.asarray(channel)), np.moveaxis(full.sum(2), 1, 0))
    assert np.allclose(useful_joint(jnp.asarray(belief), jnp.asarray(channel[1])), full[1].sum(0))
