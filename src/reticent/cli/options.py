"""Options that several commands share: the problem, the bound, the prices."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.problem.bound import Bound
    from reticent.problem.model import Model
    from reticent.problem.monitoring import Monitoring
    from reticent.problem.task import Task

EnforceOption = Literal["penalty", "withhold", "coarsen", "answer", "mask", "lagrangian", "paper"]


@dataclass(frozen=True)
class Bounds:
    """The bound: give exactly one."""

    confidence: float | None = None
    """Limit L_B on the probability that the provider may give to any secret, such as 0.8."""
    information: float | None = None
    """Limit L_MI on the information about the secret along every path, in bits."""
    expected_information: float | None = None
    """Limit on the information about the secret that an episode gives on average, in bits."""
    unbounded: bool = False
    """No bound at all, to compare costs with."""
    prior_range: Annotated[tuple[str, ...], arg(metavar="SECRET=LOW..HIGH")] = ()
    """Keep the bound for every provider whose prior of this secret lies in the range, such as smokes=0.2..0.5."""


@dataclass(frozen=True)
class Prices:
    """The prices that make up the cost."""

    time_cost: float = 1.0
    """Price C_T of one release."""
    error_penalty: float = 50.0
    """Price lambda of a wrong guess of the useful value at the stop."""
    violation_cost: float = 50.0
    """Price C_B of crossing the bound; `inf` forbids sensors that could cross it, as --enforce mask does."""


@dataclass(frozen=True)
class OverTime:
    """Of a problem with a transition, which goes on."""

    day: int | None = None
    """For a problem with a transition: steps of a day; by default 480."""
    window: int | None = None
    """For a problem with a transition and --information: count the bits over any so many steps."""


def model_of(problem: str) -> "Model":
    """The model of a problem file, or the synthetic one."""
    from reticent.problem.model import read_problem
    from reticent.problem.synthetic import synthetic

    return synthetic() if problem == "synthetic" else read_problem(problem)


def task_of(model: "Model", bounds: Bounds, prices: Prices, enforce: EnforceOption | None = None) -> "Task":
    """The task that the options describe."""
    from reticent.problem.enforcement import default_enforcement, named_enforcement
    from reticent.problem.objective import Objective
    from reticent.problem.task import Task

    bound = bound_of(bounds)
    enforcement = named_enforcement(enforce or default_enforcement(bound).name, prices.violation_cost)
    return Task(_over_priors(model, bounds), bound, Objective(prices.time_cost, prices.error_penalty), enforcement)


def monitoring_of(
    model: "Model", bounds: Bounds, prices: Prices, enforce: EnforceOption | None, over_time: OverTime
) -> "Monitoring":
    """The task that the options describe, of a model that moves."""
    from reticent.problem.enforcement import USUAL, named_enforcement
    from reticent.problem.monitoring import Monitoring
    from reticent.problem.objective import Objective

    enforcement = USUAL if enforce is None else named_enforcement(enforce, prices.violation_cost)
    objective = Objective(prices.time_cost, prices.error_penalty)
    days = {} if over_time.day is None else {"horizon": over_time.day}
    model = _over_priors(model, bounds)
    return Monitoring(model, bound_of(bounds), objective, enforcement, window=over_time.window, **days)


def _over_priors(model: "Model", bounds: Bounds) -> "Model":
    from reticent.problem.prior_range import over_priors, parsed_ranges

    return over_priors(model, parsed_ranges(bounds.prior_range)) if bounds.prior_range else model


def bound_of(bounds: Bounds) -> "Bound":
    """The one bound that is given."""
    from reticent.problem.bound import Confidence, ExpectedInformation, Information, Unbounded

    kinds = (Confidence, Information, ExpectedInformation)
    limits = (bounds.confidence, bounds.information, bounds.expected_information)
    given: list[Bound] = [kind(limit) for kind, limit in zip(kinds, limits, strict=True) if limit is not None]
    given += [Unbounded()] if bounds.unbounded else []
    if len(given) != 1:
        raise InputError(
            "Give one bound: --confidence L, --information BITS or --expected-information BITS; or --unbounded."
        )
    [bound] = given
    return bound


def check_writable(path: Path) -> None:
    """Refuse an output file that cannot be written, before any work is done."""
    if not os.access(path.resolve().parent, os.W_OK):
        raise InputError(f"There is no folder {str(path.parent)!r} that {path.name!r} can be written into.")


def check_seed(seed: int) -> None:
    """Refuse a seed that is out of range."""
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must lie between 0 and 2^32 - 1, but is {seed}.")
