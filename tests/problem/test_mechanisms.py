"""Mechanisms of others: randomised response and its epsilon, the privacy funnel, and the models that they make."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.belief.information import secret_information_bits, useful_information_bits
from reticent.errors import InputError
from reticent.problem.mechanisms import MECHANISMS, Mechanism, privacy_funnel, randomised_response
from reticent.problem.synthetic import synthetic, tells_both, tells_useful
from tests.problems import random_model


def test_randomised_response_by_hand():
    # Four symbols, e^epsilon = 3: the reading with chance 3/6, each other one with 1/6.
    mechanism = randomised_response(tells_both(), float(np.log(3)))
    assert np.allclose(mechanism.channel[0], np.full((4, 4), 1 / 6) + np.eye(4) / 3)
    seen = mechanism.model(tells_both())
    assert np.allclose(seen.channel[0, 0, 1], [1 / 6, 1 / 2, 1 / 6, 1 / 6])
    with pytest.raises(InputError, match="epsilon must be above 0"):
        randomised_response(tells_both(), 0.0)


@given(seed=st.integers(0, 1000), epsilon=st.floats(0.1, 6))
def test_epsilon_bounds_what_one_release_does_to_the_odds(seed, epsilon):
    model = random_model(seed, secrets=3, useful=2, symbols=4)
    seen = randomised_response(model, epsilon).model(model).channel
    # Whatever the two pairs and the symbol: likelihoods differ by e^epsilon at most.
    ratios = seen.max((1, 2)) / seen.min((1, 2))
    assert ratios.max() <= np.exp(epsilon) * (1 + 1e-9)


@settings(max_examples=4)
@given(seed=st.integers(0, 1000))
def test_what_is_sent_says_no_more_than_the_readings(seed):
    model = random_model(seed, symbols=3)
    for tried in MECHANISMS.values():
        for mechanism in tried(model)[::3]:
            assert np.allclose(mechanism.channel.sum(-1), 1)
            seen = mechanism.model(model)
            for told in (secret_information_bits, useful_information_bits):
                assert (told(seen.prior, seen.channel) <= told(model.prior, model.channel) + 1e-9).all()


def test_the_funnel_gives_up_the_secret_rather_than_u():
    model = synthetic()
    said = {
        weight: [f(model.prior, privacy_funnel(model, weight).model(model).channel).sum() for f in BOTH]
        for weight in (0.0, 0.1)
    }
    raw = [f(model.prior, model.channel).sum() for f in BOTH]
    # Less of the secret for each bit on U than the readings themselves, and less still where it counts.
    shares = [secret / useful for secret, useful in (raw, said[0.0], said[0.1])]
    assert shares[0] > shares[1] > shares[2]
    assert said[0.1][1] > 0.7 * raw[1]


BOTH = (secret_information_bits, useful_information_bits)


def test_the_funnel_keeps_what_costs_nothing():
    # The sensor names U and says nothing of S: one bit, all of it kept.
    model = tells_useful()
    seen = privacy_funnel(model, 0.4).model(model)
    assert useful_information_bits(seen.prior, seen.channel)[0] == pytest.approx(1.0, abs=1e-3)


def test_recorded_codes_are_sent_by_the_channel():
    channel = np.array([[[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    codes = np.stack([np.zeros(20_000, int), np.tile([0, 1], 10_000)], axis=1)
    sent = Mechanism("by hand", channel).send(codes, seed=1)
    # Four standard errors of a share over 20,000 are .0122.
    assert abs((sent[:, 0] == 1).mean() - 0.75) < 0.0122
    assert not (sent[:, 0] == 2).any()
    assert np.array_equal(sent[:, 1], codes[:, 1])
    assert np.array_equal(sent, Mechanism("by hand", channel).send(codes, seed=1))
