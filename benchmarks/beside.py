"""This version beside 0.4.0, in turn, in one run: how long each takes for the same.

0.4.0 comes from its commit in the history of this repository and runs with the same libraries.
"""

import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.catalogue import Measured, Rows
from benchmarks.record import REPOSITORY

# The last commit of 0.4.0.
COMMIT = "71fa5fd"
PROGRAMS = Path(__file__).parent / "programs"
RUNS = 3


@dataclass(frozen=True)
class Version:
    """One of the two: its name, where its source and its benchmarks lie, the program that solves a file of programs,
    and the task and process of `scale` in its words."""

    name: str
    folder: Path
    solver: Path
    played: str

    def python(self, *words: str, succeeds: tuple[int, ...] = (0,), **environment: str) -> str:
        """What a Python program of this version prints."""
        place = {"PYTHONPATH": f"{self.folder / 'src'}:{self.folder}", **environment}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env={**os.environ, **place}, stdout=subprocess.PIPE, text=True
        )
        if done.returncode not in succeeds:
            raise RuntimeError(f"{self.name} ended with {done.returncode}: {' '.join(words)}")
        return done.stdout


@contextmanager
def both() -> Iterator[tuple[Version, Version]]:
    """0.4.0, in a folder that is gone afterwards, and this version."""
    with tempfile.TemporaryDirectory() as folder:
        # Fails where the history is not all there.
        archive = subprocess.run(["git", "archive", COMMIT], cwd=REPOSITORY, stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        then = "ReleaseProcess(Task(model, ConfidenceBound(0.9), enforce='coarsen', horizon=10))"
        now = "Process.of(Task(model, Confidence(0.9), enforcement=Coarsen(), horizon=10))"
        yield (
            Version("0.4.0", Path(folder), PROGRAMS / "then.py", then),
            Version("now", REPOSITORY, PROGRAMS / "now.py", now),
        )


def programs() -> Measured:
    """Programs of the guard per second: the interior point of 0.4.0, the pivots, and HiGHS one by one."""
    rows = []
    with both() as (then, now), tempfile.TemporaryDirectory() as folder:
        for kind in ("coarsen", "withhold", "value"):
            file = str(Path(folder) / f"{kind}.npz")
            optima = json.loads(now.python("-m", "benchmarks.programs.make", kind, file))
            rows += [
                {
                    "programs": kind,
                    "version": version.name,
                    "per_second": 1 / min(one["seconds"] for one in found),
                    "mean_loss": found[0]["mean_loss"],
                    "largest_loss": found[0]["largest_loss"],
                    "highs_per_second": 1 / optima["seconds"],
                }
                for version, found in _in_turn((then, now), _programs, file)
            ]
    notes = [
        "Batches of 3,072 programs of the synthetic problem at random beliefs, L_B 0.8, all at once, the quickest of "
        f"{RUNS} runs in turn. Loss: what the kernels cost above HiGHS's optimum, a probability; of value kernels a "
        "share of the error penalty. Every kernel is checked for safety afterwards, whoever found it."
    ]
    return _with_ratios(rows, "per_second", "programs"), notes


def _programs(version: Version, file: str) -> dict[str, float]:
    return json.loads(version.python(str(version.solver), file))


def releases() -> Measured:
    """Releases per second under coarsening, a random policy compiled, on problems of several sizes."""
    shapes = [
        {"secrets": secrets, "sensors": sensors, "symbols": symbols}
        for secrets, sensors, symbols in ((3, 3, 50), (9, 3, 50), (3, 16, 50), (3, 3, 800))
    ]
    rows = []
    with both() as versions:
        for shape in shapes:
            for version, found in _in_turn(versions, _releases, json.dumps(shape)):
                row = {"pairs": shape["secrets"] ** 2, "sensors": shape["sensors"], "symbols": shape["symbols"]}
                rows.append({**row, "version": version.name, "releases_per_second": max(found)})
    notes = [
        "Random problems as of `scale`, a random policy that is sure at 0.9, L_B 0.9, 256 lanes, without compilation; "
        f"the quickest of {RUNS} runs in turn."
    ]
    return _with_ratios(rows, "releases_per_second", "pairs", "sensors", "symbols"), notes


PLAY = (
    "import json, sys; from benchmarks.scale import *; from benchmarks.scale import _model, _play; "
    "model = _model(**json.loads(sys.argv[1])); print(_play({}, 3))"
)


def _releases(version: Version, shape: str) -> float:
    return float(version.python("-c", PLAY.format(version.played), shape))


def gateway() -> Measured:
    """One decision of the gateway with its release, in a process that never loads JAX."""
    rows: Rows = []
    with both() as versions, tempfile.TemporaryDirectory() as folder:
        for version in versions:
            version.python("-c", POLICIES, folder, version.name)
        for policy, enforce in (("actor", "mask"), ("actor", "coarsen"), ("label", "coarsen"), ("value", "coarsen")):
            for version, found in _in_turn(versions, _decides, folder, policy, enforce):
                row = {"policy": policy, "enforcement": enforce, "version": version.name}
                rows.append({**row, **{name: min(each[name] for each in found) for name in ("p50", "p99", "seconds")}})
    notes = [
        "Microseconds of deciding, sending and updating the belief; the quickest of "
        f"{RUNS} runs in turn, one thread. Seconds: imports and loading the policy. Synthetic problem, L_B 0.8 or 1 "
        "bit; fresh networks of the usual widths: how well they choose does not matter here. Value kernels take "
        "tangents once in 0.4.0 and twice now."
    ]
    return _with_ratios(rows, "p50", "policy", "enforcement", less=True), notes


POLICIES = (
    "import sys; from pathlib import Path; from benchmarks.gateway_decisions import _policies; "
    "[file.save(Path(sys.argv[1]) / f'{sys.argv[2]} {name} {enforce}.safetensors') for name, enforce, file in "
    "_policies()]"
)
NAMES = {"actor": "actor, rich", "label": "lookahead, label kernels", "value": "lookahead, value kernels"}


def _decides(version: Version, folder: str, policy: str, enforce: str) -> dict[str, float]:
    file = Path(folder) / f"{version.name} {NAMES[policy]} {enforce}.safetensors"
    steps = "20000" if enforce == "mask" else "1000"
    words = ("-m", "benchmarks.gateway_decisions", str(file), steps)
    return json.loads(version.python(*words, OPENBLAS_NUM_THREADS="1"))


def commands() -> Measured:
    """What people wait for at the command line."""
    rows: Rows = []
    with both() as versions, tempfile.TemporaryDirectory() as folder:
        for asked in ASKED:
            for version in versions[asked.only_now :]:
                rows.append(asked.measured(version, folder))
                print(rows[-1], file=sys.stderr, flush=True)
    notes = [
        "The synthetic problem, from the command line, in turn; start is in it and so is compilation, as far as the "
        "cache of an earlier run does not hold the programs. Each command once. CPU seconds are of all cores. Costs "
        "are of 100,000 fresh episodes."
    ]
    return _with_ratios(rows, "seconds", "command", less=True), notes


@dataclass(frozen=True)
class Asked:
    """A command of both versions; `{0}` in its words is the folder for its files. `keeps` are fields of its answer."""

    name: str
    words: str
    keeps: tuple[str, ...] = ()
    only_now: bool = False

    def measured(self, version: Version, folder: str) -> dict[str, Any]:
        """One row."""
        words = self.words.format(Path(folder) / version.name.replace(".", "-")).split(" ")
        before, started = _spent(), time.perf_counter()
        # 3 says that a check of an audit failed, which is what that audit has found.
        said = json.loads(version.python("-m", "reticent", "--quiet", *words, "--json", succeeds=(0, 3)))
        took = {"seconds": time.perf_counter() - started, "cpu_seconds": _spent() - before}
        return {
            "command": self.name,
            "version": version.name,
            **took,
            **{name: _kept(said, name) for name in self.keeps},
        }


def _made(name: str, file: str, words: str, only_now: bool = False) -> list[Asked]:
    """A policy is trained, then evaluated."""
    return [
        Asked(f"train, {name}", f"train synthetic {words} --out {{0}}-{file}.safetensors", (), only_now),
        Asked(f"evaluate, {name}", f"evaluate {{0}}-{file}.safetensors", ("cost",), only_now),
    ]


def _value_kernels(limit: str) -> list[Asked]:
    words = f"{ITERATION} {limit} --enforce coarsen --kernels value"
    return _made(f"value kernels {limit}", f"kernels-{limit[2:]}", words, only_now=True)


LIMITS = ("0.6", "0.7", "0.8", "0.9", "0.99")
ITERATION = "--method value-iteration --confidence"
ASKED = (
    *_made("coarsen .8", "coarsen", f"{ITERATION} 0.8 --enforce coarsen"),
    Asked("audit of that policy", "audit {0}-coarsen.safetensors --out {0}-audit", ("verdict",)),
    Asked("5,000 traces of it", "evaluate {0}-coarsen.safetensors --episodes 5000 --traces {0}-traces.parquet"),
    Asked("audit of these traces", "audit --traces {0}-traces.parquet --out {0}-foreign", ("verdict",)),
    *_made("answer .6", "answer", f"{ITERATION} 0.6 --enforce answer"),
    *(
        Asked(f"certify, {bound}", f"certify synthetic {bound}", ("gap", "lower", "upper"))
        for bound in ("--confidence 0.8", "--confidence 0.99", "--unbounded")
    ),
    *_made("withhold .6", "withhold", f"{ITERATION} 0.6 --enforce withhold", only_now=True),
    *(asked for limit in LIMITS for asked in _value_kernels(limit)),
)


def _kept(said: dict[str, Any], name: str) -> Any:
    """A field of an answer: the number of an estimate, the first sentence of a verdict."""
    value = said[name]
    if isinstance(value, dict):
        return value["value"]
    return value[0] if isinstance(value, list) else value


def _in_turn(versions: tuple[Version, ...], measure: Callable[..., Any], *what: str) -> list[tuple[Version, list[Any]]]:
    """What each version says to the same question, several times in turn."""
    found: list[tuple[Version, list[Any]]] = [(version, []) for version in versions]
    for _ in range(RUNS):
        for version, said in found:
            said.append(measure(version, *what))
    return found


def _with_ratios(rows: Rows, number: str, *same: str, less: bool = False) -> Rows:
    """The rows, and how many times better this version is than 0.4.0 where `same` agree."""
    then = {tuple(row[name] for name in same): row[number] for row in rows if row["version"] == "0.4.0"}
    for row in rows:
        before = then.get(tuple(row[name] for name in same))
        if before is not None and row["version"] != "0.4.0":
            row["times_better"] = before / row[number] if less else row[number] / before
    return rows


def _spent() -> float:
    """CPU seconds of all programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
