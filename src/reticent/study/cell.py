"""One cell of a study: a policy, made for one bound with one seed, and how it does."""

import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from reticent import __version__
from reticent.problem.bound import NO_BOUND, Bound, ConfidenceBound, InformationBound
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Enforcement, Task

if TYPE_CHECKING:
    from reticent.policy.policy import Policy
    from reticent.process.release import ReleaseProcess

AGENT, NO_PROTECTION = "agent", "no protection"
# Lookahead on a learned value; under coarsening with label kernels, or with kernels that carry that value.
VALUE_ITERATION, VALUE_KERNELS = "value iteration", "value kernels"
# The no-PUT policy of the paper releases this many readings of random sensors, whatever they reveal.
READINGS_WITHOUT_PROTECTION = 10
# Far beyond where the agents stop; it cuts baselines whose threshold the belief can no longer reach.
LONGEST_EPISODE = 50
# Tuning and evaluation draw from seeds of their own, far from those of training.
TUNING_SEED, EVALUATION_SEED = 10_000, 20_000


@dataclass(frozen=True)
class Cell:
    """What to run on the synthetic problem.

    `policy` is the agent, one of the two by value iteration, a baseline's name, or no protection. `effort` is in
    environment steps for the agent, in rounds for value iteration.
    """

    policy: str
    kind: Literal["confidence", "information", "none"]
    limit: float
    enforce: Enforcement
    error_penalty: float
    seed: int
    effort: int
    episodes: int

    @property
    def name(self) -> str:
        """A file name that tells cells apart."""
        policy = self.policy.replace(" ", "-")
        bound = f"{self.kind}-{self.limit:g}_{self.enforce}"
        return f"{policy}_{bound}_lambda-{self.error_penalty:g}_seed-{self.seed}"

    @property
    def title(self) -> str:
        """The cell in words."""
        bounds = {"confidence": f"L_B {self.limit:g}", "information": f"L_MI {self.limit:g} bits", "none": "no bound"}
        return f"{bounds[self.kind]}, {self.enforce}, lambda {self.error_penalty:g}, seed {self.seed}"

    @property
    def task(self) -> Task:
        """The task of this cell."""
        objective = Objective(error_penalty=self.error_penalty)
        if self.kind == "none":
            return Task(synthetic(), NO_BOUND, objective, horizon=READINGS_WITHOUT_PROTECTION)
        bound: Bound = ConfidenceBound(self.limit) if self.kind == "confidence" else InformationBound(self.limit)
        return Task(synthetic(), bound, objective, self.enforce, LONGEST_EPISODE)


def run_cell(cell: Cell) -> dict[str, Any]:
    """Make the policy, evaluate it, and return one flat row."""
    from reticent.audit.metrics import evaluate
    from reticent.process.release import ReleaseProcess

    process = ReleaseProcess(cell.task)
    started = time.perf_counter()
    process, policy = _make(cell, process)
    made = time.perf_counter()
    evaluation = evaluate(process, policy, cell.episodes, EVALUATION_SEED + cell.seed)
    seconds = {"make_seconds": made - started, "evaluate_seconds": time.perf_counter() - made}
    made_with = {"version": __version__, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    return {**asdict(cell), **made_with, **seconds, "evaluation": evaluation.to_json()}


def _make(cell: Cell, process: "ReleaseProcess") -> tuple["ReleaseProcess", "Policy"]:
    """The cell's policy and the process that it acts in."""
    from reticent.policy.policy import NoProtection
    from reticent.solve.a2c import train
    from reticent.solve.baselines import tuned_baseline
    from reticent.solve.value_iteration import Settings, value_iteration

    match cell.policy:
        case "agent":
            return process, train(process, cell.effort, cell.seed)
        case "value iteration" | "value kernels":
            kernels = "value" if cell.policy == VALUE_KERNELS else "label"
            policy = value_iteration(process, cell.seed, Settings(rounds=cell.effort, kernels=kernels))
            return policy.process, policy
        case "no protection":
            return process, NoProtection()
        case baseline:
            return process, tuned_baseline(baseline, process, TUNING_SEED + cell.seed)


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the results table: each estimate as three columns."""
    columns = {key: value for key, value in row.items() if key != "evaluation"}
    for name, number in row["evaluation"].items():
        if isinstance(number, dict):
            columns |= {name: number["value"], f"{name}_low": number["low"], f"{name}_high": number["high"]}
    return columns


def with_seeds(cell: Cell, seeds: int) -> list[Cell]:
    """The cell once for each seed."""
    return [replace(cell, seed=seed) for seed in range(seeds)]
