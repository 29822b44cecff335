"""The public rules of a problem that goes on: everything that follows from what was sent, silence included.

As `reticent.guard.rules`, for a hidden pair that moves and a device that never stops. One source over arrays of numpy
and of JAX.
"""

import abc
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Inexact, Int

from reticent.belief.bayes import useful_marginal
from reticent.belief.prospect import ExactProspect, Joint
from reticent.guard.chain import chain_of, present_only, slots_of
from reticent.guard.moments import Chain, Moments, all_retired, correct, first_moment, pass_time, row_values, rows_of
from reticent.guard.safety import Safety
from reticent.problem.bound import Bound
from reticent.problem.enforcement import Enforcement
from reticent.problem.monitoring import Monitoring
from reticent.problem.objective import Objective
from reticent.types import Allowed, Kernels, Scalar


class OngoingState(NamedTuple):
    """All that a policy may see. The last action is silence, which is always allowed.

    `headroom` is how far the nearest row is from its limit, `spent_bits` the sum of I(S_t; Y) over all releases so far,
    `step` the time. `kernels` say what each sensor would send in place of its readings.
    """

    moments: Moments
    allowed: Allowed
    kernels: Kernels | None
    headroom: Scalar
    spent_bits: Scalar
    step: Int[Any, ""]

    @property
    def belief(self) -> Float[Any, "S U"]:
        """b(s, u), of the pair of now."""
        return self.moments.belief

    @property
    def open_moments(self) -> Scalar:
        """How many past moments what is sent could still tell the secret of, as a share of the slots; one where no
        slot is left for the present."""
        slots = self.moments.open.shape[0]
        return self.moments.open.sum() / max(slots, 1)


class OngoingRules(abc.ABC):
    """Prior, channel, chain, bound, enforcement and prices, and what follows from them."""

    prior: Any
    channel: Any
    chain: Chain
    slots: int
    bound: Bound
    enforcement: Enforcement
    objective: Objective

    def begin(self) -> OngoingState:
        """Before the first step."""
        zero = 0.0 * self.prior.sum()
        return self.public(first_moment(self.prior, self.slots), zero, zero.astype(int))

    def public(self, moments: Moments, spent_bits: Any, step: Any) -> OngoingState:
        """The public state at some moments: kernels, and which sensors may speak."""
        value, limits = row_values(self.chain, moments)
        headroom = (limits - value).min()
        readings, kernels = Joint(moments.belief, self.channel), None
        holds = all_retired(moments)
        if self.enforcement.replaces:
            rows = rows_of(self.chain, moments, self.channel)
            kernels = self.enforcement.kernels(Safety(readings, rows))
            # Where a row has no way left to its limit, not even merging everything keeps to theta.
            holds = holds & (rows.value < rows.theta).all()
        prospect = ExactProspect(readings, spent_bits, kernels)
        sensors = self.enforcement.allowed(self.bound, prospect) & holds
        allowed = sensors.__array_namespace__().concatenate([sensors, sensors[:1] | True])
        return OngoingState(moments, allowed, kernels, headroom, spent_bits, step)

    def prospect(self, public: OngoingState) -> ExactProspect:
        """What one release of each sensor would tell of the present."""
        return ExactProspect(Joint(public.belief, self.channel), public.spent_bits, public.kernels)

    def emissions(self, public: OngoingState) -> Float[Any, "A S U Y"]:
        """Law of what leaves the device when each sensor speaks: its readings, or what is sent in their place."""
        return self.prospect(public).emissions

    def sent(self, public: OngoingState, sensor: Any, symbol: Any) -> tuple[Moments, Bool[Any, ""]]:
        """The moments after a symbol was sent, before time passes; and whether the model calls it possible."""
        return correct(public.moments, self.emissions(public)[sensor, :, :, symbol])

    def later(self, moments: Moments, spent_bits: Any, step: Any) -> OngoingState:
        """The public state one step of time later."""
        return self.public(pass_time(self.chain, moments), spent_bits, step + 1)

    def error_cost(self, belief: Inexact[Any, "*N S U"]) -> Inexact[Any, "*N"]:
        """lambda (1 - max_u b(u)): what not knowing U costs in one step."""
        return self.objective.error_penalty * (1 - useful_marginal(belief).max(-1))


def chain_and_slots(task: Monitoring) -> tuple[Chain, int]:
    """What the guard of this task goes by. Without a bound there is nothing to look ahead or back for."""
    model, secrets = task.model, len(task.model.secrets)
    if not task.bound.crossable:
        return present_only(model, np.ones(secrets)), 0
    chain = chain_of(model, np.asarray(task.bound.secret_limits(secrets), float))
    return chain, task.slots if task.slots and model.secret_moves else slots_of(model, chain)


class MonitoringRules(OngoingRules):
    """The rules of a task, in numpy."""

    def __init__(self, task: Monitoring) -> None:
        self.prior, self.channel = task.model.prior, task.model.channel
        self.chain, self.slots = chain_and_slots(task)
        self.bound, self.enforcement, self.objective = task.bound, task.enforcement, task.objective
