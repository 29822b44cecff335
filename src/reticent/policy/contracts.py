"""Contracts that every model, process and policy must keep. Run them on your own, as the tests do on the library's."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from reticent.belief.bayes import update
from reticent.errors import InputError
from reticent.policy.policy import Policy
from reticent.problem.model import Model
from reticent.process.process import Process
from reticent.process.rollout import rollout
from reticent.types import Array

LANES, STEPS = 64, 25
ROUNDING = 1e-9


def check_model(model: Model) -> None:
    """Check a model: prior and channel are probabilities, one release moves the belief to the prior on average.

    Args:
        model: The model.

    Returns:
        Nothing. What is wrong is an `InputError`.

    Example:
        >>> rt.check_model(rt.synthetic())
    """
    prior, channel = model.prior, model.channel
    _require((prior >= 0).all() and abs(prior.sum() - 1) < ROUNDING, "The prior is no law: negative, or no sum of one.")
    rows = channel.sum(-1)
    _require((channel >= 0).all() and np.allclose(rows, 1, rtol=0, atol=ROUNDING), "A row of the channel is no law.")
    for sensor, name in enumerate(model.sensors):
        law = np.einsum("su,suz->z", prior, channel[sensor])
        posteriors = [law[z] * update(prior, channel[sensor, :, :, z])[0] for z in np.flatnonzero(law > 0)]
        _require(
            np.allclose(np.sum(posteriors, axis=0), prior, rtol=0, atol=ROUNDING),
            f"The belief after a reading of {name!r} is not the prior on average.",
        )


def check_process(process: Process, seed: int = 0) -> None:
    """Check a process by random play: beliefs, spent information, costs, and how episodes end.

    Args:
        process: The process.
        seed: Seed of the play.

    Returns:
        Nothing. What is wrong is an `InputError`: a belief that is no law, information spent that shrinks, a cost that
        is not finite, an episode that ends twice, a stop that is not allowed.

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> rt.check_process(rt.Process.of(rt.Task(tells_useful(), rt.Confidence(0.8))))
    """

    def act(key, public):
        return jax.random.categorical(key, jnp.where(public.allowed, 0.0, -jnp.inf))

    moments = _play(process, act, jnp.asarray(seed))
    belief, cost = np.asarray(moments.after.belief), np.asarray(moments.cost)
    _require((belief >= 0).all(), "A belief is negative.")
    _require(np.allclose(belief.sum((-2, -1)), 1), "A belief does not sum to one.")
    spent_before, spent = np.asarray(moments.public.spent_bits), np.asarray(moments.after.spent_bits)
    _require((spent >= spent_before).all(), "The information spent shrank.")
    _require(np.isfinite(cost).all(), "A cost is not finite.")
    # A price on what was said pays back where the secret is less sure than at first.
    _require(process.enforcement.priced or (cost >= 0).all(), "A cost is negative.")
    ends_twice = np.asarray(moments.terminated) & np.asarray(moments.truncated)
    _require(not ends_twice.any(), "An episode was terminated and truncated at once.")
    _require(np.asarray(moments.public.allowed)[..., -1].all(), "The stop was not allowed.")


def check_policy(process: Process, policy: Policy, seed: int = 0) -> None:
    """Check a policy: it takes only actions that exist and are allowed, and the same ones for the same seed.

    Args:
        process: The process to play in.
        policy: The policy.
        seed: Seed of the play.

    Returns:
        Nothing. What is wrong is an `InputError`.

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> process = rt.Process.of(rt.Task(tells_useful(), rt.Confidence(0.8)))
        >>> rt.check_policy(process, rt.OneStepLookahead(process))
    """
    moments = _play(process, policy.act, jnp.asarray(seed))
    action, allowed = np.asarray(moments.action), np.asarray(moments.public.allowed)
    _require(((action >= 0) & (action <= process.sensors)).all(), "The policy took an action that does not exist.")
    _require(np.take_along_axis(allowed, action[..., None], -1).all(), "The policy took an action that is not allowed.")
    again = np.asarray(_play(process, policy.act, jnp.asarray(seed)).action)
    _require((again == action).all(), "The policy took other actions for the same seed.")


def _require(kept: bool | np.bool_, broken: str) -> None:
    """Refuse what breaks a contract."""
    if not kept:
        raise InputError(broken)


@eqx.filter_jit
def _play(process: Process, act, seed: Array):
    def lane(key):
        first, key = jax.random.split(key)
        return rollout(process, act, key, process.init(first), STEPS)[1]

    return jax.vmap(lane)(jax.random.split(jax.random.key(seed), LANES))
