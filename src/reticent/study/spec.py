"""The file that describes a sweep, and the cells that it asks for: bounds, enforcements, methods, prices and seeds."""

import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from reticent.errors import InputError
from reticent.policy.heuristics import BASELINES
from reticent.problem.bound import Confidence, ExpectedInformation, Information
from reticent.problem.enforcement import ENFORCEMENTS, Mask, Penalty, keeping, named_enforcement
from reticent.problem.model import read_problem
from reticent.study.cell import (
    AGENT,
    BOUNDS,
    NO_LIMIT,
    SYNTHETIC,
    TUNING_SEED,
    VALUE_ITERATION,
    VALUE_KERNELS,
    Cell,
    Kind,
    Problem,
    agent_steps,
)

METHODS = {"a2c": AGENT, "value-iteration": VALUE_ITERATION, "value-kernels": VALUE_KERNELS}
METHODS |= {baseline: baseline for baseline in BASELINES}
RECIPES = ("default", "paper")
# How a bound of each kind can be kept, whatever its limit is.
WAYS: dict[Kind, tuple[str, ...]] = {
    # In a sweep a mask is for information: on confidence it forbids nearly every sensor.
    "confidence": tuple(name for name in keeping(Confidence(1.0)) if name != Mask.name),
    "information": keeping(Information(1.0)),
    "expected": keeping(ExpectedInformation(1.0)),
    # There is nothing to enforce; this sends readings as they are.
    "none": (Penalty.name,),
}
# Keys of the file that give bounds, and what they bound.
BOUND_KEYS: dict[str, Kind] = {
    "confidence": "confidence",
    "information": "information",
    "expected_information": "expected",
}


@dataclass(frozen=True)
class Spec:
    """What a sweep is to run. Without `enforce` every bound is kept in its usual way; `recipes` are the agent's."""

    problems: tuple[Problem, ...]
    bounds: tuple[tuple[Kind, float], ...]
    enforce: tuple[str, ...] | None
    methods: tuple[str, ...]
    recipes: tuple[Literal["default", "paper"], ...]
    error_penalty: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: int
    rounds: int
    episodes: int


def read_spec(path: Path) -> Spec:
    """The sweep that a TOML file describes. Problem files are looked for beside it."""
    table = _toml(path)
    if unknown := [key for key in table if key not in _KEYS]:
        raise InputError(f"{path.name} has the unknown key {unknown[0]!r}; a sweep may have {', '.join(_KEYS)}.")
    for key, value in table.items():
        expected, fits = _KEYS[key]
        if not fits(value):
            raise InputError(f"{path.name}: {key} must be {expected}, but is {value!r}.")
        if isinstance(value, list) and (twice := _twice(value)) is not None:
            raise InputError(f"{path.name}: {key} has {twice} twice.")
    if "problems" not in table:
        raise InputError(f'{path.name} lacks problems: a list of problem files, or ["synthetic"].')
    bounds: list[tuple[Kind, float]] = [
        (kind, float(limit)) for key, kind in BOUND_KEYS.items() for limit in table.get(key, [])
    ]
    if table.get("unbounded"):
        bounds.append(("none", NO_LIMIT))
    if not bounds:
        raise InputError(
            f"{path.name} has no bound: give confidence, information or expected_information, or unbounded = true."
        )
    seeds = table.get("seeds", 1)
    return Spec(
        problems=tuple(_problems(path, table["problems"])),
        bounds=tuple(bounds),
        enforce=tuple(table["enforce"]) if "enforce" in table else None,
        methods=tuple(table.get("methods", ["a2c"])),
        recipes=tuple(table.get("recipes", ["default"])),
        error_penalty=tuple(float(price) for price in table.get("error_penalty", [50.0])),
        seeds=tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds),
        steps=table.get("steps", 1_000_000),
        rounds=table.get("rounds", 300),
        episodes=table.get("episodes", 100_000),
    )


def plan(spec: Spec) -> tuple[list[Cell], list[str]]:
    """All cells, one seed of everything after the other so that the picture fills early; and what was left out."""
    cells, left_out = [], {}
    for seed, problem in product(spec.seeds, spec.problems):
        for (kind, limit), enforce, method, penalty in _combinations(spec):
            reason = _unkept(spec, kind, enforce) or _impossible(problem, kind, limit, enforce, method)
            if reason:
                left_out[reason] = None
                continue
            for recipe in spec.recipes if method == "a2c" else ("default",):
                steps = agent_steps(spec.steps, recipe)
                effort = {"a2c": steps, "value-iteration": spec.rounds, "value-kernels": spec.rounds}
                sizes = (effort.get(method, 0), spec.episodes)
                cells.append(Cell(METHODS[method], kind, limit, enforce, penalty, seed, *sizes, recipe, problem))
    if not cells:
        raise InputError("There is nothing to run. " + " ".join(left_out))
    return cells, list(left_out)


