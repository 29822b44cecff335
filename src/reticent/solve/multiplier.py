"""The price of a bit, learned while a policy is trained: dual ascent for the bound on expected information.

    mu  <-  max(0, mu + step * (mean leakage of the episodes that ended - L))

A policy that says too much finds its bits dearer in the next round, one that says too little finds them cheaper. The
optimum is a draw between two policies (`solve_expected`), so one policy that does not randomise comes to lie near the
limit, on either side: what it leaks must be measured.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Bool, Float

from reticent.process.rollout import AnyProcess
from reticent.types import Array, Scalar

# One step moves the multiplier by at most this share of lambda per bit.
RATE = 0.3
# The n-th multiplier enters the running average with weight (1 + LATE) / (n + LATE): later ones count more.
LATE = 3.0


class Leakage(eqx.Module):
    """Bits that finished episodes gave away about the secret, and how many episodes these were."""

    bits: Scalar
    episodes: Scalar


class Price(eqx.Module):
    """The multiplier mu in force, the average of the late ones, and the steps taken so far: a training's state."""

    multiplier: Scalar
    average: Scalar
    steps: Scalar


def free(process: AnyProcess) -> Price | None:
    """Bits cost nothing at first. Only a bound on expected information has a price to learn."""
    return Price(jnp.zeros(()), jnp.zeros(()), jnp.zeros(())) if process.enforcement.priced else None


def priced(process: Any, price: Price | None) -> Any:
    """The process at the price in force."""
    return process if price is None else process.with_multiplier(price.multiplier)


def finally_priced(process: Any, price: Price | None) -> Any:
    """The process at the average of the late prices."""
    return process if price is None else process.with_multiplier(price.average)


def leakage(ended: Bool[Array, "*any"], spent_bits: Float[Array, "*any"]) -> Leakage:
    """What the episodes that ended at some of these steps had said by then."""
    return Leakage(jnp.sum(jnp.where(ended, spent_bits, 0.0)), jnp.sum(ended).astype(float))


def ascend(process: AnyProcess, price: Price, leaked: Leakage, left: Scalar) -> Price:
    """One step up the dual. The step falls with `left`, the share of the training that is still to come.

    It is counted in shares of the limit, at most one, so that neither a small limit nor a first policy that says
    everything throws the multiplier out of range. A round in which no episode ended teaches nothing.
    """
    excess = jnp.minimum(leaked.bits / jnp.maximum(leaked.episodes, 1.0) / process.bound.number - 1, 1.0)
    step = RATE * process.objective.error_penalty * left.astype(float)
    raised = jnp.maximum(price.multiplier + jnp.where(leaked.episodes > 0, step * excess, 0.0), 0.0)
    steps = price.steps + 1
    average = price.average + (raised - price.average) * (1 + LATE) / (steps + LATE)
    return Price(raised, average, steps)
