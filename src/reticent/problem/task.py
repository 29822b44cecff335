"""A task: one model, what is wanted of it, and how the bound is enforced. All that a policy file must remember."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from reticent.errors import InputError
from reticent.problem.bound import Bound, ConfidenceBound, ExpectedInformationBound, InformationBound, Unbounded
from reticent.problem.model import ReleaseModel
from reticent.problem.objective import Objective

Enforcement = Literal["penalty", "withhold", "coarsen", "answer", "mask", "multiplier", "paper"]
# How each kind of bound can be enforced; the first is the default.
OF_CONFIDENCE: tuple[Enforcement, ...] = ("penalty", "withhold", "coarsen", "answer", "paper")
OF_INFORMATION: tuple[Enforcement, ...] = ("mask", "paper")
OF_EXPECTED: tuple[Enforcement, ...] = ("multiplier",)
# Those that never cross a bound on confidence.
GUARANTEED: tuple[Enforcement, ...] = ("withhold", "coarsen")


@dataclass(frozen=True, eq=False)
class Task:
    """Model, bound, prices and enforcement.

    `enforce` defaults to "penalty" for a confidence bound (the release that enters the forbidden region pays
    the violation cost and ends the episode) and to "mask" for an information bound (a sensor that would cross
    it cannot be chosen). "withhold" and "coarsen" never cross a confidence bound: readings that would are replaced
    by merged symbols. "answer" keeps it by releasing no readings, but one guess of U at a well-chosen time. A bound
    on expected information is kept by "multiplier": what an episode has said about the secret has a price at the stop.
    "paper" is the printed cost, for reproduction. After `horizon` releases an episode is cut off.
    """

    model: ReleaseModel
    bound: Bound
    objective: Objective = field(default_factory=Objective)
    enforce: Enforcement | None = None
    horizon: int = 200

    def __post_init__(self) -> None:
        self.bound.check(self.model.largest_secret_prior)
        ways = _ways(self.bound)
        if self.enforce is None:
            object.__setattr__(self, "enforce", ways[0])
        if self.enforce not in get_args(Enforcement):
            raise InputError(f"enforce is one of {list(get_args(Enforcement))}, not {self.enforce!r}.")
        if self.enforce not in ways:
            raise InputError(f"{type(self.bound).__name__} is enforced by one of {list(ways)}, not {self.enforce!r}.")
        if self.enforce == "paper" and math.isinf(self.objective.violation_cost):
            raise InputError("The printed cost (enforce='paper') needs a finite violation cost.")
        if type(self.horizon) is not int or not 1 <= self.horizon < 2**31:
            raise InputError(f"The horizon must be a whole number of releases, at least one, but is {self.horizon!r}.")

    def to_json(self) -> dict[str, Any]:
        return {
            "problem": self.model.to_json(),
            "bound": _bound_to_json(self.bound),
            "objective": {k: v if math.isfinite(v) else "inf" for k, v in vars(self.objective).items()},
            "enforce": self.enforce,
            "horizon": self.horizon,
        }

    @classmethod
    def from_json(cls, task: dict[str, Any]) -> "Task":
        return cls(
            model=ReleaseModel.from_json(task["problem"]),
            bound=_bound_from_json(task["bound"]),
            objective=Objective(**{k: float(v) for k, v in task["objective"].items()}),
            enforce=task["enforce"],
            horizon=task["horizon"],
        )


def _ways(bound: Bound) -> tuple[Enforcement, ...]:
    """How a bound can be enforced."""
    match bound:
        case ConfidenceBound():
            return OF_CONFIDENCE
        case InformationBound():
            return OF_INFORMATION
        case ExpectedInformationBound():
            return OF_EXPECTED


def _bound_to_json(bound: Bound) -> dict[str, float]:
    match bound:
        case ConfidenceBound(limit):
            return {"confidence": limit}
        case InformationBound(bits):
            return {"information_bits": bits}
        case ExpectedInformationBound(bits):
            return {"expected_information_bits": bits}


def _bound_from_json(bound: dict[str, Any]) -> Bound:
    if "confidence" in bound:
        limit = float(bound["confidence"])
        return Unbounded(limit) if limit > 1 else ConfidenceBound(limit)
    if "information_bits" in bound:
        return InformationBound(float(bound["information_bits"]))
    return ExpectedInformationBound(float(bound["expected_information_bits"]))