def _combinations(spec: Spec) -> Iterator[tuple[tuple[Kind, float], str, str, float]]:
    for bound in spec.bounds:
        ways = WAYS["none"] if bound[0] == "none" else spec.enforce or WAYS[bound[0]][:1]
        yield from ((bound, *rest) for rest in product(ways, spec.methods, spec.error_penalty))


def _unkept(spec: Spec, kind: Kind, enforce: str) -> str | None:
    """Which of the enforcements asked for do not keep such a bound, if this is one of them."""
    if enforce in WAYS[kind]:
        return None
    what = {"confidence": "confidence", "information": "information", "expected": "expected information"}[kind]
    others = [each for each in spec.enforce or () if each not in WAYS[kind]]
    return f"A bound on {what} is not kept by {' or '.join(others)}, but by {' or '.join(WAYS[kind])}."


def _impossible(problem: Problem, kind: Kind, limit: float, enforce: str, method: str) -> str | None:
    """Why there is no such cell, if there is none."""
    enforcement = named_enforcement(enforce)
    if not enforcement.releases and method != "value-iteration":
        return f"Answers need the method value-iteration, not {method}."
    if enforcement.priced and method in BASELINES:
        return f"A multiplier is learned, which {method} does not do."
    if method == "value-kernels" and not enforcement.replaces:
        replacing = " and ".join(name for name, each in ENFORCEMENTS.items() if each.replaces)
        return f"Value kernels go with {replacing}, not with {enforce}."
    if kind == "none":
        return None
    try:
        BOUNDS[kind](limit).check(problem.model.prior)
    except InputError as error:
        return f"{problem.name}: {error}"
    return None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read the sweep file {str(path)!r}: {error.strerror or error}.") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not TOML that can be read: {error}.") from error
    except RecursionError as error:
        raise InputError(f"The sweep file {str(path)!r} is nested too deeply to be read. Write it flatter.") from error


def _problems(path: Path, names: list[str]) -> Iterator[Problem]:
    """The problems by the names that the file gives them; no two may hold the same."""
    seen: dict[str, str] = {}
    for name in names:
        problem = SYNTHETIC if name == "synthetic" else Problem.of(name, read_problem(path.parent / name))
        if problem.digest in seen:
            raise InputError(f"{path.name}: the problems {seen[problem.digest]!r} and {name!r} are the same.")
        seen[problem.digest] = name
        yield problem


def _twice(values: list[Any]) -> str | None:
    """A value that is there twice, as names of cells show it."""
    shown = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return next((value for place, value in enumerate(shown) if value in shown[:place]), None)


def _texts(*known: str) -> tuple[str, Callable[[Any], bool]]:
    expected = f"a list of {', '.join(map(repr, known))}" if known else "a list of texts"

    def fits(value: Any) -> bool:
        texts = isinstance(value, list) and value and all(isinstance(each, str) and each for each in value)
        return bool(texts) and (not known or set(value) <= set(known))

    return expected, fits


def _numbers(most: float = math.inf) -> tuple[str, Callable[[Any], bool]]:
    def fits(value: Any) -> bool:
        numbers = isinstance(value, list) and bool(value) and all(_number(x) for x in value)
        return numbers and all(0 < x < math.inf and x <= most for x in value)

    above = "a list of numbers above 0"
    return above if most == math.inf else f"{above} and at most {most:g} (unbounded = true is no bound)", fits


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any, least: int, most: int | None = None) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and least <= value and (most is None or value <= most)


def _count(least: int) -> tuple[str, Callable[[Any], bool]]:
    return f"a whole number, at least {least}", lambda value: _whole(value, least)


def _seeds(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_whole(each, 0, TUNING_SEED - 1) for each in value)
    return _whole(value, 1, TUNING_SEED)


# What each key must be, in words, and whether a value is that.
_KEYS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "problems": _texts(),
    **{key: _numbers(1.0 if key == "confidence" else math.inf) for key in BOUND_KEYS},
    "unbounded": ("true or false", lambda value: isinstance(value, bool)),
    "enforce": _texts(*ENFORCEMENTS),
    "methods": _texts(*METHODS),
    "recipes": _texts(*RECIPES),
    "error_penalty": _numbers(),
    # From there on seeds are for tuning and evaluation.
    "seeds": (f"a number of seeds, or a list of seeds from 0 to {TUNING_SEED - 1}", _seeds),
    "steps": _count(1),
    "rounds": _count(1),
    "episodes": _count(2),
}
