"""Arrows between rooms run one way: types <- problem <- belief <- process <- policy <- solve."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "reticent"
BASE = {"errors", "types", "cores", "estimate", "arrays"}
MAY_READ = {
    "errors": set(),
    "types": set(),
    "cores": set(),
    "estimate": set(),
    "arrays": {"errors"},
    "provenance": set(),
    "compile_cache": set(),
    "data": BASE,
    "problem": BASE | {"data"},
    "belief": BASE | {"problem", "data"},
    "process": BASE | {"problem", "belief", "data"},
    "policy": BASE | {"problem", "belief", "process"},
    "solve": BASE | {"problem", "belief", "process", "policy"},
    "evaluate": BASE | {"process", "policy"},
    "audit": BASE | {"problem", "belief", "data", "process", "policy", "evaluate"},
    "contracts": BASE | {"process", "policy"},
    "gym": BASE | {"problem", "belief", "data", "process", "policy"},
    "study": BASE
    | {"problem", "belief", "data", "process", "policy", "solve", "evaluate", "audit", "provenance", "compile_cache"},
    "report": BASE,
    "gateway": BASE | {"problem", "data", "policy"},
}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_arrows(path):
    if room(path) in ("cli", "__init__", "__main__"):
        return
    imports = {
        str(node.module).split(".")[1]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reticent.")
    }
    assert imports <= MAY_READ[room(path)] | {room(path)}


@pytest.mark.parametrize(
    "module",
    [
        "reticent",
        "reticent.cli",
        "reticent.policy.store",
        "reticent.problem.task",
        "reticent.solve.lattice",
        "reticent.gateway.runtime",
        "reticent.gateway.readings",
    ],
)
def test_light_modules_do_not_import_jax(module):
    code = f"import sys, {module}; sys.exit(any(name == 'jax' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_front_door_opens_every_name():
    import reticent

    assert all(getattr(reticent, name) is not None for name in reticent.__all__)
    assert set(reticent._HOME) == set(reticent.__all__)
    with pytest.raises(AttributeError):
        reticent.nothing  # noqa: B018
