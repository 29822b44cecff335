"""Enforcements: how a bound is kept, and what is promised.

An enforcement is a frozen dataclass whose numbers become array leaves in compiled code. It owns which sensors may
speak, what is sent in place of readings, what a release and a stop cost, and whether crossing the bound ends the
episode. Write your own by deriving from `Enforcement`.
"""

import abc
import dataclasses
import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from reticent.errors import InputError
from reticent.problem.bound import Bound, ExpectedInformation, Knowledge, Prospect, Unbounded
from reticent.problem.merging import LEAST_MOVE, NEAREST, RAW_BONUS, label_symbols
from reticent.problem.objective import Objective

KernelChoice = Literal["label", "value"]


class Promise(enum.Enum):
    """How far a bound is kept.

    Args:
        value: "never crossed", "kept on average" or "not guaranteed".

    Example:
        >>> rt.Withhold.promise is rt.Promise.NEVER
        True
    """

    NEVER = "never crossed"
    IN_EXPECTATION = "kept on average"
    NONE = "not guaranteed"


class Enforcement(abc.ABC):
    """How a bound is kept.

    `name` is that of files and the command line. `promise` says how far the bound is kept, `promised` in which sense:
    reports print it. `ends_on_crossing`: the release that crosses the bound ends the episode. `replaces`: something
    else may be sent in place of a reading. `priced`: a learned price of each bit about the secret is part of the cost.
    Write your own by deriving from it, or from one of those below: the page docs/own-parts.md does.

    Example:
        >>> rt.Penalty().promised
        'the bound may be crossed, at a cost; the violation rate is always shown'
    """

    name: ClassVar[str]
    promise: ClassVar[Promise]
    promised: ClassVar[str]
    ends_on_crossing: ClassVar[bool] = False
    replaces: ClassVar[bool] = False
    priced: ClassVar[bool] = False
    # Whether the bound can be kept for a panel of providers.
    for_panels: ClassVar[bool] = False
    # Whether readings, or what stands for them, are released one by one; else one answer is.
    releases: ClassVar[bool] = True

    def check(self, bound: Bound) -> None:
        """Refuse a bound that is not kept in this way."""
        if not bound.pathwise:
            raise InputError(
                f"A bound on {bound.name} is kept on average: enforce it by 'lagrangian', not {self.name!r}."
            )

    def allowed(self, bound: Bound, prospect: Prospect) -> Any:
        """Which sensors may speak next, [A]; by default all."""
        del bound
        return prospect.everywhere

    def allowed_by_panel(self, bound: Bound, panel: Prospect) -> Any:
        """Which sensors may speak next, [A], for what the providers of a panel may learn; asked if `for_panels`.

        The prospect is of all of them: `belief` [P S U], `secret` [S P A Z] and `law` [P A Z] of the readings.
        """
        del bound
        return panel.everywhere

    def kernels(self, safety: Any) -> Any:
        """What each sensor sends in place of its readings, [A O Z]; None where it sends them as they are."""
        del safety

    def with_rule(self, rule: "KernelRule") -> "Enforcement":
        """The same enforcement with another rule for what is merged; an `InputError` where nothing is."""
        raise InputError(f"Under the enforcement {self.name!r} nothing is merged, so no {rule.name} kernels apply.")

    @property
    def kernel_choice(self) -> KernelChoice:
        """Which kernels are used where something is merged; label kernels, which need nothing learned, elsewhere."""
        return "label"

    @property
    def kernel_rule(self) -> "KernelRule | None":
        """Which of the safe kernels are used; None where nothing is merged."""
        return None

    def merged_symbols(self, useful: Sequence[str]) -> tuple[str, ...]:
        """Names of the merged symbols, given those of the useful values."""
        del useful
        return ()

    def can_end(self, bound: Bound) -> bool:
        """Whether a release can end the episode by crossing this bound."""
        return self.ends_on_crossing and bound.crossable

    def release_cost(self, objective: Objective, bound: Bound, before: Any, after: Any) -> Any:
        """What a release costs, given whether the bound is reached before and after it."""
        del bound, before, after
        return objective.time_cost

    def leakage_cost(self, known: Knowledge) -> Any:
        """What the information about the secret costs at the stop."""
        return self.price * known.said_bits

    @property
    def price(self) -> Any:
        """What a bit about the secret costs at the stop."""
        return 0.0

    def relaxation(self, bound: Bound) -> tuple[Bound, "Enforcement", str] | None:
        """An easier problem whose optimal cost can be bounded from below: bound, enforcement, and what it is.

        None where that cannot be done with this problem or an easier one.
        """
        del bound
        return None


