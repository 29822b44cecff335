"""The exact optimal cost of a few steps of a problem that goes on, by the tree of all that may be sent.

    V_0 = 0,    V_n(m) = min_a sum_y p(y | m, a) (c(a, y) + discount V_{n-1}(m_y)),

where m are the public moments, a is an allowed sensor or silence, and c its cost of one step. It grows with (A Y)^n, so
it serves tiny problems and short horizons, where other solvers are held against it. Without a bound the provider learns
no less from anything that is sent, and the cost can only be lower: the same tree is then a lower bound.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.guard.moments import Moments
from reticent.guard.ongoing import MonitoringRules, OngoingState
from reticent.problem.bound import Unbounded
from reticent.problem.enforcement import Penalty
from reticent.problem.monitoring import Monitoring

# More nodes than this take minutes.
MOST_NODES = 300_000


@dataclass(frozen=True)
class FirstSteps:
    """The least expected cost of the first `steps` steps, exact; and `lower`, that of the same without a bound.

    `action` is the best first action: a sensor, or one past the last for silence.
    """

    steps: int
    discount: float
    cost: float
    lower: float
    action: int


def first_steps(task: Monitoring, steps: int, discount: float = 1.0) -> FirstSteps:
    """The exact optimum over the next few steps, among all policies that see what is public."""
    rules = MonitoringRules(task)
    free = MonitoringRules(replace(task, bound=Unbounded(), enforcement=Penalty(), window=None))
    _check_size(rules, steps)
    cost, action = _value(rules, rules.begin(), steps, discount)
    lower, _ = _value(free, free.begin(), steps, discount)
    return FirstSteps(steps, discount, cost, lower, action)


def _value(rules: MonitoringRules, public: OngoingState, steps: int, discount: float) -> tuple[float, int]:
    """V_n, and the action that attains it."""
    if steps == 0:
        return 0.0, len(rules.channel)
    costs = [_of(rules, public, action, steps, discount) for action in np.flatnonzero(public.allowed)]
    best = int(np.argmin(costs))
    return costs[best], int(np.flatnonzero(public.allowed)[best])


def _of(rules: MonitoringRules, public: OngoingState, action: Any, steps: int, discount: float) -> float:
    """The cost of one action, and of acting best from then on."""

    def on(moments: Moments, bits: Any) -> float:
        later = _value(rules, rules.later(public, moments, bits), steps - 1, discount)[0] if steps > 1 else 0.0
        return float(rules.error_cost(moments.belief)) + discount * later

    if action == len(rules.channel):
        return on(public.moments, 0.0)
    prospect, total = rules.prospect(public), rules.objective.time_cost
    for symbol in np.flatnonzero(prospect.law[action] > 0):
        told, _ = rules.sent(public, action, symbol)
        total += prospect.law[action, symbol] * on(told, prospect.bits_of(action))
    return float(total)


def _check_size(rules: MonitoringRules, steps: int) -> None:
    symbols = rules.emissions(rules.begin()).shape[-1]
    nodes = (len(rules.channel) * symbols + 1) ** max(steps - 1, 0)
    if steps < 1 or nodes > MOST_NODES:
        raise InputError(
            f"The tree of {steps} steps has {nodes:,} nodes; it may have between 1 step and {MOST_NODES:,} nodes. "
            "Choose fewer steps, or a smaller problem."
        )
