"""Which useful values no sensor tells apart."""

import numpy as np
import pytest

from reticent.problem.distinguishable import indistinguishable, useful_values_told_apart
from reticent.problem.model import Model
from reticent.problem.synthetic import synthetic, tells_both, tells_nothing, tells_useful, two_binary_sensors


@pytest.mark.parametrize("model", [synthetic, tells_both, tells_useful, two_binary_sensors])
def test_what_is_told_apart_is_not_named(model):
    assert indistinguishable(model()) == []
    assert useful_values_told_apart(model()) is None


def test_the_pair_is_named():
    assert indistinguishable(tells_nothing()) == [("u0", "u1")]
    sentence = useful_values_told_apart(tells_nothing())
    assert sentence is not None
    assert "'u0' and 'u1' apart under every secret" in sentence


def three(channel, prior=None) -> Model:
    """One sensor or more over two secrets and three useful values."""
    return Model(prior, channel, ("s0", "s1"), ("sit", "stand", "walk"), [f"a{i}" for i in range(len(channel))])


def test_one_sensor_must_do_it_under_every_secret():
    low, high = [0.8, 0.2], [0.2, 0.8]
    # Sensor 0 tells sit from stand under s0 only, sensor 1 under s1 only; both tell walk from the others.
    first = [[low, high, [0.5, 0.5]], [low, low, [0.5, 0.5]]]
    second = [[low, low, [0.5, 0.5]], [low, high, [0.5, 0.5]]]
    assert indistinguishable(three([first, second])) == [("sit", "stand")]
    # A secret under which nobody stands does not count.
    prior = np.array([[1, 1, 1], [1, 0, 1]]) / 5
    assert indistinguishable(three([first, second], prior)) == []
