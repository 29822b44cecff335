"""Cells of finite models: make the policy, evaluate it by exact simulation."""

import hashlib
import json
import time
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from reticent.evaluate.estimate import Estimate
from reticent.evaluate.evaluation import Evaluation
from reticent.evaluate.ledgers import Averaged
from reticent.problem.model import Model, read_problem
from reticent.problem.objective import Objective
from reticent.problem.synthetic import Z_RANGE, synthetic
from reticent.problem.task import Task
from reticent.study.cell import Cell, Efforts, Problem, Row, Setting

# Evaluation draws from seeds of its own, far from those of training and tuning.
EVALUATION_SEED = 20_000
# Each number of an evaluation with the ends of its interval; lists have one number per class.
ENDS = (("", "value"), ("_low", "low"), ("_high", "high"))
MEASURES = {
    each.name: pl.Float64 if each.type is Estimate else pl.List(pl.Float64)
    for each in fields(Evaluation)
    if each.type is not int
}
# What methods measure beside it.
MEASURES |= dict.fromkeys((*(each.name for each in fields(Averaged)), "theorem_2"), pl.Float64)


@dataclass(frozen=True)
class FiniteProblem(Problem):
    """A finite model with a name. It travels with its cells.

    `draw` is which one of the paper's synthetic problems it is, `z_range` where their symbols lie: none of a file.
    """

    name: str
    digest: str
    model: Model = field(compare=False, repr=False)
    seeds: int = 1
    draw: int = 0
    z_range: tuple[float, float] | None = None

    @classmethod
    def of(cls, name: str, model: Model) -> "FiniteProblem":
        """The model under this name."""
        content = json.dumps(model.to_json(), sort_keys=True).encode()
        return cls(name, hashlib.sha256(content).hexdigest()[:16], model)

    def drawn(self, draw: int) -> "FiniteProblem":
        return self if self.z_range is None else synthetic_problem(draw, self.z_range)

    def check(self, setting: Setting) -> None:
        setting.bound.check(self.model.prior)

    def cell(self, setting: Setting, seed: int, efforts: Efforts) -> Cell:
        effort = setting.method.effort(efforts.steps, efforts.rounds)
        return FiniteCell(self, setting, seed, effort, efforts.episodes)


def synthetic_problem(draw: int = 0, z_range: tuple[float, float] = Z_RANGE) -> FiniteProblem:
    """The paper's synthetic problem with this draw of its standard deviations."""
    name = "synthetic" if z_range == Z_RANGE else "synthetic, z from {:g} to {:g}".format(*z_range)
    return replace(FiniteProblem.of(name, synthetic(draw, z_range=z_range)), draw=draw, z_range=z_range)


SYNTHETIC = synthetic_problem()


@dataclass(frozen=True)
class FiniteCell(Cell):
    """A setting and a seed in a finite model. `effort` is what training runs: environment steps, or rounds."""

    schema: ClassVar[dict[str, Any]] = {
        "limit": pl.Float64,
        "recipe": pl.String,
        "variant": pl.String,
        **{f"{name}{end}": kind for name, kind in MEASURES.items() for end, _ in ENDS},
    }
    problem: FiniteProblem
    setting: Setting
    seed: int
    effort: int
    episodes: int

    def identity(self) -> Row:
        problem = {"problem": self.problem.name, "draw": self.problem.draw, "digest": self.problem.digest}
        efforts = {"seed": self.seed, "effort": self.effort, "episodes": self.episodes}
        return {**problem, **self.setting.columns(), **efforts}

    @property
    def task(self) -> Task:
        """The task of this cell."""
        setting = self.setting
        objective = Objective(error_penalty=setting.error_penalty)
        return Task(self.problem.model, setting.bound, objective, setting.enforcement, setting.method.horizon)

    def run(self, out: Path) -> Row:
        """Make the policy and evaluate it; nothing in the study's folder is needed."""
        del out
        started = time.perf_counter()
        evaluate = self.setting.method.prepare(self.task, self.seed, self.effort)
        made = time.perf_counter()
        evaluation = evaluate(self.episodes, EVALUATION_SEED + self.seed)
        seconds = {"make_seconds": made - started, "evaluate_seconds": time.perf_counter() - made}
        return {**self.setting.promise(), "variant": evaluation.get("variant"), **seconds, **flat(evaluation)}


def flat(evaluation: dict[str, Any]) -> Row:
    """Each number as three columns; nothing where it was not computed, or of a class that never occurred."""
    row = {}
    for name in MEASURES:
        number = evaluation.get(name)
        for column, end in ENDS:
            if isinstance(number, list):
                row[f"{name}{column}"] = [each and each[end] for each in number]
            else:
                row[f"{name}{column}"] = number and number[end]
    return row


def problems_of(path: Path, name: str, z_ranges: list[tuple[float, float]]) -> list[FiniteProblem]:
    """The problem of a file beside a spec; "synthetic" is the paper's, once for each range of its symbols."""
    if name == "synthetic":
        return [synthetic_problem(z_range=each) for each in z_ranges]
    return [FiniteProblem.of(name, read_problem(path.parent / name))]
