"""A value function V(beta, m) = min(stop cost, continuation value), and acting by one step of lookahead on it.

The stop is exact, only the continuation value is learned. Where bits have a price, only what comes on top of the bits
said so far is learned, which stays in the range of the plain stop cost: so the network keeps up while the price of a
bit changes.
"""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float, Inexact

from reticent.guard.rules import PublicState, Rules
from reticent.policy.features import describe

# From what a network sees to what it says.
Learned = Callable[[Any], Any]
# Cost to go at beliefs [*N S U], given the bits spent.
Value = Callable[[Any, Any], Any]


def continuation_value(
    rules: Rules, learned: Learned, belief: Inexact[Any, "*N S U"], spent_bits: Any
) -> Inexact[Any, "*N"]:
    """Learned cost of releasing at least once more and acting well from then on."""
    said = learned(describe(belief, rules.used(belief, spent_bits)))[..., 0]
    costs = rules.objective.error_penalty * said.astype(belief.dtype)
    return costs + rules.leakage_cost(belief) if rules.enforcement.priced else costs


def q_values(rules: Rules, value: Value, public: PublicState) -> Float[Any, "*N A"]:
    """Q_a = sum_y p(y) (cost + V(beta_y, m_a)), infinite for a sensor that is not allowed."""
    look = rules.outlook(public)
    xp = look.law.__array_namespace__()
    after = value(look.belief, look.spent_bits[..., None])
    costs = (look.law * (look.cost + xp.where(look.ended, 0.0, after))).sum(-1)
    return xp.where(public.allowed[..., :-1], costs, xp.inf)
