import numpy as np

from reticent.problem.synthetic import synthetic


def test_synthetic_problem_is_the_documented_one():
    model = synthetic(seed=0)
    assert model.channel.shape == (3, 3, 3, 50)
    assert np.array_equal(model.prior, np.full((3, 3), 1 / 9))
    # By hand: sensor 0 sees u = 2 under secret 2 with mean 3, on the grid from -4.5 to 7.5.
    sigma = np.random.default_rng(0).uniform(0.5, 1.5, (3, 3, 3))[0, 2, 2]
    z = np.linspace(-4.5, 7.5, 50)
    density = np.exp(-((z - 3) ** 2) / (2 * sigma**2))
    assert np.allclose(model.channel[0, 2, 2], density / density.sum())
    assert abs(model.channel[0, 0, 2] @ z) < 0.05


def test_seeds_differ():
    assert not np.array_equal(synthetic(0).channel, synthetic(1).channel)
