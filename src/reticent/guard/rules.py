"""The public rules: everything that follows from what was sent, for whoever knows the model, the bound and the prices.

At a belief they say which sensors may speak, what is sent in place of their readings, what a release may lead to and
what it costs. Nothing is drawn here, and nothing hidden is known. The compiled process and the gateway are both such
rules: the one over arrays of JAX, the other of numpy.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Inexact

from reticent.belief.bayes import useful_marginal
from reticent.belief.prospect import ExactProspect, Joint, Known
from reticent.guard.panel import Panel, PanelProspect, told
from reticent.guard.safety import Safety
from reticent.problem.bound import Bound, Prospect
from reticent.problem.enforcement import Enforcement
from reticent.problem.objective import Objective
from reticent.problem.task import Task
from reticent.types import Array


class PublicState(NamedTuple):
    """All that a policy may see. The hidden pair is not in it, so no policy can leak what it was not told.

    `kernels`, where readings may be replaced, say what each sensor would send in place of its readings: a public rule.
    `bits`, where the bound is on them, are what each sensor's next release would add to the information spent. `panel`
    are the beliefs of the further providers for whom the bound is kept, where there are any. Of one subject or, where
    there is no panel, of N at once.
    """

    belief: Float[Any, "*N S U"]
    spent_bits: Any
    allowed: Bool[Any, "*N A_plus_stop"]
    kernels: Float[Any, "*N A O Z"] | None
    bits: Float[Any, "*N A"] | None
    panel: Float[Any, "P S U"] | None = None


class Outlook(NamedTuple):
    """One release of each sensor, for every symbol it may send: how likely, what it costs, where it leads."""

    law: Float[Any, "*N A Y"]
    belief: Float[Any, "*N A Y S U"]
    spent_bits: Float[Any, "*N A"]
    cost: Float[Any, "*N A Y"]
    ended: Bool[Any, "*N A Y"]


def kernels_at(
    readings: Joint, bound: Bound, enforcement: Enforcement, panel: PanelProspect | None
) -> Float[Any, "*N A O Z"] | None:
    """What is sent in place of these readings; None where nothing is."""
    if not enforcement.replaces:
        return None
    return enforcement.kernels(Safety.of(readings, bound.secret_limits(readings.belief.shape[-2]), panel))


def public_state(
    bound: Bound,
    enforcement: Enforcement,
    prospect: Prospect,
    kernels: Float[Any, "*N A O Z"] | None,
    panel: PanelProspect | None,
) -> PublicState:
    """The public state with the sensors that may speak next. Stop is always allowed."""
    sensors = enforcement.allowed(bound, prospect)
    if panel is not None:
        sensors = sensors & enforcement.allowed_by_panel(bound, panel)
    allowed = sensors.__array_namespace__().concatenate([sensors, sensors[..., :1] | True], axis=-1)
    bits = prospect.bits if bound.on_spending else None
    beliefs = None if panel is None else panel.belief
    return PublicState(prospect.belief, prospect.spent_bits, allowed, kernels, bits, beliefs)


class Rules(abc.ABC):
    """Prior p(s, u), channel q(z | a, s, u), bound, enforcement and prices, and what follows from them.

    `panel` has those of further providers for whom the bound is kept, where there are any.
    """

    prior: Any
    channel: Any
    panel: Panel | None
    bound: Bound
    enforcement: Enforcement
    objective: Objective

    @abc.abstractmethod
    def at_each(self, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """The function of one belief and the bits spent there, for many: [*N S U] and [*N]."""

    @property
    def ends_on_crossing(self) -> bool:
        """Whether a release can end the episode by crossing the bound."""
        return self.enforcement.can_end(self.bound)

    def known(self, belief: Inexact[Any, "*N S U"], spent_bits: Any) -> Known:
        """What bounds and enforcements are judged by."""
        return Known(self.prior, belief, spent_bits)

    def crossed(self, belief: Inexact[Any, "*N S U"], spent_bits: Any) -> Any:
        """Whether the bound is reached."""
        return self.bound.crossed(self.known(belief, spent_bits))

    def used(self, belief: Inexact[Any, "*N S U"], spent_bits: Any) -> Any:
        """Share of the bound that is used up."""
        return self.bound.used(self.known(belief, spent_bits))

    def stop_cost(self, belief: Inexact[Any, "*N S U"]) -> Inexact[Any, "*N"]:
        """lambda (1 - max_u beta(u)), and what the enforcement charges for what was said."""
        plain = self.objective.error_penalty * (1 - useful_marginal(belief).max(-1))
        return plain + self.leakage_cost(belief) if self.enforcement.priced else plain

    def leakage_cost(self, belief: Inexact[Any, "*N S U"]) -> Inexact[Any, "*N"]:
        """What the enforcement charges at the stop for what was said about the secret."""
        return self.enforcement.leakage_cost(self.known(belief, 0.0))

    def public(
        self, belief: Inexact[Any, "*N S U"], spent_bits: Any, others: Float[Any, "P S U"] | None = None
    ) -> PublicState:
        """The public state at a belief and, where there is a panel, those of its providers, by the finite model. Or,
        without a panel, those at many beliefs."""
        readings, panel = Joint(belief, self.channel), told(self.panel, others)
        kernels = kernels_at(readings, self.bound, self.enforcement, panel)
        prospect = self.look(readings, self.prior.__array_namespace__().asarray(spent_bits), kernels)
        return public_state(self.bound, self.enforcement, prospect, kernels, panel)

    def crossed_by_any(self, belief: Float[Any, "S U"], spent_bits: Any, others: Float[Any, "P S U"] | None) -> Any:
        """Whether the bound is reached for some provider."""
        reached = self.crossed(belief, spent_bits)
        return reached if others is None else reached | self.at_each(self.crossed)(others, spent_bits).any()

    def most_used(self, public: PublicState) -> Any:
        """Share of the bound that is used up, for the provider for whom it is most."""
        used = self.used(public.belief, public.spent_bits)
        if public.panel is None:
            return used
        xp = public.panel.__array_namespace__()
        return xp.maximum(used, self.at_each(self.used)(public.panel, public.spent_bits).max())

    def look(self, readings: Joint, spent_bits: Any, kernels: Float[Any, "*N A O Z"] | None) -> ExactProspect:
        """What one release of each sensor would tell, by the finite model."""
        return ExactProspect(readings, spent_bits, kernels)

    def prospect(self, public: PublicState) -> ExactProspect:
        """The same of a public state."""
        return self.look(Joint(public.belief, self.channel), public.spent_bits, public.kernels)

    def emissions(self, public: PublicState) -> Float[Array, "*N A S U Y"]:
        """Law of what leaves the device when each sensor speaks: its readings, or what is sent in their place."""
        return self.prospect(public).emissions

    def outlook(self, public: PublicState) -> Outlook:
        """Everything that one release of each sensor can lead to."""
        prospect = self.prospect(public)
        beliefs, law = prospect.posteriors, prospect.law
        xp = law.__array_namespace__()
        spent = public.spent_bits[..., None] + (prospect.bits if public.bits is None else public.bits)
        before = xp.asarray(self.crossed(public.belief, public.spent_bits))[..., None, None]
        violated = xp.broadcast_to(self.at_each(self.crossed)(beliefs, spent[..., None]), law.shape)
        cost = xp.broadcast_to(self.release_cost(before, violated), law.shape)
        return Outlook(law, beliefs, spent, cost, violated & self.ends_on_crossing)

    def release_cost(self, before: Any, after: Any) -> Any:
        """What a release costs, given whether the bound is reached before and after it."""
        return self.enforcement.release_cost(self.objective, self.bound, before, after)


class TaskRules(Rules):
    """The rules of a task, in numpy. Remembers its last look: one decision asks for it several times."""

    def __init__(self, task: Task) -> None:
        self.prior, self.channel, self.panel = task.model.prior, task.model.channel, Panel.of(task.panel)
        self.bound, self.enforcement, self.objective = task.bound, task.enforcement, task.objective
        self._last = super().look(Joint(self.prior, self.channel), 0.0, None)
        self._last_kernels: Any = None

    def at_each(self, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        # Functions of numpy arrays take any number of leading axes.
        return function

    def look(self, readings: Joint, spent_bits: Any, kernels: Float[Any, "*N A O Z"] | None) -> ExactProspect:
        last = self._last
        if readings.belief is last.belief and spent_bits is last.spent_bits and kernels is self._last_kernels:
            return last
        self._last, self._last_kernels = super().look(readings, spent_bits, kernels), kernels
        return self._last
