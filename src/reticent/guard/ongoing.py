"""The public rules of a problem that goes on: everything that follows from what was sent, silence included.

As `reticent.guard.rules`, for a hidden pair that moves and a device that never stops. One source over arrays of numpy
and of JAX.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Inexact, Int

from reticent.belief.bayes import useful_marginal
from reticent.belief.prospect import ExactProspect, Joint, Known
from reticent.errors import InputError
from reticent.guard.chain import chain_of, present_only, slots_of
from reticent.guard.moments import Chain, Moments, all_retired, correct, first_moment, pass_time, rows_of
from reticent.guard.ongoing_panel import OngoingPanel, begin, hear, in_turn, move, panel_rows, panel_slots
from reticent.guard.panel import chances_of
from reticent.guard.rows import Rows, joined
from reticent.guard.safety import Safety
from reticent.problem.bound import Bound
from reticent.problem.enforcement import Enforcement
from reticent.problem.monitoring import Monitoring
from reticent.problem.objective import Objective
from reticent.types import Allowed, Kernels, Scalar


class OngoingState(NamedTuple):
    """All that a policy may see. The last action is silence, which is always allowed.

    `headroom` is how far the nearest row is from its limit, or the share of the bits that is left; `recent` [W] are the
    bits I(S_t; Y_t) of the steps before this one that share a window with it; `step` is the time. `kernels` say what
    each sensor would send in place of its readings.
    """

    moments: Moments
    allowed: Allowed
    kernels: Kernels | None
    headroom: Scalar
    recent: Float[Any, " W"]
    step: Int[Any, ""]

    @property
    def belief(self) -> Float[Any, "S U"]:
        """b(s, u), of the pair of now."""
        return self.moments.belief

    @property
    def spent_bits(self) -> Scalar:
        """The information spent in the window that ends with this step."""
        return self.recent.sum()

    @property
    def open_moments(self) -> Scalar:
        """How many past moments what is sent could still tell the secret of, as a share of the slots; one where no
        slot is left for the present."""
        slots = self.moments.open.shape[0]
        return self.moments.open.sum() / max(slots, 1)


class OngoingRules(abc.ABC):
    """Prior, channel, chain, bound, enforcement and prices, and what follows from them.

    `panel` has those of further providers for whom the bound is kept, where there are any, and `each` makes of a
    function of one of them that of all.
    """

    prior: Any
    channel: Any
    chain: Chain
    panel: OngoingPanel | None
    slots: int
    window: int
    bound: Bound
    enforcement: Enforcement
    objective: Objective

    @abc.abstractmethod
    def each(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of one provider of the panel, for all of them: along the first axis of arrays."""

    def begin(self) -> OngoingState:
        """Before the first step."""
        xp = self.prior.__array_namespace__()
        moments = first_moment(self.prior, self.slots)
        if self.panel is not None:
            moments = moments._replace(panel=begin(self.each, self.panel, self.slots))
        return self.public(moments, xp.zeros(max(self.window - 1, 0)), xp.asarray(0))

    def public(self, moments: Moments, recent: Float[Any, " W"], step: Any) -> OngoingState:
        """The public state at some moments: kernels, and which sensors may speak."""
        readings, spent, kernels = Joint(moments.belief, self.channel), recent.sum(), None
        if self.enforcement.replaces:
            rows = self.rows(moments)
            kernels = self.enforcement.kernels(Safety(readings, rows))
            headroom = (rows.limits - rows.value).min()
            # Where a row has no way left to its limit, not even merging everything keeps to theta.
            holds = self._retired(moments) & (rows.value < rows.theta).all()
        else:
            headroom, holds = 1 - self.bound.used(Known(self.prior, moments.belief, spent)), step >= 0
        sensors = self.enforcement.allowed(self.bound, ExactProspect(readings, spent, kernels)) & holds
        allowed = sensors.__array_namespace__().concatenate([sensors, sensors[:1] | True])
        return OngoingState(moments, allowed, kernels, headroom, recent, step)

    def rows(self, moments: Moments) -> Rows:
        """What must stay below the bound, for every provider."""
        if (self.panel is None) != (moments.panel is None):
            raise InputError(
                "The bound of this task is kept for a panel of providers, whose beliefs are not followed here. Leave "
                "the panel out: a model without one is `model.with_panel([])`."
            )
        own = rows_of(self.chain, moments, self.channel)
        return own if self.panel is None else joined(own, panel_rows(self.each, self.panel, moments.panel))

    def _retired(self, moments: Moments) -> Bool[Any, ""]:
        """Whether no missed moment is left for any provider."""
        retired = all_retired(moments)
        return retired if moments.panel is None else retired & self.each(all_retired)(moments.panel).all()

    def prospect(self, public: OngoingState) -> ExactProspect:
        """What one release of each sensor would tell of the present."""
        return ExactProspect(Joint(public.belief, self.channel), public.spent_bits, public.kernels)

    def emissions(self, public: OngoingState) -> Float[Any, "A S U Y"]:
        """Law of what leaves the device when each sensor speaks: its readings, or what is sent in their place."""
        return self.prospect(public).emissions

    def sent(self, public: OngoingState, sensor: Any, symbol: Any) -> tuple[Moments, Bool[Any, ""]]:
        """The moments after a symbol was sent, before time passes; and whether the model calls it possible."""
        moments, possible = correct(public.moments, self.emissions(public)[sensor, :, :, symbol])
        if self.panel is None:
            return moments, possible
        chances = chances_of(self.channel, public.kernels, sensor, symbol)
        others, possible_for_all = hear(self.each, self.panel, moments.panel, sensor, chances)
        return moments._replace(panel=others), possible & possible_for_all

    def later(self, public: OngoingState, moments: Moments, bits: Any) -> OngoingState:
        """The public state one step of time later, given the moments after what was sent and the bits of that."""
        recent = public.recent
        if len(recent):
            xp = recent.__array_namespace__()
            recent = xp.concatenate([recent[1:], xp.asarray(bits, float)[None]])
        moved = pass_time(self.chain, moments)
        if self.panel is not None:
            moved = moved._replace(panel=move(self.each, self.panel, moments.panel))
        return self.public(moved, recent, public.step + 1)

    def error_cost(self, belief: Inexact[Any, "*N S U"]) -> Inexact[Any, "*N"]:
        """lambda (1 - max_u b(u)): what not knowing U costs in one step."""
        return self.objective.error_penalty * (1 - useful_marginal(belief).max(-1))


