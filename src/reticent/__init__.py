"""reticent: says what helps, keeps the rest to itself.

A public belief moves through a process, a policy chooses, a bound holds. Names are imported on first use, so that
importing the package stays quick.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.errors import InputError
    from reticent.evaluate.evaluation import Evaluation
    from reticent.evaluate.monitoring import Monitored, monitor
    from reticent.fit.table import fit
    from reticent.guard.long_run import LongRunKernels
    from reticent.guard.quadratic import QuadraticKernels
    from reticent.policy.contracts import check_model, check_policy, check_process
    from reticent.policy.heuristics import OneStepLookahead
    from reticent.policy.ongoing import CheapestStep, LongRunLookahead
    from reticent.policy.policy import Policy
    from reticent.problem.bound import Bound, Confidence, ExpectedInformation, Information, PosteriorBound, Unbounded
    from reticent.problem.enforcement import (
        AnswerOnly,
        Coarsen,
        Enforcement,
        Lagrangian,
        Mask,
        PaperCost,
        Penalty,
        Promise,
        Withhold,
    )
    from reticent.problem.model import Model, read_problem
    from reticent.problem.monitoring import Monitoring
    from reticent.problem.objective import Objective
    from reticent.problem.prior_range import over_priors
    from reticent.problem.synthetic import synthetic
    from reticent.problem.task import Task
    from reticent.process.ongoing import OngoingProcess
    from reticent.process.process import Process
    from reticent.solution.ongoing import OngoingSolution
    from reticent.solution.solution import Solution
    from reticent.solution.solve import load, solve
    from reticent.solve.certificate import Certificate, certify
    from reticent.solve.lattice import Bracket

__version__ = "0.4.0"

_HOME = {
    "AnswerOnly": "problem.enforcement",
    "Bound": "problem.bound",
    "Bracket": "solve.lattice",
    "Certificate": "solve.certificate",
    "CheapestStep": "policy.ongoing",
    "Coarsen": "problem.enforcement",
    "Confidence": "problem.bound",
    "Enforcement": "problem.enforcement",
    "Evaluation": "evaluate.evaluation",
    "ExpectedInformation": "problem.bound",
    "Information": "problem.bound",
    "InputError": "errors",
    "Lagrangian": "problem.enforcement",
    "LongRunKernels": "guard.long_run",
    "LongRunLookahead": "policy.ongoing",
    "Mask": "problem.enforcement",
    "Model": "problem.model",
    "Monitored": "evaluate.monitoring",
    "Monitoring": "problem.monitoring",
    "Objective": "problem.objective",
    "OneStepLookahead": "policy.heuristics",
    "OngoingProcess": "process.ongoing",
    "OngoingSolution": "solution.ongoing",
    "PaperCost": "problem.enforcement",
    "Penalty": "problem.enforcement",
    "Policy": "policy.policy",
    "PosteriorBound": "problem.bound",
    "Process": "process.process",
    "Promise": "problem.enforcement",
    "QuadraticKernels": "guard.quadratic",
    "Solution": "solution.solution",
    "Task": "problem.task",
    "Unbounded": "problem.bound",
    "Withhold": "problem.enforcement",
    "certify": "solve.certificate",
    "check_model": "policy.contracts",
    "check_policy": "policy.contracts",
    "check_process": "policy.contracts",
    "fit": "fit.table",
    "load": "solution.solve",
    "monitor": "evaluate.monitoring",
    "over_priors": "problem.prior_range",
    "read_problem": "problem.model",
    "solve": "solution.solve",
    "synthetic": "problem.synthetic",
}

__all__ = [
    "AnswerOnly",
    "Bound",
    "Bracket",
    "Certificate",
    "CheapestStep",
    "Coarsen",
    "Confidence",
    "Enforcement",
    "Evaluation",
    "ExpectedInformation",
    "Information",
    "InputError",
    "Lagrangian",
    "LongRunKernels",
    "LongRunLookahead",
    "Mask",
    "Model",
    "Monitored",
    "Monitoring",
    "Objective",
    "OneStepLookahead",
    "OngoingProcess",
    "OngoingSolution",
    "PaperCost",
    "Penalty",
    "Policy",
    "PosteriorBound",
    "Process",
    "Promise",
    "QuadraticKernels",
    "Solution",
    "Task",
    "Unbounded",
    "Withhold",
    "certify",
    "check_model",
    "check_policy",
    "check_process",
    "fit",
    "load",
    "monitor",
    "over_priors",
    "read_problem",
    "solve",
    "synthetic",
]


class _FrontDoor(ModuleType):
    """The package as a module whose functions are not replaced by rooms of the same name.

    Importing `reticent.solve.lattice` sets the attribute `solve` of the package to that room, as Python does
    for every sub-package; the front door keeps the function. Rooms are still imported by `from reticent.solve ...`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'reticent' has no attribute {name!r}")
    return getattr(import_module(f"reticent.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
