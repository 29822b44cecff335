import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from reticent.belief.information import entropy_bits, secret_information_bits, useful_information_bits
from reticent.problem.synthetic import tells_both, tells_nothing, tells_useful
from tests.problems import random_model

SEEDS = st.integers(0, 2**31 - 1)


@pytest.mark.parametrize(
    ("model", "secret", "useful"), [(tells_both, 1, 1), (tells_useful, 0, 1), (tells_nothing, 0, 0)]
)
def test_information_by_hand(model, secret, useful):
    belief, channel = jnp.asarray(model().prior), jnp.asarray(model().channel)
    assert secret_information_bits(belief, channel)[0] == pytest.approx(secret, abs=1e-12)
    assert useful_information_bits(belief, channel)[0] == pytest.approx(useful, abs=1e-12)


@given(SEEDS)
def test_entropy_agrees_with_scipy(seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(5))
    p[0], p[1] = 0.0, p[0] + p[1]
    assert float(entropy_bits(jnp.asarray(p))) == pytest.approx(entropy(p, base=2))


@given(SEEDS, st.booleans())
def test_information_is_bounded_and_processing_loses_some(seed, sparse):
    model = random_model(seed, secrets=3, symbols=4, sparse=sparse)
    belief = jnp.asarray(model.prior)
    bits = secret_information_bits(belief, jnp.asarray(model.channel))
    assert (bits >= 0).all()
    assert (bits <= entropy_bits(belief.sum(1)) + 1e-12).all()
    garble = np.random.default_rng(seed).dirichlet(np.ones(3), 4)
    garbled = secret_information_bits(belief, jnp.asarray(model.channel @ garble))
    assert (garbled <= bits + 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_chain_rule_against_enumeration_of_every_path(seed, steps):
    """E[sum of I_a(beta) along the path] = H(S) - E[H(S | path)], sensors chosen by a fixed rule of the history."""
    model = random_model(seed, sensors=2, secrets=3, useful=2, symbols=3)
    spent, left = 0.0, 0.0
    for symbols in itertools.product(range(3), repeat=steps):
        joint, ledger = model.prior.copy(), 0.0
        for t, z in enumerate(symbols):
            sensor = (sum(symbols[:t]) + t) % 2
            belief = joint / joint.sum()
            ledger += float(secret_information_bits(jnp.asarray(belief), jnp.asarray(model.channel[sensor])))
            joint = joint * model.channel[sensor, :, :, z]
        chance = joint.sum()
        spent += chance * ledger
        left += chance * entropy(joint.sum(1) / chance, base=2)
    assert spent == pytest.approx(entropy(model.prior.sum(1), base=2) - left, abs=1e-10)
