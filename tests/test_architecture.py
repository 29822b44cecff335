"""Arrows between rooms run one way: types <- problem <- belief <- process <- policy <- evaluate <- solve."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import reticent

SOURCE = Path(__file__).parents[1] / "src" / "reticent"
BASE = {"errors", "types"}
MAY_READ = {
    "errors": set(),
    "types": set(),
    "data": BASE,
    "problem": BASE | {"data"},
    "belief": BASE | {"problem", "data"},
    "fit": BASE | {"problem", "data"},
    "guard": BASE | {"problem", "belief"},
    "process": BASE | {"problem", "belief", "guard", "data"},
    "policy": BASE | {"problem", "belief", "guard", "process"},
    "evaluate": BASE | {"belief", "process", "policy"},
    "solve": BASE | {"problem", "belief", "guard", "process", "policy", "evaluate"},
    "audit": BASE | {"problem", "belief", "data", "fit", "process", "policy", "evaluate"},
    "gym": BASE | {"problem", "belief", "data", "fit", "process", "policy"},
    # Reads all that is below the command line.
    "solution": BASE
    | {"problem", "belief", "data", "fit", "process", "policy", "evaluate", "solve", "audit", "study", "report"},
    "study": BASE | {"problem", "belief", "data", "fit", "process", "policy", "solve", "evaluate", "audit"},
    "demo": BASE | {"problem", "belief", "guard", "data", "process", "policy", "evaluate", "audit"},
    "report": BASE,
    "gateway": BASE | {"problem", "belief", "guard", "data", "policy", "evaluate"},
}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_arrows(path):
    if room(path) in ("cli", "__init__", "__main__"):
        return
    imports = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent."):
            imports.add(str(node.module).split(".")[1])
        if isinstance(node, ast.ImportFrom) and node.module == "reticent":
            # The front door leads to the room of each name; what is no name of it is a room itself.
            imports |= {reticent._HOME.get(alias.name, alias.name).split(".")[0] for alias in node.names}
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "reticent" for alias in node.names), "Import names, not modules."
    assert imports - {"__version__"} <= MAY_READ[room(path)] | {room(path)}


@pytest.mark.parametrize(
    "module",
    [
        "reticent",
        "reticent.cli",
        "reticent.policy.store",
        "reticent.problem.task",
        "reticent.solve.lattice",
        "reticent.guard.ongoing",
        "reticent.guard.rules",
        "reticent.policy.value",
        "reticent.gateway.runtime",
        "reticent.gateway.readings",
    ],
)
def test_light_modules_do_not_import_jax(module):
    code = f"import sys, {module}; sys.exit(any(name == 'jax' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_front_door_opens_every_name():
    assert all(getattr(reticent, name) is not None for name in reticent.__all__)
    assert set(reticent._HOME) == set(reticent.__all__)
    with pytest.raises(AttributeError):
        reticent.nothing  # noqa: B018


KINDS = {"bound", "enforce", "enforcement"}
# Where words become types: files, command line, study and environment options.
PARSES = {"problem/enforcement.py", "problem/task.py", "study/spec.py", "gym/processes.py"}


def _kind_of(node: ast.expr) -> bool:
    """Whether this is something called a bound or an enforcement."""
    return getattr(node, "attr", getattr(node, "id", None)) in KINDS


def kinds_asked_for(text: str) -> list[int]:
    """Lines that ask for a kind of bound or enforcement by name or class."""
    asked = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and _kind_of(node.left):
            others = [other.value if isinstance(other, ast.Constant) else other for other in node.comparators]
            asked += [node.lineno] if any(isinstance(other, str | ast.Tuple) for other in others) else []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance" and _kind_of(node.args[0]):
            asked.append(node.lineno)
        if isinstance(node, ast.Match) and _kind_of(node.subject):
            asked.append(node.lineno)
    return asked


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_types_carry_the_differences_between_bounds_and_enforcements(path):
    if room(path) not in ("cli", "report") and str(path.relative_to(SOURCE)) not in PARSES:
        assert kinds_asked_for(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        'process.enforce == "penalty"',
        'task.enforcement.name\nenforce in ("mask", "paper")',
        "isinstance(task.bound, Confidence)",
        "match bound:\n    case _:\n        pass",
    ],
)
def test_asking_for_a_kind_is_seen(text):
    assert kinds_asked_for(text)
