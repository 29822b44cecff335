"""`reticent certify`."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from reticent.cli.options import Bounds, EnforceOption, Prices, check_seed, model_of, task_of
from reticent.cli.terminal import progress_bar
from reticent.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from reticent.policy.answer import Answer
    from reticent.policy.policy import Policy
    from reticent.problem.task import Task
    from reticent.solve.certificate import Report


@dataclass(frozen=True)
class Certify:
    """How far from optimal a policy is, or how well a problem can be solved: a floor under every policy's cost."""

    target: Annotated[Positional[str], arg(metavar="POLICY|PROBLEM")]
    """A policy file, a JSON problem file, or `synthetic`. A small problem is solved, for a large one a policy
    is made by value iteration."""
    bound: Annotated[Bounds, arg(name="")] = field(default_factory=Bounds)
    prices: Annotated[Prices, arg(name="")] = field(default_factory=Prices)
    enforce: EnforceOption | None = None
    """How the bound is kept, for a problem; a policy file says it itself."""
    rounds: int | None = None
    """Rounds of value iteration, at most, and of sharpening its value for the floor. By default what was found to be
    worth the time."""
    draws: int = 256
    """Draws on which a clairvoyant plans: more make the interval of the floor narrower."""
    episodes: int | None = None
    """Episodes to simulate. By default 8,192 where a value takes the luck out of them, else 100,000."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Bound from both sides and print."""
        from reticent.compile_cache import use_compile_cache
        from reticent.solve.certificate import Effort, certify

        for name, least in {"rounds": 1, "draws": 2, "episodes": 2}.items():
            count = getattr(self, name)
            if count is not None and count < least:
                raise InputError(f"--{name} is {count}, which is too few.")
        check_seed(self.seed)
        use_compile_cache()
        is_problem = self.target == "synthetic" or Path(self.target).suffix == ".json"
        task, policy = self._problem() if is_problem else self._policy()
        with progress_bar() as progress:
            effort = Effort(self.rounds, self.draws, self.episodes)
            certificate = certify(task, policy, self.seed, effort, _shown_on(progress))
        if self.json:
            print(json.dumps({"target": self.target, **certificate.to_json()}))
            return
        print(certificate.sentence())
        if certificate.paper_bound is not None:
            print(
                f"Theorem 2 of the paper would give {certificate.paper_bound:.4g} with the same value, if no belief "
                f"exceeded its condition by more than the {certificate.excess:.3g} found: an estimate, not a bound."
            )

    def _problem(self) -> tuple["Task", None]:
        task = task_of(model_of(self.target), self.bound, self.prices, self.enforce)
        if not task.enforcement.releases:
            raise InputError("Train a policy for answers first (reticent train --enforce answer), then certify that.")
        return task, None

    def _policy(self) -> tuple["Task", "Policy | Answer"]:
        from reticent.policy.saved import answer_of, policy_of
        from reticent.policy.store import PolicyFile

        if self.bound != Bounds() or self.prices != Prices() or self.enforce:
            raise InputError("A policy file says its bound, prices and enforcement itself: leave those options out.")
        file = PolicyFile.load(Path(self.target))
        return file.task, answer_of(file) if file.kind == "answer" else policy_of(file)[1]


def _shown_on(progress: "Progress") -> "Report":
    """Shows each stage of the work as a bar of its own."""
    bars: dict[str, TaskID] = {}

    def report(doing: str, done: int, total: int | None) -> None:
        if doing not in bars:
            bars[doing] = progress.add_task(doing, total=total)
        progress.update(bars[doing], completed=done, total=total)

    return report
