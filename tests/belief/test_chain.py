"""Filter, smoother and prediction against the enumeration of all hidden paths, and against an outside library."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM
from hypothesis import given
from hypothesis import strategies as st

from reticent.belief.chain import filtered, forecast, predict, smoothed
from reticent.belief.trajectory import directed_bits, present_bits, trajectory_bits
from reticent.errors import InputError
from tests.problems import random_chain

SEEDS = st.integers(0, 2**31 - 1)


def some_sequence(seed, steps, sparse=False):
    """A chain, which sensor spoke and what it said at each step, and the likelihoods of that."""
    model = random_chain(seed, sensors=2, secrets=2, useful=2, symbols=3, sparse=sparse)
    rng = np.random.default_rng(seed)
    sensors = rng.integers(2, size=steps)
    # Symbol 0 is possible under every pair.
    symbols = np.zeros(steps, int) if sparse else rng.integers(3, size=steps)
    return model, sensors, symbols, model.channel[sensors, :, :, symbols]


def all_paths(model, likelihoods):
    """Every hidden path [P T] as indices of pairs, and its joint probability with what was sent [P]."""
    prior, moves = model.prior.reshape(-1), model.dynamics.reshape(4, 4)
    paths = np.array(list(product(range(4), repeat=len(likelihoods))))
    weight = prior[paths[:, 0]]
    for t in range(1, paths.shape[1]):
        weight = weight * moves[paths[:, t - 1], paths[:, t]]
    for t, likelihood in enumerate(likelihoods):
        weight = weight * likelihood.reshape(-1)[paths[:, t]]
    return paths, weight


def by_enumeration(model, likelihoods, t):
    paths, weight = all_paths(model, likelihoods)
    return np.bincount(paths[:, t], weight, 4).reshape(2, 2) / weight.sum()


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_all_agree_with_the_enumeration_of_all_paths(array, steps):
    for seed in range(4):
        model, _, _, likelihoods = some_sequence(seed, steps, sparse=seed % 2 == 1)
        moves = array(model.dynamics)
        forward = filtered(array(model.prior), moves, array(likelihoods))
        both = smoothed(array(model.prior), moves, array(likelihoods))
        for t in range(steps):
            assert np.allclose(forward[t], by_enumeration(model, likelihoods[: t + 1], t), atol=1e-12)
            assert np.allclose(both[t], by_enumeration(model, likelihoods, t), atol=1e-12)
        # A step at which nothing is sent says nothing.
        silent = np.concatenate([likelihoods, np.ones((2, 2, 2))])
        later = forecast(forward[-1], moves, 2)
        assert np.allclose(later[1], by_enumeration(model, silent[:7], steps + 1), atol=1e-12)


@given(SEEDS)
def test_filter_and_smoother_agree_with_an_outside_library(seed):
    model = random_chain(seed, sensors=1, secrets=2, useful=3, symbols=4)
    symbols = np.random.default_rng(seed).integers(4, size=40)
    theirs = CategoricalHMM(6, n_features=4, init_params="")
    theirs.startprob_, theirs.transmat_ = model.prior.reshape(-1), model.dynamics.reshape(6, 6)
    theirs.emissionprob_ = model.channel[0].reshape(6, 4)
    likelihoods = np.moveaxis(model.channel[0][..., symbols], -1, 0)
    found = smoothed(model.prior, model.dynamics, likelihoods)
    assert np.allclose(found.reshape(40, 6), theirs.predict_proba(symbols[:, None]), atol=1e-9)
    last = filtered(model.prior, model.dynamics, likelihoods)[-1]
    assert np.allclose(last, found[-1], atol=1e-12)


def test_sequences_side_by_side():
    model, _, _, likelihoods = some_sequence(0, 6)
    both = np.stack([likelihoods, likelihoods[::-1]])
    found = smoothed(model.prior, model.dynamics, both)
    assert np.allclose(found[1], smoothed(model.prior, model.dynamics, likelihoods[::-1]), atol=1e-15)


def test_where_nothing_moves_the_smoother_is_the_last_belief():
    model, _, _, likelihoods = some_sequence(1, 6)
    found = smoothed(model.prior, model.moving(None).dynamics, likelihoods)
    assert np.allclose(found, found[-1], atol=1e-13)


def test_what_the_model_calls_impossible_is_refused():
    model, _, _, likelihoods = some_sequence(2, 4)
    likelihoods = np.where(np.arange(4)[:, None, None] == 2, 0.0, likelihoods)
    with pytest.raises(InputError, match="sent at step 2 has probability zero"):
        smoothed(model.prior, model.dynamics, likelihoods)


def test_prediction_by_hand():
    model = random_chain(0).moving({"secret": [[0.9, 0.1], [0.2, 0.8]], "useful": [[0.5, 0.5], [0.5, 0.5]]})
    after = predict(np.array([[0.2, 0.4], [0.1, 0.3]]), model.dynamics)
    # P(S' = 0) = .6 * .9 + .4 * .2 = .62; U is drawn anew.
    assert np.allclose(after, [[0.31, 0.31], [0.19, 0.19]])


def laws_of_three_steps(model):
    """The joint law of secret paths and symbols over three steps, and the mean of each information by its helper."""
    joint, means = np.zeros((8, 8)), np.zeros(3)
    for y, symbols in enumerate(product(range(2), repeat=3)):
        likelihoods = np.moveaxis(model.channel[0][..., list(symbols)], -1, 0)
        paths, weight = all_paths(model, likelihoods)
        after = filtered(model.prior, model.dynamics, likelihoods)
        before = np.concatenate([model.prior[None], forecast(after, model.dynamics, 1)[:-1, 0]])
        means[0] += weight.sum() * present_bits(before, after).sum()
        for s, path in enumerate(product(range(2), repeat=3)):
            joint[s, y] = weight[(paths // 2 == path).all(1)].sum()
            means[1] += joint[s, y] * directed_bits(model.prior, model.dynamics, likelihoods, np.array(path)).sum()
            means[2] += joint[s, y] * trajectory_bits(model.prior, model.dynamics, likelihoods, np.array(path))
    return joint, means


def test_information_along_sequences_averages_to_that_of_the_joint_law():
    joint, (present, directed, trajectory) = laws_of_three_steps(random_chain(5, sensors=1, symbols=2))
    independent = joint.sum(1, keepdims=True) * joint.sum(0)
    assert trajectory == pytest.approx((joint * np.log2(joint / independent)).sum(), abs=1e-12)
    # I(S^t; Y^t) - I(S^t; Y^{t-1}) of each t, from the same law with the later symbols summed out.
    chained, law = 0.0, joint.reshape(2, 2, 2, 2, 2, 2)
    for t in range(1, 4):
        secrets = law.sum(tuple(range(t, 3)))
        for sent, sign in ((t, 1), (t - 1, -1)):
            table = secrets.sum(tuple(range(t + sent, t + 3))).reshape(2**t, 2**sent)
            apart = table.sum(1, keepdims=True) * table.sum(0)
            chained += sign * (table * np.log2(table / apart)).sum()
    assert directed == pytest.approx(chained, abs=1e-12)
    assert 0 < present < directed < trajectory


def test_of_a_secret_that_moves_by_itself_directed_and_trajectory_agree():
    moves = {"secret": [[0.9, 0.1], [0.2, 0.8]], "useful": [[0.6, 0.4], [0.3, 0.7]]}
    _, (_, directed, trajectory) = laws_of_three_steps(random_chain(5, sensors=1, symbols=2).moving(moves))
    assert directed == pytest.approx(trajectory, abs=1e-12)
