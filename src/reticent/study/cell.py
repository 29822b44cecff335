"""One cell of a study: a policy, made for one bound with one seed, and how it does."""

import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reticent import __version__
from reticent.problem.bound import Bound, Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import Penalty, named_enforcement
from reticent.problem.model import ReleaseModel
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task

if TYPE_CHECKING:
    from reticent.policy.lookahead import Lookahead
    from reticent.policy.policy import Policy
    from reticent.process.process import Process
    from reticent.process.rollout import Episode

    # Episodes and seed to records.
    Simulation = Callable[[int, int], Episode]

AGENT, NO_PROTECTION = "agent", "no protection"
# Not a policy, but the cost that none can go below.
FLOOR = "certified floor"
# Lookahead on a learned value; under coarsening with label kernels, or with kernels that carry that value.
VALUE_ITERATION, VALUE_KERNELS = "value iteration", "value kernels"
Kind = Literal["confidence", "information", "expected", "none"]
# What tables show where there is no bound: beyond every probability.
NO_LIMIT = 2.0
BOUNDS: dict[str, Callable[[float], Bound]] = {
    "confidence": Confidence,
    "information": Information,
    "expected": ExpectedInformation,
}
# The no-PUT policy of the paper releases this many readings of random sensors, whatever they reveal.
READINGS_WITHOUT_PROTECTION = 10
# Far beyond where the agents stop; it cuts baselines whose threshold the belief can no longer reach.
LONGEST_EPISODE = 50
# Tuning and evaluation draw from seeds of their own, far from those of training.
TUNING_SEED, EVALUATION_SEED = 10_000, 20_000


@dataclass(frozen=True)
class Problem:
    """A model with a name. It travels with its cells, and `digest` tells it from others of that name."""

    name: str
    digest: str
    model: ReleaseModel = field(compare=False, repr=False)

    @classmethod
    def of(cls, name: str, model: ReleaseModel) -> "Problem":
        """The model under this name."""
        content = json.dumps(model.to_json(), sort_keys=True).encode()
        return cls(name, hashlib.sha256(content).hexdigest()[:16], model)


SYNTHETIC = Problem.of("synthetic", synthetic())


@dataclass(frozen=True)
class Cell:
    """What to run.

    `policy` is the agent, one of the two by value iteration, a baseline's name, no protection, or the certified floor.
    `effort` is in environment steps for the agent (those that are run: `agent_steps`), in rounds for value iteration;
    `episodes` are draws for the floor. `recipe` is the agent's.
    """

    policy: str
    kind: Kind
    limit: float
    enforce: str
    error_penalty: float
    seed: int
    effort: int
    episodes: int
    recipe: Literal["default", "paper"] = "default"
    problem: Problem = SYNTHETIC

    @property
    def name(self) -> str:
        """A file name that tells cells apart."""
        problem = "" if self.problem == SYNTHETIC else f"{_file_name(self.problem)}_"
        policy = self.policy.replace(" ", "-") + ("" if self.recipe == "default" else f"-{self.recipe}")
        bound = f"{self.kind}-{self.limit:g}_{self.enforce}"
        return f"{problem}{policy}_{bound}_lambda-{self.error_penalty:g}_seed-{self.seed}"

    def identity(self) -> dict[str, Any]:
        """The columns of a saved row that say which cell it is of."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**columns, "problem": self.problem.name, "digest": self.problem.digest}

    @property
    def bound(self) -> str:
        """The bound in words."""
        bounds = {
            "confidence": f"L_B {self.limit:g}",
            "information": f"L_MI {self.limit:g} bits",
            "expected": f"{self.limit:g} bits on average",
            "none": "no bound",
        }
        return bounds[self.kind]

    @property
    def title(self) -> str:
        """The cell in words."""
        return f"{self.bound}, {self.enforce}, lambda {self.error_penalty:g}, seed {self.seed}"

    @property
    def task(self) -> Task:
        """The task of this cell."""
        objective = Objective(error_penalty=self.error_penalty)
        bound: Bound = Unbounded() if self.kind == "none" else BOUNDS[self.kind](self.limit)
        horizon = READINGS_WITHOUT_PROTECTION if self.policy == NO_PROTECTION else LONGEST_EPISODE
        return Task(self.problem.model, bound, objective, named_enforcement(self.enforce), horizon)

    def run(self, out: Path) -> dict[str, Any]:
        """Make the policy and evaluate it; nothing in the study's folder is needed."""
        del out
        return run_cell(self)