def chain_and_slots(task: Monitoring) -> tuple[Chain, int]:
    """What the guard of this task goes by. Where nothing is replaced there is nothing to look ahead or back for."""
    model, secrets = task.model, len(task.model.secrets)
    if not task.enforcement.replaces:
        return present_only(model, np.ones(secrets)), 0
    limits = np.asarray(task.bound.secret_limits(secrets), float)
    chain = chain_of(model, limits)
    if task.slots and model.secret_moves:
        return chain, task.slots
    return chain, max(slots_of(model, chain), panel_slots(task.panel, limits))


def panel_of(task: Monitoring) -> OngoingPanel | None:
    """The further providers for whom the guard of this task keeps the bound."""
    if not task.panel:
        return None
    return OngoingPanel.of(task.panel, np.asarray(task.bound.secret_limits(len(task.model.secrets)), float))


class MonitoringRules(OngoingRules):
    """The rules of a task, in numpy."""

    def __init__(self, task: Monitoring) -> None:
        self.prior, self.channel = task.model.prior, task.model.channel
        self.chain, self.slots = chain_and_slots(task)
        self.panel = panel_of(task)
        self.bound, self.enforcement, self.objective = task.bound, task.enforcement, task.objective
        self.window = task.window or 0

    def each(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return in_turn(function)
