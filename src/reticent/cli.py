"""The command line: one frozen dataclass per command, one help line per field.

Results go to stdout (with --json, one object), progress and messages to stderr. Bad input ends with one sentence and
exit code 2. Heavy imports stay inside the commands, so that --help is quick.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import tyro
from tyro.conf import Positional, arg

from reticent.errors import InputError

# A killed training loses at most this much.
SECONDS_BETWEEN_SAVES = 5.0

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from reticent.audit.metrics import Evaluation
    from reticent.problem.model import ReleaseModel
    from reticent.problem.task import Enforcement, Task
    from reticent.process.release import ReleaseProcess
    from reticent.study.synthetic import Setting


@dataclass(frozen=True)
class Bounds:
    """What must not become known: give one of the two."""

    confidence: float | None = None
    """Limit L_B on the provider's confidence in any secret; anything above 1 means no bound."""
    information: float | None = None
    """Limit L_MI on the information about the secret along every path, in bits."""


@dataclass(frozen=True)
class Prices:
    """What is wanted."""

    time_cost: float = 1.0
    """Price C_T of one release."""
    error_penalty: float = 50.0
    """Price lambda of a wrong guess of the useful value at the stop."""
    violation_cost: float = 50.0
    """Price C_B of crossing the confidence bound; `inf` means inadmissible."""


@dataclass(frozen=True)
class Demo:
    """Run the paper's synthetic study in a quick setting: about five minutes on two cores."""

    out: Path = Path("reticent-demo")
    """Folder for the report, figures and results; finished parts found there are not run again."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Train, evaluate, draw."""
        from reticent.study.synthetic import LOOKAHEAD, QUICK_GUARANTEES, Setting

        setting = Setting(1, 250_000, 20_000, (LOOKAHEAD, "random sensor"), QUICK_GUARANTEES)
        _study("The synthetic study, quick setting", setting, self.out, self.json)


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a study of the paper: figures, tables and a self-contained report."""

    study: Positional[Literal["synthetic"]]
    """Which study."""
    out: Path = Path("reticent-synthetic")
    """Folder for the report, figures and results; finished parts found there are not run again."""
    seeds: int = 3
    """Training runs per bound."""
    steps: int = 1_000_000
    """Environment steps per training run."""
    episodes: int = 100_000
    """Episodes per evaluation."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Train, evaluate, draw."""
        from reticent.study.synthetic import BASELINES, GUARANTEES, Setting

        for name in ("seeds", "steps", "episodes"):
            if getattr(self, name) < (2 if name == "episodes" else 1):
                raise InputError(f"--{name} is {getattr(self, name)}, which is too few.")
        setting = Setting(self.seeds, self.steps, self.episodes, BASELINES, GUARANTEES)
        _study("The synthetic study of the paper", setting, self.out, self.json)


@dataclass(frozen=True)
class Solve:
    """Bracket the optimal cost of a small problem exactly."""

    problem: Annotated[Positional[str], arg(metavar="PROBLEM")]
    """A JSON problem file, or `synthetic`."""
    method: Literal["lattice"] = "lattice"
    """How to solve it."""
    bound: Annotated[Bounds, arg(name="")] = field(default_factory=Bounds)
    prices: Annotated[Prices, arg(name="")] = field(default_factory=Prices)
    horizon: int | None = None
    """At most this many releases; by default as many as the bracket needs."""
    max_nodes: int = 10_000_000
    """Deepen no further than this."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Solve and print the bracket."""
        from reticent.solve.lattice import TOLERANCE, solve_lattice

        for name, value in (("horizon", self.horizon), ("max-nodes", self.max_nodes)):
            if value is not None and value < 1:
                raise InputError(f"--{name} must be at least 1, but is {value}.")
        task = _task(_model(self.problem), self.bound, self.prices)
        if self.horizon is None and self.bound.information is not None:
            raise InputError("The information bound needs --horizon: its lattice grows with the order of releases.")
        console = _console()
        with console.status("Building the lattice ...") as status:
            bracket = solve_lattice(
                task,
                self.horizon,
                max_nodes=self.max_nodes,
                report=lambda depth, nodes: status.update(f"Building the lattice: depth {depth}, {nodes:,} nodes"),
            )
        first = [*task.model.sensors, "stop"][bracket.first]
        closed = self.horizon is not None or bracket.gap <= TOLERANCE
        record = {**asdict(bracket), "first": first, "gap": bracket.gap, "closed": closed, "kind": "exact bracket"}
        if self.json:
            print(json.dumps(record))
        else:
            print(f"The optimal cost lies between {bracket.lower:.6f} and {bracket.upper:.6f}; first action: {first}.")
            print(f"{bracket.nodes:,} nodes, at most {bracket.horizon} releases.")
            if not closed:
                print("The bracket is still open: --max-nodes ended the search.")


