"""Contracts that every process and policy must keep. Run them on your own implementation, as the tests do on ours."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from reticent.policy.policy import Policy
from reticent.process.process import Process
from reticent.process.rollout import rollout
from reticent.types import Array

LANES, STEPS = 64, 25


def check_process(process: Process, seed: int = 0) -> None:
    """Random play: beliefs on the simplex, spent information that grows, finite costs, one end of each episode."""

    def act(key, public):
        return jax.random.categorical(key, jnp.where(public.allowed, 0.0, -jnp.inf))

    moments = _play(process, act, jnp.asarray(seed))
    belief = np.asarray(moments.after.belief)
    assert (belief >= 0).all(), "A belief is negative."
    assert np.allclose(belief.sum((-2, -1)), 1), "A belief does not sum to one."
    assert (np.asarray(moments.after.spent_bits) >= np.asarray(moments.public.spent_bits)).all(), "Spent bits shrank."
    assert np.isfinite(moments.cost).all(), "A cost is not finite."
    # A price on what was said pays back where the secret is less sure than at first.
    assert process.enforcement.priced or (np.asarray(moments.cost) >= 0).all(), "A cost is negative."
    assert not (moments.terminated & moments.truncated).any(), "An episode was terminated and truncated at once."
    assert np.asarray(moments.public.allowed)[..., -1].all(), "Stop was not allowed."


def check_policy(process: Process, policy: Policy, seed: int = 0) -> None:
    """The policy takes only actions that exist and are allowed, and the same ones for the same seed."""
    moments = _play(process, policy.act, jnp.asarray(seed))
    action, allowed = np.asarray(moments.action), np.asarray(moments.public.allowed)
    assert np.issubdtype(action.dtype, np.integer), "An action is not an index."
    assert ((action >= 0) & (action <= process.sensors)).all(), "An action does not exist."
    assert np.take_along_axis(allowed, action[..., None], -1).all(), "An action was taken that is not allowed."
    assert (np.asarray(_play(process, policy.act, jnp.asarray(seed)).action) == action).all(), (
        "The same seed gave other actions."
    )


@eqx.filter_jit
def _play(process: Process, act, seed: Array):
    def lane(key):
        first, key = jax.random.split(key)
        return rollout(process, act, key, process.init(first), STEPS)[1]

    return jax.vmap(lane)(jax.random.split(jax.random.key(seed), LANES))
