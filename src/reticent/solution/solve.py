"""From a task to its solution, and from a file."""

from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from reticent.errors import InputError
from reticent.policy.ongoing_settings import task_with_kernels
from reticent.policy.saved import answer_of, policy_of
from reticent.policy.saved_ongoing import ongoing_policy_of
from reticent.policy.store import PolicyFile
from reticent.problem.enforcement import Enforcement
from reticent.problem.monitoring import Monitoring
from reticent.problem.task import Task
from reticent.solution.methods import METHODS, Run
from reticent.solution.ongoing import OngoingSolution
from reticent.solution.ongoing_methods import ONGOING_METHODS
from reticent.solution.solution import Answered, Released, Solution
from reticent.solve.lattice import Bracket
from reticent.solve.training import Progress, Report

MethodName = Literal["ppo", "a2c", "value-iteration", "answer"]
BracketName = Literal["lattice", "tree"]
OngoingName = Literal["ppo", "a2c", "long-run", "lookahead"]


Named = TypeVar("Named")


def _silent(progress: Progress) -> None:
    """Tell nobody."""


@overload
def solve(
    task: Task,
    method: MethodName = "ppo",
    seed: int = 0,
    *,
    report: Report = ...,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Solution: ...
@overload
def solve(
    task: Monitoring,
    method: OngoingName = "ppo",
    seed: int = 0,
    *,
    report: Report = ...,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> OngoingSolution: ...
@overload
def solve(
    task: Task,
    method: BracketName,
    seed: int = 0,
    *,
    report: Report = ...,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Bracket: ...
def solve(
    task: Task | Monitoring,
    method: str = "ppo",
    seed: int = 0,
    *,
    report: Report = _silent,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Solution | OngoingSolution | Bracket:
    """Solve a task.

    Args:
        task: What to solve. One that goes on has the methods `ppo` and `a2c`; `long-run`, lookahead on a value with
            two weights, which is better; and `lookahead` for one step, which needs no training.
        method: `ppo`, an agent that learns from simulated episodes, or the paper's `a2c`; `value-iteration`, which
            computes with the known model: better policies, dearer decisions. `answer` sends one answer in place of
            readings, whatever the task's enforcement; the task of the solution enforces by `AnswerOnly`. `lattice`
            (readings sent as they are) and `tree` (any enforcement) only bracket the optimal cost of small tasks.
        seed: Seed of everything random. The same seed gives the same solution.
        report: Called with a `Progress` before the first piece of a training and after each.
        checkpoint: A file that a training saves its state to now and then, and goes on from.
        options: Numbers of the method: `steps` and the fields of `reticent.solve.actor_critic.Recipe` (ppo, a2c);
            those of `reticent.solve.value_iteration.Settings`, such as `rounds`, `tolerance` and `kernels`
            (value-iteration, answer); `days` to compare weights over (long-run); `horizon` and `max_nodes` (lattice,
            tree).

    Returns:
        A `Solution`; an `OngoingSolution` of a task that goes on; of `lattice` and `tree` a `Bracket`, because they
        make no policy.

    Example:
        >>> from reticent.problem.synthetic import two_binary_sensors
        >>> task = rt.Task(two_binary_sensors(), rt.Confidence(0.8))
        >>> round(rt.solve(task, "lattice").upper, 4)
        7.3422
        >>> solution = rt.solve(task, "value-iteration", rounds=2, lanes=16, groups=1, width=8)
        >>> solution.made["done"]
        2
    """
    run = Run(seed, report, None if checkpoint is None else Path(checkpoint))
    if isinstance(task, Monitoring):
        return _named(ONGOING_METHODS, method, "a problem that goes on").having(options).solve(task, run)
    return _named(METHODS, method, "a problem with a stop").having(options).solve(task, run)


def _named(methods: dict[str, Named], method: str, problem: str) -> Named:
    if method not in methods:
        raise InputError(f"The method for {problem} is one of {', '.join(methods)}, but is {method!r}.")
    return methods[method]


def load(path: str | Path, enforcement: Enforcement | None = None) -> Solution | OngoingSolution:
    """Read a solution from a policy file.

    Args:
        path: The file that `Solution.save` or `reticent train` wrote.
        enforcement: Another way to keep the bound than the policy was made for; answers have no other.

    Returns:
        The solution; an `OngoingSolution` where the policy is for a problem that goes on. A file that cannot be read is
        an `InputError`.

    Example:
        >>> rt.load("no-such.safetensors")
        Traceback (most recent call last):
        reticent.errors.InputError: There is no policy file 'no-such.safetensors'.
    """
    file = PolicyFile.load(path)
    if isinstance(file.made_for, Monitoring):
        if enforcement is not None:
            raise InputError("A policy of a problem that goes on keeps its bound as it was made to.")
        return OngoingSolution(task_with_kernels(file), *ongoing_policy_of(file), file.provenance)
    if file.kind == "answer":
        if enforcement is not None:
            raise InputError("A policy for answers keeps its bound in no other way, and no other policy can answer.")
        return Answered.by(answer_of(file), file.provenance)
    process, policy = policy_of(file, enforcement)
    task = file.task if enforcement is None else process.task
    return Released(task, process, policy, file.provenance)