def agent_steps(steps: int, recipe: str = "default") -> int:
    """The environment steps that training an agent for `steps` runs."""
    from reticent.solve.a2c import RECIPES

    return RECIPES[recipe].steps_run(steps)


def _file_name(problem: Problem) -> str:
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', Path(problem.name).stem)[:40]}-{problem.digest[:8]}"


def run_cell(cell: Cell) -> dict[str, Any]:
    """Make the policy, evaluate it, and return one row."""
    from reticent.evaluate.evaluation import summarise

    if cell.policy == FLOOR:
        return _floor(cell)
    started = time.perf_counter()
    simulate = _releasing(cell) if cell.task.enforcement.releases else _answering(cell)
    made = time.perf_counter()
    seed = EVALUATION_SEED + cell.seed
    evaluation = summarise(simulate(cell.episodes, seed), seed)
    return _saved(cell, made - started, time.perf_counter() - made, evaluation.to_json())


def _saved(cell: Cell, making: float, evaluating: float, evaluation: dict[str, Any]) -> dict[str, Any]:
    seconds = {"make_seconds": making, "evaluate_seconds": evaluating}
    made_with = {"version": __version__, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    return {**cell.identity(), **made_with, **seconds, "evaluation": evaluation}


def _floor(cell: Cell) -> dict[str, Any]:
    """The row of the certified floor: it has a cost and nothing else."""
    from reticent.process.process import Process
    from reticent.solve.certificate import dual_floor
    from reticent.solve.sharpen import DEFAULT, sharp_policy

    started = time.perf_counter()
    settings = replace(DEFAULT, rounds=cell.effort, iteration=replace(DEFAULT.iteration, rounds=cell.effort))
    policy = sharp_policy(Process.of(cell.task), cell.seed, settings)
    made = time.perf_counter()
    lower, _, _ = dual_floor(policy.process, policy.value, cell.episodes, EVALUATION_SEED + cell.seed)
    return _saved(cell, made - started, time.perf_counter() - made, {"cost": asdict(lower)})


def _answering(cell: Cell) -> "Simulation":
    """Simulates the cell's rule for answers, over a private policy by value iteration."""
    from reticent.solve.answer import answer

    # The device reads in private, whatever the bound: one policy serves them all.
    private = _private_policy(replace(cell, kind="none", limit=NO_LIMIT, enforce=Penalty.name))
    return answer(cell.task, private, cell.seed).simulate


@cache
def _private_policy(cell: Cell) -> "Lookahead":
    """Reads in private, for a cell without bound."""
    from reticent.process.process import Process
    from reticent.solve.value_iteration import Settings, value_iteration

    return value_iteration(Process.of(cell.task), cell.seed, Settings(rounds=cell.effort))


def _releasing(cell: Cell) -> "Simulation":
    """Simulates the cell's policy in the process that it was made for."""
    from reticent.process.process import Process
    from reticent.process.rollout import simulate

    process, policy = _make(cell, Process.of(cell.task))
    return lambda episodes, seed: simulate(process, policy.act, episodes, seed)


def _make(cell: Cell, process: "Process") -> tuple["Process", "Policy"]:
    """The cell's policy and the process that it acts in."""
    from reticent.policy.policy import NoProtection
    from reticent.solve.a2c import train
    from reticent.solve.baselines import tuned_baseline
    from reticent.solve.value_iteration import Settings, value_iteration

    match cell.policy:
        case "agent":
            return process, train(process, cell.effort, cell.seed, cell.recipe)
        case "value iteration" | "value kernels":
            kernels = "value" if cell.policy == VALUE_KERNELS else "label"
            policy = value_iteration(process, cell.seed, Settings(rounds=cell.effort, kernels=kernels))
            return policy.process, policy
        case "no protection":
            return process, NoProtection()
        case baseline:
            return process, tuned_baseline(baseline, process, TUNING_SEED + cell.seed)


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the results table: each estimate as three columns, which hold lists where it is one per class."""
    columns = {key: value for key, value in row.items() if key != "evaluation"}
    for name, number in row["evaluation"].items():
        for column, end in ((name, "value"), (f"{name}_low", "low"), (f"{name}_high", "high")):
            if isinstance(number, dict):
                columns[column] = number[end]
            elif isinstance(number, list):
                # A class that never occurred has no number.
                columns[column] = [each and each[end] for each in number]
    return columns


def with_seeds(cell: Cell, seeds: int) -> list[Cell]:
    """The cell once for each seed."""
    return [replace(cell, seed=seed) for seed in range(seeds)]