# What the dual bound is computed for where it is this problem itself.
ITSELF = "this problem"


@dataclass(frozen=True)
class Penalty(Enforcement):
    """The release that crosses the bound costs C_T + `cost` and ends the episode.

    Args:
        cost: The price of crossing; the paper's C_B.

    Example:
        >>> rt.Task(rt.synthetic(), rt.Confidence(0.8)).enforcement
        Penalty(cost=50.0)
    """

    name: ClassVar[str] = "penalty"
    promise: ClassVar[Promise] = Promise.NONE
    promised: ClassVar[str] = "the bound may be crossed, at a cost; the violation rate is always shown"
    ends_on_crossing: ClassVar[bool] = True
    cost: float = 50.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cost) and self.cost >= 0):
            raise InputError(
                f"The violation cost must be a number, zero or more, but is {self.cost}. "
                "What must never happen is enforced by 'mask'."
            )

    def check(self, bound: Bound) -> None:
        super().check(bound)
        if bound.on_spending:
            raise InputError(f"A bound on {bound.name} is enforced by 'mask' or 'paper', not {self.name!r}.")

    def release_cost(self, objective: Objective, bound: Bound, before: Any, after: Any) -> Any:
        del bound, before
        return objective.time_cost + self.cost * after

    def relaxation(self, bound: Bound) -> tuple[Bound, Enforcement, str]:
        return bound, self, ITSELF


@dataclass(frozen=True)
class PaperCost(Enforcement):
    """The cost that the paper prints, for reproduction: nothing but the stop ends an episode.

    Confidence: a release FROM the forbidden region costs C_B, in place of C_T. Information: a release that reaches the
    limit costs C_MI on top of C_T.

    Args:
        cost: The price of crossing; the paper's C_B or C_MI.

    Example:
        >>> rt.PaperCost().ends_on_crossing
        False
    """

    name: ClassVar[str] = "paper"
    promise: ClassVar[Promise] = Promise.NONE
    promised: ClassVar[str] = "the bound may be crossed: crossing it and stopping is not charged"
    cost: float = 50.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cost) and self.cost >= 0):
            raise InputError(f"The printed cost (enforcement 'paper') needs a finite violation cost, not {self.cost}.")

    def release_cost(self, objective: Objective, bound: Bound, before: Any, after: Any) -> Any:
        return bound.paper_cost(objective.time_cost, self.cost, before, after)


@dataclass(frozen=True)
class Mask(Enforcement):
    """A sensor whose next release could cross the bound cannot be chosen.

    Example:
        >>> rt.Mask().promise.value
        'never crossed'
    """

    name: ClassVar[str] = "mask"
    promise: ClassVar[Promise] = Promise.NEVER
    promised: ClassVar[str] = "never crossed: a sensor whose next release could cross the bound is not allowed"
    for_panels: ClassVar[bool] = True

    def allowed(self, bound: Bound, prospect: Prospect) -> Any:
        return ~bound.may_cross(prospect)

    def allowed_by_panel(self, bound: Bound, panel: Prospect) -> Any:
        return ~bound.may_cross(panel).any(0)

    def relaxation(self, bound: Bound) -> tuple[Bound, Enforcement, str]:
        if bound.on_spending:
            # Every path below the limit keeps the mean below it.
            return ExpectedInformation(float(bound.number)), Lagrangian(), "the problem with the limit on average only"
        return Unbounded(), Penalty(), "the problem without any bound"