EnforceOption = Literal["penalty", "withhold", "coarsen", "mask", "paper"]


@dataclass(frozen=True)
class Train:
    """Train a policy and save it: an agent (A2C), or lookahead on a value learned by value iteration."""

    problem: Annotated[Positional[str], arg(metavar="PROBLEM")]
    """A JSON problem file, or `synthetic`."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """The policy file to write (safetensors)."""
    bound: Annotated[Bounds, arg(name="")] = field(default_factory=Bounds)
    prices: Annotated[Prices, arg(name="")] = field(default_factory=Prices)
    enforce: EnforceOption | None = None
    """How the bound is kept. `withhold` and `coarsen` never cross --confidence; its default `penalty` pays for it.
    `mask` never crosses --information. `paper`: the printed cost, for reproduction."""
    method: Literal["a2c", "value-iteration"] = "a2c"
    """`value-iteration` computes with the known model: better policies, dearer decisions."""
    steps: int = 1_000_000
    """Environment steps (a2c)."""
    recipe: Literal["default", "paper"] = "default"
    """`paper` is TD(0) with the belief as input; `default` learns better and faster (a2c)."""
    rounds: int = 300
    """Rounds of playing and fitting, at most (value-iteration)."""
    tolerance: float = 0.02
    """Stop once the mean residual is below this many releases' worth of cost (value-iteration)."""
    kernels: Literal["label", "value"] = "label"
    """`value`: merged symbols carry what going on is worth; better, and several times dearer (value-iteration)."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Train, saving the state after each piece; an earlier state of the same command is continued."""
        from reticent.problem.task import GUARANTEED

        for name in ("steps", "rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1, but is {getattr(self, name)}.")
        if not self.tolerance >= 0:
            raise InputError(f"--tolerance must be zero or more, but is {self.tolerance}.")
        if not self.out.name or self.out.is_dir():
            raise InputError(f"-o {str(self.out)!r} is a folder; name the policy file to write.")
        _check_writable(self.out)
        _check_seed(self.seed)
        task = _task(_model(self.problem), self.bound, self.prices, self.enforce)
        if self.kernels == "value" and not (self.method == "value-iteration" and task.enforce in GUARANTEED):
            raise InputError("--kernels value needs --enforce withhold or coarsen, and --method value-iteration.")
        record = self._train(task)
        if self.json:
            print(json.dumps(record))
        else:
            speed = f"{record['per_second']:,.4g} per second with compilation"
            print(f"Saved {self.out}: {record['done']:,} {record['unit']}, {speed}.")
            print(f"Next: reticent evaluate {self.out}")

    def _train(self, task: "Task") -> dict[str, Any]:
        from reticent.compile_cache import use_compile_cache
        from reticent.policy.saved import policy_file
        from reticent.process.release import ReleaseProcess
        from reticent.provenance import provenance
        from reticent.solve.checkpoint import load_checkpoint, save_checkpoint

        use_compile_cache()
        process = ReleaseProcess(task)
        run = self._agent(process) if self.method == "a2c" else self._values(process)
        partial = self.out.with_name(self.out.name + ".partial")
        whole = {**run.settings, "task": task.to_json()}
        state = load_checkpoint(partial, run.fresh, whole) or run.fresh
        if partial.exists() and state is run.fresh:
            print(f"reticent: {partial} is of another training, so this one starts anew.", file=sys.stderr)
        before = done = run.done(state)
        started = saved = time.perf_counter()
        with _progress() as progress:
            bar = progress.add_task("Training goes on" if before else "Training", total=run.total, completed=before)
            for reached, how in run.go_on(state):
                state, done = reached, run.done(reached)
                progress.update(bar, completed=done, description=f"Training, {how}")
                if time.perf_counter() - saved > SECONDS_BETWEEN_SAVES:
                    save_checkpoint(partial, state, whole)
                    saved = time.perf_counter()
        origin = {**run.settings, "done": done, **provenance()}
        policy_file(run.policy(state), task, run.settings, origin).save(self.out)
        partial.unlink(missing_ok=True)
        seconds = time.perf_counter() - started
        speed = (done - before) / seconds
        return {"policy": str(self.out), "done": done, "unit": run.unit, "seconds": seconds, "per_second": speed}

    def _agent(self, process: "ReleaseProcess") -> "_Training":
        from reticent.solve.a2c import RECIPES, initialise, policy_of, schedule, training

        recipe = RECIPES[self.recipe]
        pieces, updates = schedule(recipe, self.steps)
        total = pieces * updates * recipe.steps_per_update

        def go_on(state: Any) -> Iterator[tuple[Any, str]]:
            for reached, progress in training(process, recipe, state, self.steps):
                yield reached, f"cost {float(progress.cost_per_episode):.2f} per episode"

        return _Training(
            settings={"method": "a2c", "recipe": self.recipe, **asdict(recipe), "seed": self.seed, "steps": total},
            fresh=initialise(process, recipe, self.seed),
            total=total,
            unit="steps",
            done=lambda state: int(state.update) * recipe.steps_per_update,
            go_on=go_on,
            policy=lambda state: policy_of(process, recipe, state),
        )

    def _values(self, process: "ReleaseProcess") -> "_Training":
        from reticent.solve.value_iteration import Settings, initialise, iterate, policy_of

        how = Settings(rounds=self.rounds, tolerance=self.tolerance, kernels=self.kernels)

        def go_on(state: Any) -> Iterator[tuple[Any, str]]:
            for reached, residual in iterate(process, how, state):
                yield reached, f"residual {residual:.3f}"

        return _Training(
            settings={"method": "value-iteration", **asdict(how), "seed": self.seed},
            fresh=initialise(process, how, self.seed),
            total=how.rounds,
            unit="rounds",
            done=lambda state: int(state.round),
            go_on=go_on,
            policy=lambda state: policy_of(process, how, state),
        )


