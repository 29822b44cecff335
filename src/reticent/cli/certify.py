"""`reticent certify`."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from reticent.cli.options import Bounds, EnforceOption, Prices, check_seed, model_of, task_of
from reticent.cli.terminal import progress_bar
from reticent.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

    from reticent.estimate import Estimate
    from reticent.policy.lookahead import Lookahead, ValueFunction
    from reticent.policy.policy import Policy
    from reticent.problem.task import Task
    from reticent.process.release import ReleaseProcess
    from reticent.solve.certificate import Certificate

CONTROLLED_EPISODES, PLAIN_EPISODES = 8_192, 100_000


@dataclass(frozen=True)
class Certify:
    """How far from optimal a policy is, or how well a problem can be solved: a floor under every policy's cost."""

    target: Annotated[Positional[str], arg(metavar="POLICY|PROBLEM")]
    """A policy file, a JSON problem file, or `synthetic`. For a problem a policy is made by value iteration."""
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

        for name, least in {"rounds": 1, "draws": 2, "episodes": 2}.items():
            count = getattr(self, name)
            if count is not None and count < least:
                raise InputError(f"--{name} is {count}, which is too few.")
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
        from reticent.solve.certificate import Certificate, exact_bracket, floor_task

        task = task_of(model_of(self.target), self.bound, self.prices, self.enforce)
        if task.enforce == "answer":
            raise InputError("Train a policy for answers first (reticent train --enforce answer), then certify that.")
        if bracket := exact_bracket(task):
            return Certificate(exact(bracket.lower), exact(bracket.upper), "exact", _depth(bracket.horizon))
        floored, _ = floor_task(task)
        if floored is task:
            sharp = self._sharp(task, progress)
            return self._certificate(task, self._ceiling(sharp.process, sharp, sharp.value, progress), sharp, progress)
        policy = self._policy_for(task, progress)
        upper = self._ceiling(policy.process, policy, policy.value, progress)
        return self._certificate(task, upper, self._sharp(floored, progress), progress)

    def _policy(self, progress: "Progress") -> "Certificate":
        from reticent.estimate import exact, mean
        from reticent.policy.lookahead import Lookahead
        from reticent.policy.saved import answer_of, policy_of
        from reticent.policy.store import PolicyFile
        from reticent.solve.certificate import Certificate, exact_bracket, floor_task

        if self.bound != Bounds() or self.prices != Prices() or self.enforce:
            raise InputError("A policy file says its bound, prices and enforcement itself: leave those options out.")
        file = PolicyFile.load(Path(self.target))
        bracket = exact_bracket(file.task)
        floored, _ = floor_task(file.task)
        sharp = None if bracket else self._sharp(floored, progress)
        if file.kind == "answer":
            upper = mean(answer_of(file).simulate(self.episodes or PLAIN_EPISODES, self.seed).cost)
        else:
            process, policy = policy_of(file)
            value = policy.value if isinstance(policy, Lookahead) else None
            if sharp and floored is file.task and file.task.enforce == "penalty":
                value = sharp.value
            upper = self._ceiling(process, policy, value, progress)
        if bracket:
            return Certificate(exact(bracket.lower), upper, "exact", _depth(bracket.horizon))
        assert sharp is not None
        return self._certificate(file.task, upper, sharp, progress)

    def _ceiling(
        self, process: "ReleaseProcess", policy: "Policy", value: "ValueFunction | None", progress: "Progress"
    ) -> "Estimate":
        from reticent.solve.certificate import ceiling

        episodes = self.episodes or (CONTROLLED_EPISODES if value else PLAIN_EPISODES)
        bar = progress.add_task("The policy is simulated", total=None)
        upper = ceiling(process, policy, episodes, self.seed, value)
        progress.update(bar, total=episodes, completed=episodes)
        return upper

    def _certificate(self, task: "Task", upper: "Estimate", sharp: "Lookahead", progress: "Progress") -> "Certificate":
        """The certificate with the dual bound below, by the sharpened value."""
        from reticent.solve.certificate import Certificate, dual_floor, floor_task

        floored, words = floor_task(task)
        bar = progress.add_task("A clairvoyant plans", total=self.draws)
        lower, excess, paper = dual_floor(
            sharp.process,
            sharp.value,
            self.draws,
            self.seed,
            lambda done: progress.update(bar, completed=done),
        )
        kind = "dual bound" if floored is task else "relaxation"
        return Certificate(lower, upper, kind, words, excess, paper)

    def _policy_for(self, task: "Task", progress: "Progress") -> "Lookahead":
        from reticent.process.release import ReleaseProcess
        from reticent.solve.value_iteration import DEFAULT, value_iteration

        settings = replace(DEFAULT, rounds=self.rounds or DEFAULT.rounds)
        bar = progress.add_task("Value iteration", total=settings.rounds)

        def report(done: int, residual: float) -> None:
            progress.update(bar, completed=done, description=f"Value iteration, residual {residual:.3f}")

        return value_iteration(ReleaseProcess(task), self.seed, settings, report)

    def _sharp(self, task: "Task", progress: "Progress") -> "Lookahead":
        from reticent.process.release import ReleaseProcess
        from reticent.solve.sharpen import DEFAULT, sharp_policy

        settings = DEFAULT
        if self.rounds:
            settings = replace(settings, rounds=self.rounds, iteration=replace(settings.iteration, rounds=self.rounds))
        bar = progress.add_task("A sharp value", total=settings.iteration.rounds + settings.rounds)
        return sharp_policy(
            ReleaseProcess(task), self.seed, settings, lambda done: progress.update(bar, completed=done)
        )


def _depth(horizon: int) -> str:
    return f"by solving the problem up to {horizon} releases deep"
