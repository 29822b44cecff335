"""The page of benchmarks says what the raw files say, and marks what is older than the code it measures."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARK = "**Older than the code it measures.**"


def page(folder, *words):
    command = [sys.executable, "-m", "benchmarks.page", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def git(folder, *words):
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    found = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return found.stdout.strip()


def test_the_page_is_what_the_generator_writes_and_every_benchmark_says_what_it_measures():
    found = page(ROOT, "--check")
    assert found.returncode == 0, found.stderr


@pytest.fixture
def copy(tmp_path):
    """The benchmarks in a repository of their own, beside code without history; the lattice was measured there."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("benchmarks", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "measured")
    change(tmp_path / "benchmarks" / "results" / "lattice.json", commit=git(tmp_path, "rev-parse", "HEAD"))
    return tmp_path


def change(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def section(folder, title):
    assert page(folder).returncode == 0
    return (folder / "benchmarks" / "README.md").read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_numbers_are_marked_once_a_commit_touches_what_they_measure(copy):
    assert MARK not in section(copy, "Exact lattice solver")
    (copy / "src" / "reticent" / "py.typed").write_text("another file\n")
    git(copy, "commit", "-am", "elsewhere")
    assert MARK not in section(copy, "Exact lattice solver")
    (copy / "src" / "reticent" / "solve" / "lattice.py").write_text("'''Another solver.'''\n")
    git(copy, "commit", "-am", "the solver")
    assert MARK in section(copy, "Exact lattice solver")


def test_of_a_commit_that_is_not_there_the_age_is_unknown(copy):
    change(copy / "benchmarks" / "results" / "lattice.json", commit="0" * 40)
    assert "how old the numbers are is unknown" in section(copy, "Exact lattice solver")


def test_the_check_sees_numbers_that_are_not_on_the_page(copy):
    assert page(copy).returncode == 0
    assert page(copy, "--check").returncode == 0
    change(copy / "benchmarks" / "results" / "lattice.json", numbers=[{"problem": "another", "lower": 1.0}])
    found = page(copy, "--check")
    assert found.returncode == 1
    assert "README.md is not what the raw files say" in found.stderr


def test_the_check_sees_a_page_of_the_paper_that_its_raw_numbers_do_not_say(copy):
    assert page(copy).returncode == 0
    paper = copy / "docs" / "paper.md"
    assert "**contradicted** |" in paper.read_text()
    paper.write_text(paper.read_text().replace("contradicted", "reproduced"))
    found = page(copy, "--check")
    assert found.returncode == 1
    assert "docs/paper.md is not what the raw files say" in found.stderr


def test_the_check_sees_what_is_measured_no_longer(copy):
    (copy / "src" / "reticent" / "solve" / "lattice.py").unlink()
    assert "lattice does not say what it measures, or it is gone" in page(copy, "--check").stderr


@pytest.mark.parametrize(("room", "other"), [("tests", "benchmarks"), ("benchmarks", "tests")])
def test_tests_and_benchmarks_do_not_import_each_other(room, other):
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert other not in {name.split(".")[0] for name in names}, path
