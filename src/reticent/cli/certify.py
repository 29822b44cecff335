"""`reticent certify`."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from reticent.cli.options import Bounds, EnforceOption, Prices, check_seed, model_of, task_of
from reticent.cli.terminal import work_shown
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.problem.task import Task
    from reticent.solution.solution import Solution
    from reticent.solve.certificate import Effort


# Rounds, draws and episodes of a first answer.
QUICK = 20, 64, 8_192


@dataclass(frozen=True)
class Certify:
    """Bound how far from optimal a policy is: a lower bound on every policy's cost, beside the cost of this one."""

    target: Annotated[Positional[str], arg(metavar="POLICY|PROBLEM")]
    """A policy file, a JSON problem file, or `synthetic`. For a problem, a small one is solved exactly; for a large one
    a policy is made by value iteration and certified."""
    bound: Annotated[Bounds, arg(name="")] = field(default_factory=Bounds)
    prices: Annotated[Prices, arg(name="")] = field(default_factory=Prices)
    enforce: EnforceOption | None = None
    """How the bound is kept, for a problem; a policy file has its own."""
    rounds: int | None = None
    """Rounds of value iteration, at most, and of refining its value for the lower bound. By default as many as were
    found to be worth the time."""
    draws: int | None = None
    """Draws for the lower bound (`reticent docs certificate`): more make its interval narrower. By default 256."""
    episodes: int | None = None
    """Episodes to simulate. By default 8,192 where a value function serves as control variate, else 100,000."""
    quick: bool = False
    """A first answer: 20 rounds, 64 draws and 8,192 episodes, where nothing else is said."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Bound from both sides and print."""
        from reticent.process.compile_cache import use_compile_cache
        from reticent.solve.certificate import certify

        for name, least in {"rounds": 1, "draws": 2, "episodes": 2}.items():
            count = getattr(self, name)
            if count is not None and count < least:
                raise InputError(f"--{name} must be at least {least}, but is {count}.")
        check_seed(self.seed)
        use_compile_cache()
        is_problem = self.target == "synthetic" or Path(self.target).suffix == ".json"
        candidate = None if is_problem else self._solution()
        task = self._task() if candidate is None else candidate.task
        with work_shown("compiling") as show:
            effort = self._effort()
            certificate = certify(
                task, candidate, self.seed, effort, lambda doing, done, total: show(doing, done, total, "")
            )
        if self.json:
            print(json.dumps({"target": self.target, **certificate.to_json()}))
            return
        print(certificate.sentence())
        if certificate.paper_bound is not None:
            print(
                f"Theorem 2 of the paper would give {certificate.paper_bound:.4g} with the same value, if no belief "
                f"exceeded its condition by more than the {certificate.excess:.3g} found: an estimate, not a bound."
            )

    def _effort(self) -> "Effort":
        from reticent.solve.certificate import Effort

        rounds, draws, episodes = QUICK if self.quick else (None, 256, None)
        return Effort(self.rounds or rounds, self.draws or draws, self.episodes or episodes)

    def _task(self) -> "Task":
        return task_of(model_of(self.target), self.bound, self.prices, self.enforce)

    def _solution(self) -> "Solution":
        from reticent.solution.ongoing import OngoingSolution
        from reticent.solution.solve import load

        if self.bound != Bounds() or self.prices != Prices() or self.enforce:
            raise InputError("A policy file has its own bound, prices and enforcement: leave those options out.")
        solution = load(self.target)
        if isinstance(solution, OngoingSolution):
            raise InputError(
                "This policy is for a problem that goes on, whose optimal cost has no certificate. `reticent solve` "
                "gives that of the first few steps."
            )
        return solution
