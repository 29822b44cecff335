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
    from reticent.evaluate.evaluation import Evaluation, evaluate
    from reticent.policy.heuristics import OneStepLookahead
    from reticent.policy.policy import Policy
    from reticent.policy.store import PolicyFile
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
    from reticent.problem.model import ReleaseModel, read_problem
    from reticent.problem.objective import Objective
    from reticent.problem.synthetic import synthetic
    from reticent.problem.task import Task
    from reticent.process.process import Process
    from reticent.solve.a2c import train
    from reticent.solve.answer import answer
    from reticent.solve.certificate import Certificate, certify
    from reticent.solve.lattice import solve_lattice
    from reticent.solve.value_iteration import value_iteration

__version__ = "0.4.0"

_HOME = {
    "AnswerOnly": "problem.enforcement",
    "Bound": "problem.bound",
    "Certificate": "solve.certificate",
    "Coarsen": "problem.enforcement",
    "Confidence": "problem.bound",
    "Enforcement": "problem.enforcement",
    "Evaluation": "evaluate.evaluation",
    "ExpectedInformation": "problem.bound",
    "Information": "problem.bound",
    "InputError": "errors",
    "Lagrangian": "problem.enforcement",
    "Mask": "problem.enforcement",
    "Objective": "problem.objective",
    "OneStepLookahead": "policy.heuristics",
    "PaperCost": "problem.enforcement",
    "Penalty": "problem.enforcement",
    "Policy": "policy.policy",
    "PolicyFile": "policy.store",
    "PosteriorBound": "problem.bound",
    "Process": "process.process",
    "Promise": "problem.enforcement",
    "ReleaseModel": "problem.model",
    "Task": "problem.task",
    "Unbounded": "problem.bound",
    "Withhold": "problem.enforcement",
    "answer": "solve.answer",
    "certify": "solve.certificate",
    "evaluate": "evaluate.evaluation",
    "read_problem": "problem.model",
    "solve_lattice": "solve.lattice",
    "synthetic": "problem.synthetic",
    "train": "solve.a2c",
    "value_iteration": "solve.value_iteration",
}

__all__ = [
    "AnswerOnly",
    "Bound",
    "Certificate",
    "Coarsen",
    "Confidence",
    "Enforcement",
    "Evaluation",
    "ExpectedInformation",
    "Information",
    "InputError",
    "Lagrangian",
    "Mask",
    "Objective",
    "OneStepLookahead",
    "PaperCost",
    "Penalty",
    "Policy",
    "PolicyFile",
    "PosteriorBound",
    "Process",
    "Promise",
    "ReleaseModel",
    "Task",
    "Unbounded",
    "Withhold",
    "answer",
    "certify",
    "evaluate",
    "read_problem",
    "solve_lattice",
    "synthetic",
    "train",
    "value_iteration",
]


class _FrontDoor(ModuleType):
    """The package as a module whose functions are not replaced by rooms of the same name.

    Importing `reticent.evaluate.evaluation` sets the attribute `evaluate` of the package to that room, as Python does
    for every sub-package; the front door keeps the function. Rooms are still imported by `from reticent.evaluate ...`.
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
