"""A value function for certificates: right not only where its policy goes, but wherever a clairvoyant would go.

The dual bound (solve/dual.py) is as tight as the value is consistent along the clairvoyant's paths, which seek out its
errors. So it learns from them: each round a clairvoyant plans on a few draws, and the value is fitted to the costs to
go at all the beliefs that he looked from, and at those of the rounds before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.policy.lookahead import Lookahead, ValueFunction
from reticent.process.process import Process
from reticent.solve.bellman import Fit, averaged, bellman_target, fitted, fresh_fit
from reticent.solve.dual import Looked, scout
from reticent.solve.value_iteration import Settings as IterationSettings
from reticent.solve.value_iteration import value_iteration
from reticent.types import Array, Scalar


@dataclass(frozen=True)
class Settings:
    """How to refine.

    A round has so many draws that the clairvoyant looks from about `looks` beliefs, judged by the round before. `kept`
    beliefs of this and earlier rounds are fitted to in `steps` batches per round; `memory` is the weight of the past in
    the running average of networks; the learning rate falls linearly to zero. `iteration` is where it starts.
    """

    rounds: int = 100
    looks: int = 3072
    kept: int = 2**16
    steps: int = 256
    batch: int = 512
    learning_rate: float = 2e-3
    memory: float = 0.8
    iteration: IterationSettings = field(default_factory=lambda: IterationSettings(rounds=80, lanes=64, width=128))


DEFAULT = Settings()
FIRST_DRAWS = 8


def refined_policy(
    process: Process,
    seed: int = 0,
    settings: Settings = DEFAULT,
    report: Callable[[int], None] | None = None,
) -> Lookahead:
    """A policy by value iteration, with its value refined. `report` is called with the rounds done of both."""
    policy = value_iteration(process, seed, settings.iteration, lambda done, _: report(done) if report else None)
    process, average = policy.process, policy.value.network
    rng, fit, draws = np.random.default_rng(seed), fresh_fit(average), FIRST_DRAWS
    kept = Looked(np.zeros((0, *process.prior.shape)), np.zeros((0, process.sensors)))
    for done in range(settings.rounds):
        looked = scout(process, ValueFunction(process, average), draws, int(rng.integers(2**32)))
        draws = max(1, draws * settings.looks // max(len(looked.costs), 1))
        kept = Looked(*(np.concatenate(pair)[-settings.kept :] for pair in zip(kept, looked, strict=True)))
        if not kept.costs.size:
            # Stopping at once is provably optimal: nobody looks anywhere.
            return policy
        rows = rng.integers(len(kept.costs), size=(settings.steps, settings.batch))
        rate = jnp.asarray(settings.learning_rate * (1 - done / settings.rounds), jnp.float32)
        fit = _fit(process, fit, jnp.asarray(kept.belief[rows]), jnp.asarray(kept.costs[rows]), rate)
        average = averaged(average, fit.network, settings.memory)
        if report:
            report(settings.iteration.rounds + done + 1)
    return Lookahead(process, ValueFunction(process, average))


@eqx.filter_jit
def _fit(
    process: Process,
    fit: Fit,
    beliefs: Float[Array, "M B S U"],
    costs: Float[Array, "M B A"],
    rate: Scalar,
) -> Fit:
    nothing_spent = jnp.zeros(())
    batches = jax.vmap(jax.vmap(lambda belief, costs: bellman_target(process, belief, nothing_spent, costs)))(
        beliefs, costs
    )
    return fitted(process, fit, batches, rate)
