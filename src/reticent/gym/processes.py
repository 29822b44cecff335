"""The process that the options of an environment describe."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp

from reticent.belief.filter import Filter
from reticent.data.episodes import episodes_of
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.fit.recorded import fitted_readings
from reticent.problem.bound import Bound, Confidence, Information, Unbounded
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import USUAL, Enforcement, named_enforcement
from reticent.problem.model import Model, read_problem
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.source import FromCodes

PRICES = Objective()
# Readings of one person in a row, as in the paper.
RECORDED_HORIZON = 10


def synthetic_process(**options: Any) -> Process:
    """The paper's synthetic problem with the options of `task_of`."""
    return Process.of(task_of(synthetic(), **options))


def problem_process(problem: str | Path | Model | Task | Process, **options: Any) -> Process:
    """A problem file or a model with the options of `task_of`; or a task or a process, which need none."""
    if not isinstance(problem, Task | Process):
        return Process.of(task_of(_model(problem), **options))
    if options:
        raise InputError(f"A {type(problem).__name__} has its own bound and prices: leave out {sorted(options)}.")
    return Process.of(problem) if isinstance(problem, Task) else problem


def recordings_process(
    data: str | Path | Readings,
    problem: str | Path | Model | None = None,
    provider: Filter | None = None,
    map: str | Path | None = None,
    **options: Any,
) -> Process:
    """What people's sensors said, to a belief by a model that was fitted to them, or by a learned provider.

    With a model, people whom it was not fitted to are left out: they are for the audit. With a provider, `data` are
    readings as it has learned to read them.
    """
    if (problem is None) == (provider is None):
        raise InputError("Give either problem, a model fitted to recordings, or provider, a learned belief.")
    if provider is not None:
        if not isinstance(data, Readings):
            raise InputError("With a provider, data must be readings that are scaled as those that it learned from.")
        return _learned(provider, data, **options)
    assert problem is not None
    model = _model(problem)
    own = _fitted_to(model, data if isinstance(data, Readings) else fitted_readings(model, Path(data), map))
    task = task_of(model, **{"horizon": RECORDED_HORIZON, **options})
    codes = Codebook.of(model).codes(own.values)
    return Process.of(task).reading_from(FromCodes(jnp.asarray(codes), episodes_of(own, task.horizon)))


def task_of(
    model: Model,
    confidence: float | None = None,
    information: float | None = None,
    enforce: str | Enforcement = USUAL,
    objective: Objective = PRICES,
    horizon: int = 200,
    unbounded: bool = False,
) -> Task:
    """One bound, how it is enforced (by name or as an enforcement), the prices, and where an episode is cut."""
    enforcement = enforce if isinstance(enforce, Enforcement) else named_enforcement(enforce)
    return Task(model, _bound(confidence, information, unbounded), objective, enforcement, horizon)


def _bound(confidence: float | None, information: float | None, unbounded: bool) -> Bound:
    if [confidence is not None, information is not None, unbounded].count(True) != 1:
        raise InputError("Give one bound: confidence=L or information=BITS; or unbounded=True.")
    if unbounded:
        return Unbounded()
    return Information(information) if confidence is None else Confidence(confidence)  # type: ignore[arg-type]


def _model(problem: str | Path | Model) -> Model:
    return problem if isinstance(problem, Model) else read_problem(problem)


def _learned(
    provider: Filter,
    recorded: Readings,
    confidence: float | None = None,
    information: float | None = None,
    objective: Objective = PRICES,
    horizon: int = RECORDED_HORIZON,
    unbounded: bool = False,
) -> Process:
    return Process.over(provider, recorded, _bound(confidence, information, unbounded), objective, horizon)


def _fitted_to(model: Model, recorded: Readings) -> Readings:
    """The readings of the people whom the model was fitted to."""
    names = recorded.sensors, recorded.secrets, recorded.useful_values
    if names != (model.sensors, model.secrets, model.useful):
        raise InputError(f"The recordings have sensors, secrets and useful values {names}, unlike the model.")
    known = set((model.fitted or {}).get("people", ()))
    own = tuple(i for i, person in enumerate(recorded.people) if person in known)
    if not own:
        raise InputError(f"The model was fitted to {sorted(known)}, of whom there are no recordings here.")
    return recorded.of(own)
