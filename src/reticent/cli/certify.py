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
    from rich.progress import Progress

    from reticent.estimate import Estimate
    from reticent.policy.lookahead import Lookahead
    from reticent.problem.task import Task
    from reticent.solve.certificate import Certificate


@dataclass(frozen=True)
class Certify:
    """How far from optimal a policy is, or how well a problem can be solved: a floor under every policy's cost."""

    target: Annotated[Positional[str], arg(metavar="POLICY|PROBLEM")]
    """A policy file, a JSON problem file, or `synthetic`. For a problem a policy is made by value iteration."""
    bound: Annotated[Bounds, arg(name="")] = field(default_factory=Bounds)
    prices: Annotated[Prices, arg(name="")] = field(default_factory=Prices)
    enforce: EnforceOption | None = None
    """How the bound is kept, for a problem; a policy file says it itself."""
    rounds: int = 300
    """Rounds of value iteration, at most."""
    draws: int = 1024
    """Draws on which a clairvoyant plans: more make the interval of the floor narrower."""
    episodes: int = 100_000
    """Episodes to simulate."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Bound from both sides and print."""
        from reticent.compile_cache import use_compile_cache

        for name in ("rounds", "draws", "episodes"):
            if getattr(self, name) < (1 if name == "rounds" else 2):
                raise InputError(f"--{name} is {getattr(self, name)}, which is too few.")
        check_seed(self.seed)
        use_compile_cache()
        is_problem = self.target == "synthetic" or Path(self.target).suffix == ".json"
        with progress_bar() as progress:
            certificate = self._problem(progress) if is_problem else self._policy(progress)
        if self.json:
            print(json.dumps({"target": self.target, **certificate.to_json()}))
            return
        print(certificate.sentence())
        if certificate.paper_bound is not None:
            print(
                f"Theorem 2 of the paper would give {certificate.paper_bound:.4g} with the same value, if no belief "
                f"exceeded its condition by more than the {certificate.excess:.3g} found: an estimate, not a bound."
            )

    def _problem(self, progress: "Progress") -> "Certificate":
        from reticent.estimate import exact
        from reticent.solve.certificate import Certificate, ceiling, exact_bracket, floor_task

        task = task_of(model_of(self.target), self.bound, self.prices, self.enforce)
        if task.enforce == "answer":
            raise InputError("Train a policy for answers first (reticent train --enforce answer), then certify that.")
        if bracket := exact_bracket(task):
            return Certificate(exact(bracket.lower), exact(bracket.upper), "exact", _depth(bracket.horizon))
        floored, _ = floor_task(task)
        policy = self._values(task, progress, scouts=floored is task)
        upper = ceiling(policy.process, policy, self.episodes, self.seed, policy.value)
        return self._floor(task, upper, progress, policy if floored is task else None)

    def _policy(self, progress: "Progress") -> "Certificate":
        from reticent.estimate import exact, mean
        from reticent.policy.lookahead import Lookahead
        from reticent.policy.saved import answer_of, policy_of
        from reticent.policy.store import PolicyFile
        from reticent.solve.certificate import Certificate, ceiling, exact_bracket

        if self.bound != Bounds() or self.prices != Prices() or self.enforce:
            raise InputError("A policy file says its bound, prices and enforcement itself: leave those options out.")
        file = PolicyFile.load(Path(self.target))
        if file.kind == "answer":
            upper = mean(answer_of(file).simulate(self.episodes, self.seed).cost)
        else:
            process, policy = policy_of(file)
            value = policy.value if isinstance(policy, Lookahead) else None
            upper = ceiling(process, policy, self.episodes, self.seed, value)
        if bracket := exact_bracket(file.task):
            return Certificate(exact(bracket.lower), upper, "exact", _depth(bracket.horizon))
        return self._floor(file.task, upper, progress, None)

    def _floor(
        self, task: "Task", upper: "Estimate", progress: "Progress", policy: "Lookahead | None"
    ) -> "Certificate":
        """The certificate with the dual bound below; `policy` holds a value for it, if there is one already."""
        from reticent.solve.certificate import Certificate, dual_floor, floor_task

        floored, words = floor_task(task)
        policy = policy or self._values(floored, progress, scouts=True)
        bar = progress.add_task("A clairvoyant plans", total=self.draws)
        lower, excess, paper = dual_floor(
            policy.process,
            policy.value,
            self.draws,
            self.seed,
            lambda done: progress.update(bar, completed=done),
        )
        kind = "dual bound" if floored is task else "relaxation"
        return Certificate(lower, upper, kind, words, excess, paper)

    def _values(self, task: "Task", progress: "Progress", scouts: bool) -> "Lookahead":
        from reticent.process.release import ReleaseProcess
        from reticent.solve.value_iteration import SCOUTS, Settings, value_iteration

        settings = Settings(rounds=self.rounds, scouts=SCOUTS if scouts else 0)
        bar = progress.add_task("Value iteration", total=self.rounds)

        def report(done: int, residual: float) -> None:
            progress.update(bar, completed=done, description=f"Value iteration, residual {residual:.3f}")

        return value_iteration(ReleaseProcess(task), self.seed, settings, report)


def _depth(horizon: int) -> str:
    return f"by solving the problem up to {horizon} releases deep"