class _Training(NamedTuple):
    """A method of training as `Train` runs it: `go_on` yields the state and how it goes, piece by piece."""

    settings: dict[str, Any]
    fresh: Any
    total: int
    unit: str
    done: Callable[[Any], int]
    go_on: Callable[[Any], Iterator[tuple[Any, str]]]
    policy: Callable[[Any], Any]


@dataclass(frozen=True)
class Evaluate:
    """Simulate a saved policy: cost, stopping time, accuracies, violations, each with its interval."""

    policy: Annotated[Positional[Path], arg(metavar="POLICY")]
    """A policy file."""
    episodes: int = 100_000
    """Episodes to simulate."""
    enforce: EnforceOption | None = None
    """Another way to keep the bound than the policy was trained for."""
    traces: Path | None = None
    """Write all that was released to this Parquet file: see docs/traces.md."""
    seed: int = 1
    """Seed of the simulation."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Load, simulate, print."""
        from reticent.audit.metrics import check_episodes, summarise
        from reticent.audit.traces import write_traces
        from reticent.compile_cache import use_compile_cache
        from reticent.policy.saved import policy_of
        from reticent.policy.store import PolicyFile
        from reticent.process.rollout import simulate, simulate_traced

        _check_seed(self.seed)
        check_episodes(self.episodes)
        if self.traces:
            _check_writable(self.traces)
        use_compile_cache()
        file = PolicyFile.load(self.policy)
        if self.enforce:
            file = replace(file, task=replace(file.task, enforce=self.enforce))
        process, policy = policy_of(file)
        with _console().status(f"Simulating {self.episodes:,} episodes ..."):
            if self.traces:
                records, sent = simulate_traced(process, policy.act, self.episodes, self.seed)
                write_traces(self.traces, file.task, process, records, sent)
            else:
                records = simulate(process, policy.act, self.episodes, self.seed)
        evaluation = summarise(records, self.seed)
        if self.json:
            print(json.dumps({"policy": str(self.policy), **evaluation.to_json()}))
        else:
            _print_evaluation(evaluation, file.task)
            if self.traces:
                print(f"What was released: {self.traces}")


COMMANDS: dict[str, Any] = {
    "demo": Demo,
    "reproduce": Reproduce,
    "solve": Solve,
    "train": Train,
    "evaluate": Evaluate,
}
RESUMED = (Demo, Reproduce, Train)
DESCRIPTION = """Decides, reading by reading, which sensor may speak, so that a service learns the useful thing
and not the secret one. Start with `reticent demo`."""


