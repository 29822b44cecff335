"""The file that describes a study: problems, and grids of bounds, enforcements, methods, prices and seeds.

The keys of a grid may stand at the top of the file, for all its grids, or in `[[grid]]`, for one.
"""

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from reticent.errors import InputError
from reticent.problem.bound import Bound, Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import ENFORCEMENTS
from reticent.problem.synthetic import Z_RANGE
from reticent.study.cell import Efforts, Problem
from reticent.study.choices import USUAL_CHOICES, Choices
from reticent.study.finite import problems_of
from reticent.study.method import TUNING_SEED, Method
from reticent.study.methods import METHODS
from reticent.study.trained import paper_agent

SHIPPED = Path(__file__).parent / "specs"
PAGES = ("sweep", "synthetic", "recordings")
# Keys of the file that give bounds.
BOUNDS: dict[str, Callable[[float], Bound]] = {
    "confidence": Confidence,
    "information": Information,
    "expected_information": ExpectedInformation,
}


@dataclass(frozen=True)
class Grid:
    """Every combination of these. Without `enforce` each bound is kept in its usual way, without `seeds` the problem
    says how many there are. `draws` are those of a random problem; `as_printed` takes a problem as the paper has it."""

    bounds: tuple[Bound, ...]
    enforce: tuple[str, ...] | None
    methods: tuple[Method, ...]
    error_penalty: tuple[float, ...]
    seeds: tuple[int, ...] | None
    efforts: Efforts
    draws: tuple[int, ...] = (0,)
    as_printed: bool = False


@dataclass(frozen=True)
class Spec:
    """What is to be run, and the kind of page that shows it; `text` is the file's."""

    name: str
    title: str
    page: str
    text: str
    problems: tuple[Problem, ...]
    grids: tuple[Grid, ...]
    choices: Choices = USUAL_CHOICES


def read_spec(path: Path, problem: Problem | None = None, given: Mapping[str, Any] | None = None) -> Spec:
    """The study that a TOML file describes. Problem files are looked for beside it, unless `problem` is what it is
    about. `given` replaces what stands at the top of the file; where a grid has episodes of its own, they keep their
    share."""
    text, table = _read(path)
    table = _checked(path.name, table, _KEYS)
    numbered = enumerate(table.get("grid", []), 1)
    grids = [_checked(f"{path.name}, grid {number}", each, _OF_GRID) for number, each in numbered]
    table, grids = _with_efforts(table, grids, given or {})
    if problem is None and "problems" not in table:
        raise InputError(f'{path.name} lacks problems: a list of problem files, or ["synthetic"].')
    ranges = [(float(low), float(high)) for low, high in table.get("z_ranges", [Z_RANGE])]
    problems = tuple(_problems(path, table["problems"], ranges)) if problem is None else (problem,)
    choices = _choices(path.name, table.get("choices", {}))
    shared = {key: value for key, value in table.items() if key in _OF_GRID}
    return Spec(
        path.name,
        table.get("title", f"Sweep {path.stem}" if problem is None else f"The study on {problem.name}"),
        table.get("page", PAGES[0]),
        text,
        problems,
        tuple(_grid(path.name, {**shared, **own}, choices) for own in grids or [{}]),
        choices,
    )


def _choices(name: str, table: dict[str, Any]) -> Choices:
    """What the paper leaves open, as the file has it."""
    known = {each.name: each.type for each in fields(Choices)}
    if unknown := sorted(set(table) - set(known)):
        raise InputError(f"{name}, choices has the unknown key {unknown[0]!r}; it may have {', '.join(sorted(known))}.")
    numbers: dict[str, Any] = {key: float(x) if known[key] is float else x for key, x in table.items()}
    return Choices(**numbers)


def _grid(name: str, table: dict[str, Any], choices: Choices) -> Grid:
    bounds = [bound(float(limit)) for key, bound in BOUNDS.items() for limit in table.get(key, [])]
    if table.get("unbounded"):
        bounds.append(Unbounded())
    if not bounds:
        raise InputError(
            f"{name} has no bound: give confidence, information or expected_information, or unbounded = true."
        )
    seeds, draws, printed = table.get("seeds"), table.get("draws", 1), paper_agent(choices)
    methods = {**METHODS, printed.name: printed}
    return Grid(
        bounds=tuple(bounds),
        enforce=tuple(table["enforce"]) if "enforce" in table else None,
        methods=tuple(methods[method] for method in table.get("methods", ["ppo"])),
        error_penalty=tuple(float(price) for price in table.get("error_penalty", [50.0])),
        seeds=tuple(range(seeds)) if isinstance(seeds, int) else seeds and tuple(seeds),
        efforts=Efforts(
            table.get("steps", 1_000_000),
            table.get("rounds", 300),
            table.get("episodes", 100_000),
        ),
        draws=tuple(range(draws)) if isinstance(draws, int) else tuple(draws),
        as_printed=table.get("as_printed", False),
    )


