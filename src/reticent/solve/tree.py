"""Exact values of small problems under any enforcement, by recursion over the beliefs that the provider can hold.

Under a guarantee what a sensor sends depends on the belief, so histories do not fold into counts as on the lattice.
They fold where they lead to the same public state, which after few releases they often do. Levels are built forward,
one more release each, and solved backward, from exactly what the process itself says may happen.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.errors import InputError
from reticent.process.process import Process
from reticent.solve.lattice import Bracket
from reticent.solve.one_step_bound import least_costs
from reticent.types import Array, Belief, Scalar

STATES = 256
# Public states nearer than this are one: far above rounding, far below what changes a cost.
SAME = 1e-11


class _Step(NamedTuple):
    """What each sensor may lead to, for each of N public states. `least`: no policy that goes on pays less.

    Shapes: stop [N], least and spent_bits [N A], law, cost and ended [N A Y], belief [N A Y S U].
    """

    stop: Any
    least: Any
    law: Any
    cost: Any
    ended: Any
    belief: Any
    spent_bits: Any


class _Level(NamedTuple):
    """Public states after the same number of releases, with where each symbol leads in the next level."""

    stop: Float[np.ndarray, " N"]
    live: Int[np.ndarray, " M"]
    law: Float[np.ndarray, "M A Y"]
    cost: Float[np.ndarray, "M A Y"]
    allowed: Bool[np.ndarray, "M A"]
    child: Int[np.ndarray, "M A Y"]


def solve_tree(process: Process, horizon: int, max_nodes: int = 1_000_000) -> Bracket:
    """The exact cost for at most `horizon` releases, and a lower bound on that of any number of them."""
    if process.enforcement.relaxation(process.bound) is None:
        raise InputError(f"There is no exact solution under the enforcement {process.enforcement.name!r}.")
    belief, spent = np.asarray(process.prior)[None], np.zeros(1)
    levels, nodes = [], 1
    for _ in range(horizon):
        level, belief, spent = _expand(process, belief, spent)
        levels.append(level)
        nodes += len(spent)
        if nodes > max_nodes:
            raise InputError(
                f"{horizon} releases need more than {max_nodes} nodes (depth {len(levels)} was reached): "
                "take a shorter horizon or allow more nodes."
            )
        if not len(spent):
            break
    values = np.zeros((2, 0))
    if len(spent):
        last = _steps(process, belief, spent)
        values = np.stack([np.minimum(last.stop, last.least.min(1)), last.stop])
    first = process.sensors
    for level in reversed(levels):
        values, first = _back_up(level, values)
    lower, upper = values[:, 0].tolist()
    return Bracket(lower, upper, first, nodes, len(levels))


def _expand(process: Process, belief: Float[np.ndarray, "N S U"], spent: Float[np.ndarray, " N"]):
    """The level of these public states, and those of the next one."""
    step = _steps(process, belief, spent)
    # Elsewhere stopping is optimal, whatever comes: one more release would have to settle more than everything.
    live = np.flatnonzero(step.least.min(1) < step.stop)
    law, allowed = step.law[live], np.isfinite(step.least[live])
    goes_on = (law > 0) & ~step.ended[live] & allowed[:, :, None]
    beliefs = step.belief[live][goes_on]
    spents = np.broadcast_to(step.spent_bits[live][:, :, None], law.shape)[goes_on]
    states = np.concatenate([beliefs.reshape(len(spents), -1), spents[:, None]], axis=1)
    _, first, position = np.unique(np.rint(states / SAME), axis=0, return_index=True, return_inverse=True)
    child = np.full(law.shape, -1)
    child[goes_on] = position.reshape(-1)
    level = _Level(step.stop, live, law, step.cost[live], allowed, child)
    return level, beliefs[first], spents[first]


def _back_up(level: _Level, following: Float[np.ndarray, "2 L"]) -> tuple[Float[np.ndarray, "2 N"], int]:
    """V = min(stop, min_a sum_y p(y) (cost + V')), lower and upper side, and the first state's best action."""
    values = np.stack([level.stop, level.stop])
    # Position -1 is the padding: nothing follows there.
    padded = np.pad(following, ((0, 0), (0, 1)))
    costs = np.sum(level.law * (level.cost + padded[:, level.child]), axis=-1)
    costs = np.where(level.allowed, costs, np.inf)
    first = costs.shape[-1]
    if level.live.size and level.live[0] == 0 and costs[1, 0].min() < level.stop[0]:
        first = int(costs[1, 0].argmin())
    values[:, level.live] = np.minimum(values[:, level.live], costs.min(-1))
    return values, first


def _steps(process: Process, belief: Float[np.ndarray, "N S U"], spent: Float[np.ndarray, " N"]) -> _Step:
    """Calls of one size, the last one padded, so that nothing is compiled twice."""
    more = -len(spent) % STATES
    belief = np.concatenate([belief, np.repeat(belief[-1:], more, axis=0)])
    padded = np.concatenate([spent, np.repeat(spent[-1:], more)])
    parts = [
        jax.device_get(_step(process, jnp.asarray(belief[i : i + STATES]), jnp.asarray(padded[i : i + STATES])))
        for i in range(0, len(padded), STATES)
    ]
    return _Step(*(np.concatenate(columns)[: len(spent)] for columns in zip(*parts, strict=True)))


@eqx.filter_jit
def _step(process: Process, beliefs: Float[Array, "N S U"], spent: Float[Array, " N"]) -> _Step:
    def one(belief: Belief, spent: Scalar) -> _Step:
        public = process.public(belief, spent)
        look = process.outlook(public)
        least = jnp.where(public.allowed[:-1], least_costs(process, look), jnp.inf)
        # Only a bound on the information spent makes it part of the state.
        spent_bits = look.spent_bits if process.bound.on_spending else jnp.zeros_like(look.spent_bits)
        return _Step(process.stop_cost(belief), least, look.law, look.cost, look.ended, look.belief, spent_bits)

    return jax.vmap(one)(beliefs, spent)
