"""What networks see of the public state of a problem that goes on, as 32-bit numbers."""

from typing import Any

from jaxtyping import Float

from reticent.belief.bayes import secret_marginal, useful_marginal
from reticent.guard.long_run import long_run_value
from reticent.guard.ongoing import OngoingRules, OngoingState
from reticent.policy.features import as_32_bits, describe
from reticent.policy.settings import GAIN_SCALE, LEAST_BELIEF, LOG_SCALE, Inputs, seen
from reticent.types import PerSensor

# Beside the description of the belief: the logarithm of the headroom, and the share of slots that is taken.
EXTRA = 2


def step_costs(rules: OngoingRules, public: OngoingState) -> Float[Any, " A_plus_silence"]:
    """What this step costs on average if each sensor speaks, and at the end if none does.

    C_T + lambda (1 - sum_y max_u P(u, y)) of a sensor, lambda (1 - max_u b(u)) of silence.
    """
    right = rules.prospect(public).useful.max(0).sum(1)
    speaking = rules.objective.time_cost + rules.objective.error_penalty * (1 - right)
    return speaking.__array_namespace__().concatenate([speaking, rules.error_cost(public.belief)[None]])


def gains(rules: OngoingRules, public: OngoingState) -> PerSensor:
    """By how much less than silence this step costs if each sensor speaks."""
    costs = step_costs(rules, public)
    return costs[-1:] - costs[:-1]


def long_run_costs(rules: OngoingRules, public: OngoingState, omega: Any, kappa: Any) -> Float[Any, " A_plus_silence"]:
    """What this step costs on average, and the value for the long run after it: see `reticent.guard.long_run`."""
    prospect = rules.prospect(public)
    after = long_run_value(omega, kappa, prospect.secret, prospect.useful).sum(1)
    now = secret_marginal(public.belief)[:, None], useful_marginal(public.belief)[:, None]
    value = after.__array_namespace__().concatenate([after, long_run_value(omega, kappa, *now)])
    return step_costs(rules, public) + rules.objective.error_penalty * value


def ongoing_features(rules: OngoingRules, inputs: Inputs, public: OngoingState) -> Float[Any, " F"]:
    """What an actor sees; as in `policy.features`, with the headroom and the open moments beside the belief."""
    belief = public.belief
    if inputs == "belief":
        return as_32_bits(belief.reshape(-1))
    xp = belief.__array_namespace__()
    room = xp.log(xp.maximum(public.headroom, LEAST_BELIEF)) / LOG_SCALE
    extra = as_32_bits(xp.stack([room, public.open_moments]))
    seen = [describe(belief, 1 - public.headroom), extra, as_32_bits(public.allowed[:-1])]
    if inputs == "rich":
        gain = gains(rules, public) / rules.objective.time_cost
        seen.append(as_32_bits(xp.tanh(gain / GAIN_SCALE)))
    return xp.concatenate(seen)


def ongoing_seen(inputs: Inputs, secrets: int, useful: int, sensors: int) -> int:
    """How many numbers an actor sees."""
    return seen(inputs, secrets, useful, sensors) + (0 if inputs == "belief" else EXTRA)
