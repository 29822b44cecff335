"""From a spec to its cells, and to the reasons for combinations that are left out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from reticent.errors import InputError
from reticent.problem.bound import Bound
from reticent.problem.enforcement import Mask, Penalty, keeping, named_enforcement
from reticent.study.cell import Cell, Problem, Setting
from reticent.study.spec import Grid, Spec


@dataclass(frozen=True)
class Study:
    """What is run: the cells, those that others need among them. `about` is what pages say beside the rows."""

    spec: Spec
    cells: list[Cell]
    left_out: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)


def plan(spec: Spec) -> Study:
    """All cells, one seed of everything after the other so that the picture fills early."""
    planned: dict[str, Cell] = {}
    turns: dict[str, int] = {}
    summaries: dict[str, Cell] = {}
    left_out: dict[str, None] = {}
    for given, grid in product(spec.problems, spec.grids):
        problem = given.as_printed() if grid.as_printed else given
        for setting in _settings(grid, spec.choices.violation_cost):
            if reason := _unkept(grid, setting) or _impossible(problem, setting):
                left_out[reason] = None
                continue
            own = _cells(problem, grid, setting)
            for turn, cell in enumerate(own):
                if planned.setdefault(cell.name, cell) != cell:
                    raise InputError(f"{spec.name}: two grids ask for {cell.name} with different efforts.")
                turns.setdefault(cell.name, turn)
            summaries |= {cell.name: cell for cell in problem.summaries(setting, own)}
    if not planned:
        raise InputError("There is nothing to run. " + " ".join(left_out))
    cells = sorted(planned.values(), key=lambda cell: turns[cell.name])
    needed = dict.fromkeys(need for cell in cells for need in cell.needs)
    about = {name: said for problem in spec.problems for name, said in problem.about().items()}
    return Study(spec, [*needed, *cells, *summaries.values()], list(left_out), about)


def ways(bound: Bound) -> tuple[str, ...]:
    """Names of the enforcements that a study keeps such a bound with, the usual one first."""
    if bound.number is None:
        # There is nothing to enforce; this sends readings as they are.
        return (Penalty.name,)
    # On confidence a mask forbids nearly every sensor.
    return tuple(name for name in keeping(bound) if bound.on_spending or name != Mask.name)


def _settings(grid: Grid, violation_cost: float) -> Iterator[Setting]:
    for bound in grid.bounds:
        usual = ways(bound)
        names = usual[:1] if grid.enforce is None or bound.number is None else grid.enforce
        for enforce, method, price in product(names, grid.methods, grid.error_penalty):
            yield Setting(bound, named_enforcement(enforce, violation_cost), method, price, violation_cost)


def _cells(problem: Problem, grid: Grid, setting: Setting) -> list[Cell]:
    seeds = range(problem.seeds) if grid.seeds is None else grid.seeds
    drawn = dict.fromkeys(problem.drawn(draw) for draw in grid.draws)
    return [each.cell(setting, seed, grid.efforts) for each in drawn for seed in seeds]


def _unkept(grid: Grid, setting: Setting) -> str | None:
    """Which of the enforcements asked for do not keep such a bound, if this is one of them."""
    usual = ways(setting.bound)
    if setting.enforcement.name in usual:
        return None
    others = [name for name in grid.enforce or () if name not in usual]
    return f"A bound on {setting.bound.name} is not kept by {' or '.join(others)}, but by {' or '.join(usual)}."


def _impossible(problem: Problem, setting: Setting) -> str | None:
    """Why there is no such cell, if there is none."""
    if reason := setting.method.unsuited(setting.bound, setting.enforcement):
        return reason
    try:
        problem.check(setting)
    except InputError as error:
        return f"{problem.name}: {error}"
    return None
