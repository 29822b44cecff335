"""Cells, the units of work of a study: each runs on one core and is saved on its own.

A problem and a grid of settings make cells. What a cell needs beside itself travels with it to the worker, or was left
in the study's folder by the cells that it `needs`.
"""

import abc
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from reticent.problem.bound import Bound
from reticent.problem.enforcement import Enforcement
from reticent.study.method import Method

Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A bound, how it is kept, by which method, and the price of a wrong guess: all of a cell but problem and seed."""

    bound: Bound
    enforcement: Enforcement
    method: Method
    error_penalty: float
    violation_cost: float = 50.0

    def columns(self) -> Row:
        """The setting in a row; without a limit for a bound that has no single one."""
        return {
            "bound": self.bound.name,
            "limit": self.bound.number,
            "enforcement": self.enforcement.name,
            "method": self.method.name,
            "recipe": self.method.recipe_text,
            "error_penalty": self.error_penalty,
            "violation_cost": self.violation_cost,
        }

    def promise(self) -> Row:
        """How far the bound is kept: a word to sort by, and the sentence that reports print."""
        return {"promise": self.enforcement.promise.name.lower(), "promised": self.enforcement.promised}


@dataclass(frozen=True)
class Efforts:
    """What is asked of each cell: environment steps train an agent, rounds iterate a value; episodes evaluate."""

    steps: int
    rounds: int
    episodes: int


class Cell(abc.ABC):
    """What is run and saved. Final classes are frozen dataclasses.

    `table` is the folder of its rows, which together are one table; `schema` has the types of columns that one row
    alone does not tell.
    """

    table: ClassVar[str] = "results"
    schema: ClassVar[dict[str, Any]] = {}

    @property
    def needs(self) -> tuple["Cell", ...]:
        """Cells that must be finished before this one starts."""
        return ()

    @abc.abstractmethod
    def identity(self) -> Row:
        """The columns of a saved row that say which cell it is of; with a problem, its digest and a method."""

    @property
    def name(self) -> str:
        """A file name that tells the cells of a study apart."""
        row = self.identity()
        parts = [Path(row["problem"]).stem[:40], row["digest"][:8], row["method"]]
        parts += [f"{row['bound']}-{row['limit']:g}" if row.get("limit") else row.get("bound"), row.get("enforcement")]
        parts += [f"lambda-{row['error_penalty']:g}" if "error_penalty" in row else None]
        parts += [f"seed-{row['seed']}" if "seed" in row else None]
        return "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in parts if part)

    @abc.abstractmethod
    def run(self, out: Path) -> Row:
        """The other columns of its row. `out` is the study's folder."""


class Problem(abc.ABC):
    """What a study is about. `digest`, of the content, tells it from others of its name; `seeds` is how many a study
    takes that does not say so."""

    name: str
    digest: str
    seeds: int

    def drawn(self, draw: int) -> "Problem":
        """The problem in another draw of what is random in it; this one, where nothing is."""
        del draw
        return self

    def as_printed(self) -> "Problem":
        """The problem as the paper has it; this one, where it has no other."""
        return self

    @abc.abstractmethod
    def check(self, setting: Setting) -> None:
        """Refuse a setting that there is no cell for."""

    @abc.abstractmethod
    def cell(self, setting: Setting, seed: int, efforts: Efforts) -> Cell:
        """The cell of a setting and a seed."""

    def summaries(self, setting: Setting, cells: Sequence[Cell]) -> list[Cell]:
        """What is to be computed over the seeds of a setting; by default nothing."""
        del setting, cells
        return []

    def about(self) -> Row:
        """What a page says of the problem beside the rows."""
        return {}
