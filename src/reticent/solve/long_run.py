"""The weights of the value for the long run, found by playing: those of least cost per step over simulated days."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.errors import InputError
from reticent.evaluate.estimate import mean
from reticent.guard.long_run import LongRunKernels
from reticent.policy.ongoing import LongRunLookahead
from reticent.problem.monitoring import Monitoring
from reticent.process.days import play_days
from reticent.process.ongoing import OngoingProcess

# What is tried of each weight, beside one.
OMEGAS, KAPPAS = (0.5, 2.0, 4.0), (0.0, 0.5, 2.0)
Tell = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Weighted:
    """The task under the kernels of these weights, and the process and the policy that go with it."""

    task: Monitoring
    process: OngoingProcess
    policy: LongRunLookahead

    @property
    def omega(self) -> float:
        """What the score of U is worth beyond a step."""
        return float(self.policy.omega)

    @property
    def kappa(self) -> float:
        """What that of S costs."""
        return float(self.policy.kappa)


def weighted(task: Monitoring, omega: float, kappa: float) -> Weighted:
    """The task under these weights."""
    if task.enforcement.replaces:
        task = replace(task, enforcement=task.enforcement.with_rule(LongRunKernels(omega, kappa)))
    process = OngoingProcess(task)
    return Weighted(task, process, LongRunLookahead(process, jnp.asarray(omega), jnp.asarray(kappa)))


def long_run(task: Monitoring, days: int, seed: int, report: Tell) -> Weighted:
    """Weights of one, or others that are clearly cheaper over so many days: another omega first, then another kappa.

    The hidden pair moves alike whatever the weights, so that they are compared day by day. `report` is told how many
    weights are tried, of how many, and how it goes.
    """
    if days < 2:
        raise InputError(f"Weights are compared over at least two days, not {days}.")
    others: list[dict[str, float]] = [{"omega": omega} for omega in OMEGAS] + [{"kappa": kappa} for kappa in KAPPAS]
    total = 1 + len(others)
    report(0, total, "")
    best = weighted(task, 1.0, 1.0)
    least = _costs(best, days, seed)
    for done, other in enumerate(others, 1):
        report(done, total, f"cost {least.mean():.2f} per step")
        found = weighted(task, **{"omega": best.omega, "kappa": best.kappa, **other})
        costs = _costs(found, days, seed)
        if mean(costs - least).high < 0:
            best, least = found, costs
    report(total, total, f"cost {least.mean():.2f} per step")
    return best


def _costs(found: Weighted, days: int, seed: int) -> Float[np.ndarray, " N"]:
    """Mean cost per step of each day."""
    return play_days(found.process, found.policy.act, days, seed).cost.mean(1)
