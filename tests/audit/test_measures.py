"""Leakage, accuracies and their intervals, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.leakage import channel_leakage, policy_leakage
from reticent.audit.measures import Resampler, calibration, calibration_error, named
from reticent.belief.information import secret_information_bits
from reticent.problem.model import Model
from reticent.problem.synthetic import two_binary_sensors

MODEL = two_binary_sensors()


def test_leakage_of_a_channel_by_hand():
    # A sensor that tells two secrets apart, with prior (.75, .25): .811 bits, one at most, log2(4/3) in guesses.
    model = Model(np.array([[0.75], [0.25]]), np.eye(2).reshape(1, 2, 1, 2), ("a", "b"), ("u",), ("x",), ("0", "1"))
    [found] = channel_leakage(model)
    assert found.shannon_bits == pytest.approx(0.8112781)
    assert found.min_entropy_bits == pytest.approx(np.log2(4 / 3))
    assert found.maximal_bits == pytest.approx(1.0)


def test_leakage_of_channels_is_the_information_of_one_release():
    for each, bits in zip(
        channel_leakage(MODEL),
        secret_information_bits(jnp.asarray(MODEL.prior), jnp.asarray(MODEL.channel)),
        strict=True,
    ):
        assert each.shannon_bits == pytest.approx(float(bits), abs=1e-9)
        assert each.shannon_bits <= each.maximal_bits
        assert each.min_entropy_bits <= each.maximal_bits + 1e-12


def test_leakage_of_a_policy_over_all_its_traces():
    # Four beliefs, equally likely: the sums over them are exact.
    belief = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    found = policy_leakage(belief, np.array([0.5, 0.5]), Resampler(np.arange(4)))
    assert found.shannon_bits.value == pytest.approx(0.5)
    assert found.vulnerability.value == pytest.approx(0.75)
    assert found.min_entropy_bits.value == pytest.approx(np.log2(1.5))
    assert found.maximal_bits.value == pytest.approx(np.log2(1.5))


def test_measures_by_hand():
    belief = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    truth = np.array([0, 0, 1, 1])
    found = named(belief, belief.argmax(1), truth, Resampler(np.arange(4)))
    assert found.accuracy.value == 0.75
    assert found.balanced.value == 0.75
    assert [one.value for one in found.per_class if one] == [1.0, 0.5]
    assert found.highest_confidence == 0.9
    assert found.confidence.value == pytest.approx(0.75)
    assert found.bits.value == pytest.approx(1 + np.log2([0.9, 0.8, 0.7, 0.4]).mean())
    bins = calibration(belief, truth, Resampler(np.arange(4)))
    assert sum(each.episodes for each in bins) == 4
    assert calibration_error(bins) == pytest.approx((0.1 + 0.2 + 0.3 + 0.6) / 4)


def test_the_bootstrap_is_over_people():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(20), 500)
    # Whole people are right or wrong: 10,000 episodes are worth twenty.
    right = np.repeat(rng.random(20) < 0.5, 500).astype(float)
    by_person = Resampler(person).ratio(right)
    by_episode = Resampler(np.arange(10_000)).ratio(right)
    assert by_person.high - by_person.low > 10 * (by_episode.high - by_episode.low)
    # A binomial of twenty has a standard error of .11; Student's t goes 2.09 of them to each side.
    assert by_person.high - by_person.low == pytest.approx(2 * 2.09 * 0.112, rel=0.25)


def test_intervals_over_few_people_hold_what_they_say():
    # Six people, whose means are normal: the plain percentiles of draws hold the truth in 83 % of the cases.
    rng = np.random.default_rng(0)
    found = [Resampler(np.arange(6), seed).ratio(rng.normal(size=6)) for seed in range(400)]
    share = np.mean([each.low <= 0 <= each.high for each in found])
    # The standard error is .011.
    assert share == pytest.approx(0.95, abs=0.035)
