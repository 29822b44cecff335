"""What networks see of the public state, as 32-bit numbers: one source for training and for the gateway."""

from typing import Any

from jaxtyping import Float, Inexact

from reticent.guard.rules import PublicState, Rules
from reticent.policy.settings import GAIN_SCALE, LEAST_BELIEF, LEAST_DOUBT, LOG_SCALE, Inputs


def describe(belief: Inexact[Any, "*N S U"], used: Any) -> Inexact[Any, "*N F"]:
    """The belief, its logarithm and marginals, the share of the bound that is used up, and how unsure U still is."""
    xp = belief.__array_namespace__()
    belief = as_32_bits(belief)
    by_useful = belief.sum(-2)
    flat = belief.reshape(*belief.shape[:-2], -1)
    # A belief that rounding puts above one must not give the root of a negative number.
    unsure = xp.sqrt(xp.maximum(1 - by_useful.max(-1), LEAST_DOUBT))
    logarithm = xp.log(xp.maximum(flat, LEAST_BELIEF)) / LOG_SCALE
    used = as_32_bits(xp.asarray(used)) + xp.zeros_like(unsure)
    return xp.concatenate([flat, logarithm, belief.sum(-1), by_useful, used[..., None], unsure[..., None]], axis=-1)


def as_32_bits(x: Any) -> Any:
    """The array with 32 bits for each number; of complex ones, by which numpy finds gradients, for each part."""
    return x.astype("complex64" if x.dtype.kind == "c" else "float32")


def lookahead_costs(rules: Rules, public: PublicState) -> Float[Any, "*N A"]:
    """Cost of one release and then stopping: C_T + sum_z p(z) (C_B if beta_z is in F, else stop(beta_z)).

    Stop cost and forbidden region are homogeneous in the belief, so the posteriors need no division.
    """
    prospect, enforcement = rules.prospect(public), rules.enforcement
    law = prospect.law
    end = rules.objective.error_penalty * (law - prospect.useful.max(0))
    if rules.ends_on_crossing:
        entered = rules.bound.entered(prospect.secret, law) & (law > 0)
        charged = rules.release_cost(False, True) - rules.objective.time_cost
        end = law.__array_namespace__().where(entered, charged * law, end)
    costs = rules.objective.time_cost + end.sum(-1)
    if enforcement.priced:
        # What one more release says about the secret is paid for at the stop, on average over its readings.
        costs = costs + rules.leakage_cost(public.belief)[..., None] + enforcement.price * prospect.bits
    return costs


def features(rules: Rules, inputs: Inputs, public: PublicState) -> Float[Any, "*N F"]:
    """What an actor sees.

    Of one subject, or of many at once. "belief" is the paper's input: beta alone. "described" adds its logarithm and
    marginals, the share of the bound that is used up, for the provider for whom it is most, and which sensors are
    allowed. "rich" adds what each sensor gains over stopping now by one-step lookahead, for which the rules must have a
    finite model.
    """
    belief = public.belief
    if inputs == "belief":
        return as_32_bits(belief.reshape(*belief.shape[:-2], -1))
    xp = belief.__array_namespace__()
    seen = [describe(belief, rules.most_used(public)), as_32_bits(public.allowed[..., :-1])]
    if inputs == "rich":
        gain = (rules.stop_cost(belief)[..., None] - lookahead_costs(rules, public)) / rules.objective.time_cost
        seen.append(as_32_bits(xp.tanh(gain / GAIN_SCALE)))
    return xp.concatenate(seen, axis=-1)