@dataclass(frozen=True)
class Lagrangian(Enforcement):
    """The stop costs `multiplier`, which is learned, for each bit said about the secret: mu (H_0 - H(beta_S)).

    Args:
        multiplier: The price of a bit at first.

    Example:
        >>> rt.Task(rt.synthetic(), rt.Confidence(0.8), enforcement=rt.Lagrangian())
        Traceback (most recent call last):
        reticent.errors.InputError: A Lagrangian keeps a bound on average, which one on confidence is not.
    """

    name: ClassVar[str] = "lagrangian"
    promise: ClassVar[Promise] = Promise.IN_EXPECTATION
    promised: ClassVar[str] = "kept on average over episodes, as well as the learned price keeps it"
    priced: ClassVar[bool] = True
    multiplier: float = 0.0

    def check(self, bound: Bound) -> None:
        if bound.pathwise:
            raise InputError(f"A Lagrangian keeps a bound on average, which one on {bound.name} is not.")

    @property
    def price(self) -> Any:
        return self.multiplier

    def relaxation(self, bound: Bound) -> tuple[Bound, Enforcement, str]:
        return bound, self, ITSELF


class KernelRule(abc.ABC):
    """Which of the safe kernels to use."""

    name: ClassVar[str]

    @property
    def choice(self) -> KernelChoice:
        """What policy files call it; label for a rule that needs nothing learned."""
        return "label"

    @abc.abstractmethod
    def kernels(self, guard: "Guard", safety: Any) -> Any:
        """A safe kernel for each sensor, [A O Z]."""

    @abc.abstractmethod
    def merged_symbols(self, declares: bool, useful: Sequence[str]) -> tuple[str, ...]:
        """Names of the merged symbols."""


@dataclass(frozen=True)
class LabelKernels(KernelRule):
    """A rule that needs nothing learned: its program depends on the belief only."""

    name: ClassVar[str] = "label"

    def kernels(self, guard: "Guard", safety: Any) -> Any:
        return safety.cheapest(guard.label_costs(safety))

    def merged_symbols(self, declares: bool, useful: Sequence[str]) -> tuple[str, ...]:
        return tuple(label_symbols(declares, useful))


@dataclass(frozen=True)
class Guard(Enforcement):
    """Readings that would lift a posterior to its limit are replaced by merged symbols, by a public rule.

    `declares`: each merged symbol stands for the useful value of the same index.
    """

    promise: ClassVar[Promise] = Promise.NEVER
    replaces: ClassVar[bool] = True
    for_panels: ClassVar[bool] = True
    declares: ClassVar[bool]
    rule: KernelRule = LabelKernels()

    @abc.abstractmethod
    def label_costs(self, safety: Any) -> Any:
        """What `safety.cheapest` minimises for label kernels, [O A Z]."""

    def check(self, bound: Bound) -> None:
        super().check(bound)
        bound.secret_limits(1)

    def kernels(self, safety: Any) -> Any:
        return self.rule.kernels(self, safety)

    @property
    def kernel_choice(self) -> KernelChoice:
        return self.rule.choice

    @property
    def kernel_rule(self) -> KernelRule:
        return self.rule

    def with_rule(self, rule: KernelRule) -> "Guard":
        return dataclasses.replace(self, rule=rule)

    def merged_symbols(self, useful: Sequence[str]) -> tuple[str, ...]:
        return self.rule.merged_symbols(self.declares, useful)

    def allowed(self, bound: Bound, prospect: Prospect) -> Any:
        """Sensors that move the belief, and none where rounding could bridge the rest of the way to the bound."""
        return (prospect.movement > LEAST_MOVE) & ~_near(bound, prospect)

    def allowed_by_panel(self, bound: Bound, panel: Prospect) -> Any:
        return panel.everywhere & ~_near(bound, panel).any()

    def relaxation(self, bound: Bound) -> tuple[Bound, Enforcement, str]:
        # The provider learns no more from what is sent than from the readings themselves.
        del bound
        return Unbounded(), Penalty(), "the problem without any bound"


def _near(bound: Bound, prospect: Prospect) -> Any:
    """Whether some posterior of a secret is so near to its limit that rounding could bridge the rest."""
    secret = prospect.belief.sum(-1)
    limits = bound.secret_limits(secret.shape[-1]).reshape(*[1] * (secret.ndim - 1), -1)
    return (limits - secret < NEAREST).any(-1)[..., None]