def _with_efforts(
    table: dict[str, Any], grids: list[dict[str, Any]], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if "episodes" in given:
        usual = table["episodes"]
        shares = [{"episodes": max(2, given["episodes"] * each.get("episodes", usual) // usual)} for each in grids]
        grids = [{**each, **share} for each, share in zip(grids, shares, strict=True)]
    return {**table, **given}, grids


def _checked(name: str, table: dict[str, Any], keys: dict[str, "Key"]) -> dict[str, Any]:
    """The table, if every key is known and holds what it must."""
    if "recipes" in table:
        raise InputError(
            f'{name}: recipes is no key any more. Write methods = ["ppo"] for the recipe "default" of a2c, and '
            'methods = ["a2c"] for the recipe "paper".'
        )
    if unknown := [key for key in table if key not in keys]:
        raise InputError(f"{name} has the unknown key {unknown[0]!r}; a sweep may have {', '.join(keys)}.")
    for key, value in table.items():
        expected, fits = keys[key]
        if not fits(value):
            raise InputError(f"{name}: {key} must be {expected}, but is {value!r}.")
        if key not in ("grid", "z_ranges") and isinstance(value, list) and (twice := _twice(value)) is not None:
            raise InputError(f"{name}: {key} has {twice} twice.")
    return table


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """A TOML file, as text and as a table."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise InputError(f"Cannot read the sweep file {str(path)!r}: {error.strerror or error}.") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not TOML that can be read: {error}.") from error
    except RecursionError as error:
        raise InputError(f"The sweep file {str(path)!r} is nested too deeply to be read. Write it flatter.") from error


def _problems(path: Path, names: list[str], z_ranges: list[tuple[float, float]]) -> Iterator[Problem]:
    """The problems by the names that the file gives them, the synthetic one in each range; no two may be the same."""
    seen: dict[str, str] = {}
    for name in names:
        for problem in problems_of(path, name, z_ranges):
            if problem.digest in seen:
                raise InputError(f"{path.name}: the problems {seen[problem.digest]!r} and {name!r} are the same.")
            seen[problem.digest] = name
            yield problem


def _twice(values: list[Any]) -> str | None:
    """A value that is there twice, as names of cells show it."""
    shown = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return next((value for place, value in enumerate(shown) if value in shown[:place]), None)


# What a key must be, in words, and whether a value is that.
Key = tuple[str, Callable[[Any], bool]]


def _texts(*known: str) -> Key:
    expected = f"a list of {', '.join(map(repr, known))}" if known else "a list of texts"

    def fits(value: Any) -> bool:
        texts = isinstance(value, list) and value and all(isinstance(each, str) and each for each in value)
        return bool(texts) and (not known or set(value) <= set(known))

    return expected, fits


def _numbers(most: float = math.inf) -> Key:
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


def _count(least: int) -> Key:
    return f"a whole number, at least {least}", lambda value: _whole(value, least)


def _ranges(value: Any) -> bool:
    pairs = isinstance(value, list) and bool(value) and all(isinstance(each, list) and len(each) == 2 for each in value)
    return pairs and all(_number(end) for each in value for end in each)


def _seeds(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_whole(each, 0, TUNING_SEED - 1) for each in value)
    return _whole(value, 1, TUNING_SEED)


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


_OF_GRID: dict[str, Key] = {
    **{key: _numbers(1.0 if key == "confidence" else math.inf) for key in BOUNDS},
    "unbounded": ("true or false", lambda value: isinstance(value, bool)),
    "enforce": _texts(*ENFORCEMENTS),
    "methods": _texts(*METHODS),
    "error_penalty": _numbers(),
    # From there on seeds are for tuning and evaluation.
    "seeds": (f"a number of seeds, or a list of seeds from 0 to {TUNING_SEED - 1}", _seeds),
    "draws": (f"a number of draws, or a list of draws from 0 to {TUNING_SEED - 1}", _seeds),
    "as_printed": ("true or false", lambda value: isinstance(value, bool)),
    "steps": _count(1),
    "rounds": _count(1),
    "episodes": _count(2),
}
_KEYS: dict[str, Key] = {
    "problems": _texts(),
    **_OF_GRID,
    "grid": ("one or more tables [[grid]]", _tables),
    "choices": ("a table of numbers", lambda value: isinstance(value, dict) and all(map(_number, value.values()))),
    "z_ranges": ("a list of ranges [lowest, highest]", _ranges),
    "title": ("a text", lambda value: isinstance(value, str)),
    "page": (f"one of {', '.join(map(repr, PAGES))}", lambda value: value in PAGES),
}
