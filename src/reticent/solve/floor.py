"""Costs that no policy can go below, from one look ahead: at best one more release settles all doubt about U."""

import jax
import jax.numpy as jnp

from reticent.belief.bayes import useful_marginal
from reticent.process.process import Outlook, Process
from reticent.types import Belief, PerSensor, Scalar


def least_going_on(process: Process, belief: Belief) -> Scalar:
    """Going on from a belief takes a release, and what is charged for information only grows in the mean."""
    doubt = process.objective.error_penalty * (1 - jnp.max(useful_marginal(belief)))
    return process.objective.time_cost + process.stop_cost(belief) - doubt


def least_costs(process: Process, look: Outlook) -> PerSensor:
    """The same after one release of each sensor."""

    def after(belief: Belief) -> Scalar:
        return jnp.minimum(process.stop_cost(belief), least_going_on(process, belief))

    rest = jnp.where(look.ended, 0.0, jax.vmap(jax.vmap(after))(look.belief))
    return jnp.sum(look.law * (look.cost + rest), axis=1)
