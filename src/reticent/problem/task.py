"""A task: a model, what is wanted of it, and how the bound is enforced. All that a policy file must remember."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

from reticent.errors import InputError
from reticent.problem.bound import BOUNDS, Bound
from reticent.problem.enforcement import ENFORCEMENTS, USUAL, Enforcement, default_enforcement
from reticent.problem.model import Model
from reticent.problem.objective import Objective
from reticent.problem.panel import check_panel, for_whom


class AnyTask:
    """What a task with a stop and one that goes on have in common: for whom the bound is kept, and their form in files.

    `COUNTS` are its whole numbers.
    """

    COUNTS: ClassVar[tuple[str, ...]] = ("horizon",)
    model: Model
    bound: Bound
    objective: Objective
    enforcement: Enforcement

    @property
    def panel(self) -> tuple[Model, ...]:
        """The further providers for whom the bound is kept; none where there is no bound to keep."""
        return self.model.panel if self.bound.crossable else ()

    @property
    def promised(self) -> str:
        """In which sense the bound is kept, and for whom."""
        return f"{self.enforcement.promised}; {for_whom(self.panel)}"

    def to_json(self) -> dict[str, Any]:
        """The form of policy files; an `InputError` for a bound or an enforcement that they cannot hold."""
        return {
            "problem": self.model.to_json(),
            "bound": record_to_json(self.bound, BOUNDS),
            "objective": dataclasses.asdict(self.objective),
            "enforcement": record_to_json(self.enforcement, ENFORCEMENTS),
            **{name: getattr(self, name) for name in self.COUNTS},
        }

    @classmethod
    def fields(cls, task: dict[str, Any]) -> dict[str, Any]:
        """The fields of the task that a policy file holds."""
        return {
            "model": Model.from_json(task["problem"]),
            "bound": record_from_json("bound", task["bound"], BOUNDS),
            "objective": Objective(**{name: float(price) for name, price in task["objective"].items()}),
            "enforcement": record_from_json("enforcement", task["enforcement"], ENFORCEMENTS),
            **{name: task[name] for name in cls.COUNTS},
        }


@dataclass(frozen=True, eq=False)
class Task(AnyTask):
    """A problem to solve: model, bound, prices and enforcement.

    Args:
        model: Who could be there, and what each sensor says.
        bound: What the provider may come to know at most.
        objective: The prices.
        enforcement: How the bound is kept; by default `Penalty()` for a confidence bound, `Mask()` for one on
            information and `Lagrangian()` for one on expected information.
        horizon: After so many releases an episode is cut off.

    Example:
        >>> task = rt.Task(rt.synthetic(), rt.Confidence(0.8), enforcement=rt.Coarsen())
        >>> task.enforcement.promise.value
        'never crossed'
    """

    model: Model
    bound: Bound
    objective: Objective = field(default_factory=Objective)
    enforcement: Enforcement = USUAL
    horizon: int = 200

    def __post_init__(self) -> None:
        if self.model.moves:
            raise InputError(
                "The model has a transition, so its hidden pair moves, but in a Task it stands still until the stop. "
                "Use Monitoring for a problem that goes on, or leave the transition out."
            )
        self.bound.check(self.model.prior)
        if self.enforcement is USUAL:
            object.__setattr__(self, "enforcement", default_enforcement(self.bound))
        if not isinstance(self.enforcement, Enforcement):
            raise InputError(
                f"enforcement is an Enforcement such as Coarsen() or Penalty(50), not {self.enforcement!r}."
            )
        self.enforcement.check(self.bound)
        check_panel(self.model, self.bound, self.enforcement)
        if type(self.horizon) is not int or not 1 <= self.horizon < 2**31:
            raise InputError(f"The horizon must be a whole number of releases, at least one, but is {self.horizon!r}.")

    @classmethod
    def from_json(cls, task: dict[str, Any]) -> "Task":
        """The task that a policy file holds."""
        return cls(**cls.fields(task))


def record_to_json(record: Any, known: dict[str, Any]) -> dict[str, dict[str, float]]:
    """{name: numbers}. How merged symbols are priced belongs to the policy, not to the task."""
    if type(record) not in known.values():
        raise InputError(
            f"A file can hold {', '.join(kind.__name__ for kind in known.values())}, but not {type(record).__name__}."
        )
    return {record.name: {each.name: float(getattr(record, each.name)) for each in _numbers(type(record))}}


def record_from_json(what: str, record: Any, known: dict[str, Any]) -> Any:
    """The record of one of the known kinds, from {name: numbers}."""
    if not isinstance(record, dict) or len(record) != 1 or not record.keys() <= known.keys():
        raise InputError(f"A task has one {what}, of {' or '.join(known)}, but this has {record!r}.")
    [(name, numbers)] = record.items()
    return known[name](**{each: float(number) for each, number in numbers.items()})


def _numbers(kind: Any) -> list[dataclasses.Field]:
    return [each for each in dataclasses.fields(kind) if each.type is float]