@dataclass(frozen=True)
class Withhold(Guard):
    """Readings that would cross the bound are withheld, by a public rule that withholds as little as possible.

    Args:
        rule: Which of the safe rules; by default one that needs nothing learned.

    Example:
        >>> rt.Withhold().merged_symbols(["sit", "walk"])
        ('withheld',)
    """

    name: ClassVar[str] = "withhold"
    promised: ClassVar[str] = "never crossed: readings that would cross it are withheld, by a public rule"
    declares: ClassVar[bool] = False

    def label_costs(self, safety: Any) -> Any:
        law = safety.readings.law
        return safety.xp.asarray([0 * law, law])


@dataclass(frozen=True)
class Coarsen(Guard):
    """Readings that would cross the bound are merged with others: one merged symbol per useful value.

    The provider's best guess of U is right as often as possible: the rule minimises the probability of z and a wrong
    guess, the best one after z itself or the one that the merged symbol declares.

    Args:
        rule: Which of the safe rules; by default one that needs nothing learned.

    Example:
        >>> rt.Coarsen().merged_symbols(["sit", "walk"])
        ('merged: sit', 'merged: walk')
    """

    name: ClassVar[str] = "coarsen"
    promised: ClassVar[str] = "never crossed: readings that would cross it are merged with others, by a public rule"
    declares: ClassVar[bool] = True

    def label_costs(self, safety: Any) -> Any:
        law, useful = safety.readings.law, safety.readings.useful
        raw = (1 - RAW_BONUS) * law - useful.max(0)
        return safety.xp.concatenate([raw[None], law[None] - useful])


@dataclass(frozen=True)
class AnswerOnly(Enforcement):
    """No readings are released, but one guess of U at a well-chosen time.

    Example:
        >>> task = rt.Task(rt.synthetic(), rt.Confidence(0.8), enforcement=rt.AnswerOnly())
        >>> task.enforcement.releases
        False
    """

    name: ClassVar[str] = "answer"
    promise: ClassVar[Promise] = Promise.NEVER
    promised: ClassVar[str] = (
        "never crossed, but for one chance in a thousand that the sample confirming the rule was misleading"
    )
    releases: ClassVar[bool] = False

    def check(self, bound: Bound) -> None:
        super().check(bound)
        bound.secret_limits(1)

    def relaxation(self, bound: Bound) -> tuple[Bound, Enforcement, str]:
        del bound
        return Unbounded(), Penalty(), "the problem without any bound"


@dataclass(frozen=True)
class Usual(Enforcement):
    """Stands for the enforcement that is usual for a bound; a `Task` puts that in its place."""

    name: ClassVar[str] = "usual"
    promise: ClassVar[Promise] = Promise.NONE
    promised: ClassVar[str] = "nothing yet"


USUAL = Usual()
ENFORCEMENTS: dict[str, type[Enforcement]] = {
    kind.name: kind for kind in (Penalty, Withhold, Coarsen, AnswerOnly, Mask, Lagrangian, PaperCost)
}


def default_enforcement(bound: Bound) -> Enforcement:
    """How a bound is kept where nothing is said."""
    if not bound.pathwise:
        return Lagrangian()
    return Mask() if bound.on_spending else Penalty()


def named_enforcement(name: str, violation_cost: float = 50.0) -> Enforcement:
    """The enforcement of this name; `violation_cost` where it charges one. An infinite one forbids: a mask."""
    if name not in ENFORCEMENTS:
        raise InputError(f"enforce is one of {list(ENFORCEMENTS)}, not {name!r}.")
    if name == Penalty.name and math.isinf(violation_cost):
        return Mask()
    kind = ENFORCEMENTS[name]
    return kind(violation_cost) if kind in (Penalty, PaperCost) else kind()


def keeping(bound: Bound) -> tuple[str, ...]:
    """Names of the enforcements that keep such a bound, the usual one first."""
    names = [default_enforcement(bound).name, *ENFORCEMENTS]
    return tuple(dict.fromkeys(name for name in names if _keeps(ENFORCEMENTS[name](), bound)))


def _keeps(enforcement: Enforcement, bound: Bound) -> bool:
    try:
        enforcement.check(bound)
    except InputError:
        return False
    return True