def main() -> None:
    """Entry point of the `reticent` command."""
    command = tyro.extras.subcommand_cli_from_dict(
        COMMANDS, prog="reticent", description=DESCRIPTION, config=(tyro.conf.FlagCreatePairsOff,)
    )
    # A polite kill ends like Ctrl-C: workers are ended, what was finished is kept.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        command.run()
    except InputError as error:
        print(f"reticent: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        kept = " What was finished is kept; the same command goes on from there."
        print(f"\nreticent: interrupted.{kept if isinstance(command, RESUMED) else ''}", file=sys.stderr)
        raise SystemExit(128 + signal.SIGINT) from None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True)


def _progress() -> "Progress":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=_console())


def _check_writable(path: Path) -> None:
    if not os.access(path.resolve().parent, os.W_OK):
        raise InputError(f"There is no folder {str(path.parent)!r} that {path.name!r} can be written into.")


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must lie between 0 and 2^32 - 1, but is {seed}.")


def _model(problem: str) -> "ReleaseModel":
    from reticent.problem.model import read_problem
    from reticent.problem.synthetic import synthetic

    return synthetic() if problem == "synthetic" else read_problem(problem)


def _task(model: "ReleaseModel", bounds: Bounds, prices: Prices, enforce: "Enforcement | None" = None) -> "Task":
    from reticent.problem.bound import ConfidenceBound, InformationBound
    from reticent.problem.objective import Objective
    from reticent.problem.task import Task

    if (bounds.confidence is None) == (bounds.information is None):
        raise InputError("Give one bound: --confidence L or --information BITS.")
    if bounds.confidence is not None:
        bound = ConfidenceBound(bounds.confidence)
    else:
        assert bounds.information is not None
        bound = InformationBound(bounds.information)
    return Task(model, bound, Objective(**vars(prices)), enforce)


def _print_evaluation(evaluation: "Evaluation", task: "Task") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{evaluation.episodes:,} episodes, seed {evaluation.seed}: estimates with 95 % intervals")
    for heading in ("", "value", "from", "to"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = {name.replace("_", " "): value for name, value in vars(evaluation).items() if hasattr(value, "low")}
    for name, per_class, classes in (
        ("useful", evaluation.accuracy_per_useful, task.model.useful),
        ("secret", evaluation.accuracy_per_secret, task.model.secrets),
    ):
        rows |= {f"accuracy {name} {c}": value for c, value in zip(classes, per_class, strict=True) if value}
    for name, number in rows.items():
        table.add_row(name, *(f"{x:.4f}" for x in (number.value, number.low, number.high)))
    Console().print(table)


def _study(title: str, setting: "Setting", out: Path, as_json: bool) -> None:
    from reticent.report.page import write_report
    from reticent.study.run import run_study
    from reticent.study.synthetic import plan

    cells, started = plan(setting), time.perf_counter()
    with _progress() as progress:
        bar = progress.add_task("Cells", total=len(cells))

        def tell(cell: Any, was_there: bool) -> None:
            progress.console.print(f"{'kept' if was_there else 'done'}  {cell.policy}, {cell.title}", highlight=False)
            progress.advance(bar)

        results = run_study(cells, out, title, tell)
        progress.console.print("Drawing the report ...")
    page = write_report(out)
    seconds = time.perf_counter() - started
    if as_json:
        print(json.dumps({"report": str(page), "results": str(results), "cells": len(cells), "seconds": seconds}))
    else:
        _print_study(results)
        print(f"Report: {page.resolve()} ({seconds:.0f} s)")


def _print_study(results: Path) -> None:
    import polars as pl
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from reticent.report.tables import GUARANTEED, summary

    table = Table(title="Estimates, mean over seeds", box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for heading in ("bound", "policy", "cost", "tau", "U right", "S right", "over"):
        table.add_column(heading, justify="left" if heading in ("bound", "policy") else "right", no_wrap=True)
    for bound, enforce, policy, *numbers in summary(pl.read_parquet(results)).iter_rows():
        table.add_row(bound, f"{enforce}: {policy}" if enforce in GUARANTEED else policy, *numbers)
    Console().print(table)
    print("cost: tau + 50 x chance of a wrong guess of U + 50 if the bound was crossed.")
    print("tau: readings released. U right, S right: accuracy of the provider's best guess.")
    print("over: episodes that ever crossed the bound. withhold, coarsen: the guarantee, which never does.")
