import jax.numpy as jnp
import numpy as np

from reticent.solve.returns import lambda_advantages


def advantages(trace, terminated=(False, False, False), truncated=(False, False, False), discount=0.9):
    costs, values, following = jnp.array([1.0, 2.0, 3.0]), jnp.array([10.0, 20.0, 30.0]), jnp.array([20.0, 30.0, 40.0])
    ends = (jnp.array(terminated), jnp.array(truncated))
    return np.asarray(lambda_advantages(costs, values, following, *ends, discount=discount, trace=trace))


def test_trace_zero_is_the_td_error():
    assert np.allclose(advantages(0.0), [1 + 18 - 10, 2 + 27 - 20, 3 + 36 - 30])


def test_trace_one_sums_discounted_costs_to_the_bootstrap():
    assert np.allclose(advantages(1.0)[0], 1 + 0.9 * 2 + 0.81 * 3 + 0.729 * 40 - 10)


def test_termination_ends_the_sum_without_bootstrap():
    assert np.allclose(advantages(1.0, terminated=(False, True, False)), [1 + 0.9 * 2 - 10, 2 - 20, 9])


def test_truncation_ends_the_sum_with_bootstrap():
    assert np.allclose(advantages(1.0, truncated=(False, True, False))[:2], [1 + 0.9 * (2 + 27) - 10, 2 + 27 - 20])
