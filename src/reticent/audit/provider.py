"""Belief of a learned provider at the end of each trace of raw readings."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.audit.traces import Traces
from reticent.belief.filter import Filter
from reticent.belief.training import Examples
from reticent.errors import InputError
from reticent.types import Array, Belief


@eqx.filter_jit
def final_beliefs(provider: Filter, examples: Examples) -> Float[Array, "N S U"]:
    """Belief of the provider after the last reading of each example."""

    def one(example: Examples) -> Belief:
        def step(carry, step):
            known, count = carry
            sensor, reading = step
            learned, _ = provider.update(known, sensor, reading, None)
            known = jax.tree.map(lambda old, new: jnp.where(count < example.length, new, old), known, learned)
            return (known, count + 1), None

        (known, _), _ = jax.lax.scan(step, (provider.initial(), 0), (example.sensor, example.reading))
        return provider.belief(known)

    return jax.lax.map(one, examples, batch_size=256)


def examples_of(traces: Traces) -> Examples:
    """Traces of raw readings as examples for a provider, without the stops."""
    if traces.reading is None:
        raise InputError("A provider reads raw readings; these traces hold symbols.")
    arrays = np.maximum(traces.sensor, 0), traces.reading, traces.length, traces.secret, traces.useful
    return Examples(*(jnp.asarray(x) for x in arrays))
