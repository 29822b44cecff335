"""Lower bounds on cost from one step of lookahead: at best one more release settles all doubt about U."""

import jax
import jax.numpy as jnp

from reticent.belief.bayes import useful_marginal
from reticent.guard.rules import Outlook
from reticent.process.process import Process
from reticent.types import Belief, PerSensor, Scalar


def least_continuation(process: Process, belief: Belief) -> Scalar:
    """Continuing from a belief takes a release, and what is charged for information only grows in the mean."""
    doubt = process.objective.error_penalty * (1 - jnp.max(useful_marginal(belief)))
    return process.objective.time_cost + process.stop_cost(belief) - doubt


def least_costs(process: Process, look: Outlook) -> PerSensor:
    """The same after one release of each sensor."""

    def after(belief: Belief) -> Scalar:
        return jnp.minimum(process.stop_cost(belief), least_continuation(process, belief))

    rest = jnp.where(look.ended, 0.0, jax.vmap(jax.vmap(after))(look.belief))
    return jnp.sum(look.law * (look.cost + rest), axis=1)
