"""reticent: says what helps, keeps the rest to itself.

A public belief moves through a process, a policy chooses, a bound holds. Names are imported on first use, so that
importing the package stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.errors import InputError
    from reticent.evaluate.evaluation import Evaluation, evaluate
    from reticent.policy.heuristics import OneStepLookahead
    from reticent.policy.policy import Policy
    from reticent.policy.store import PolicyFile
    from reticent.problem.bound import NO_BOUND, ConfidenceBound, ExpectedInformationBound, InformationBound
    from reticent.problem.model import ReleaseModel, read_problem
    from reticent.problem.objective import Objective
    from reticent.problem.synthetic import synthetic
    from reticent.problem.task import Task
    from reticent.process.release import ReleaseProcess
    from reticent.solve.a2c import train
    from reticent.solve.answer import answer
    from reticent.solve.certificate import Certificate, certify
    from reticent.solve.lattice import solve_lattice
    from reticent.solve.value_iteration import value_iteration

__version__ = "0.4.0"

_HOME = {
    "Certificate": "solve.certificate",
    "ConfidenceBound": "problem.bound",
    "Evaluation": "evaluate.evaluation",
    "ExpectedInformationBound": "problem.bound",
    "InformationBound": "problem.bound",
    "InputError": "errors",
    "NO_BOUND": "problem.bound",
    "Objective": "problem.objective",
    "OneStepLookahead": "policy.heuristics",
    "Policy": "policy.policy",
    "PolicyFile": "policy.store",
    "ReleaseModel": "problem.model",
    "ReleaseProcess": "process.release",
    "Task": "problem.task",
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
    "NO_BOUND",
    "Certificate",
    "ConfidenceBound",
    "Evaluation",
    "ExpectedInformationBound",
    "InformationBound",
    "InputError",
    "Objective",
    "OneStepLookahead",
    "Policy",
    "PolicyFile",
    "ReleaseModel",
    "ReleaseProcess",
    "Task",
    "answer",
    "certify",
    "evaluate",
    "read_problem",
    "solve_lattice",
    "synthetic",
    "train",
    "value_iteration",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'reticent' has no attribute {name!r}")
    return getattr(import_module(f"reticent.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
