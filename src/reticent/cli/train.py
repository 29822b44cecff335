"""`reticent train`."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from reticent.cli.options import (
    Bounds,
    EnforceOption,
    OverTime,
    Prices,
    check_seed,
    check_writable,
    model_of,
    monitoring_of,
    task_of,
)
from reticent.cli.over_time import warn_of_lock_up, with_kernels
from reticent.cli.terminal import Show, say, say_what_is_assumed, say_what_is_not_told_apart, work_shown
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.problem.model import Model
    from reticent.problem.monitoring import Monitoring
    from reticent.problem.task import Task
    from reticent.solve.training import Progress


@dataclass(frozen=True)
class Train:
    """Train a policy and save it: an agent (PPO, or the paper's A2C), or lookahead by value iteration.

    A problem with a transition goes on, without a stop: its agent is trained for the long run, and warned about where
    the chain is too slow for the bound (`reticent docs moving`).
    """

    problem: Annotated[Positional[str], arg(metavar="PROBLEM")]
    """A JSON problem file, or `synthetic`."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """The policy file to write (safetensors)."""
    bound: Annotated[Bounds, arg(name="")] = field(default_factory=Bounds)
    prices: Annotated[Prices, arg(name="")] = field(default_factory=Prices)
    enforce: EnforceOption | None = None
    """How the bound is kept. For --confidence: `penalty`, the default, charges for crossing it; `withhold` and
    `coarsen` never cross it; `answer` never crosses it and sends one guess of U instead of readings (`reticent docs
    answer`). For --information: `mask` never crosses it. For --expected-information: `lagrangian` keeps it on average,
    by a learned price of each bit. `paper` is the paper's printed cost, for reproduction."""
    method: Literal["ppo", "a2c", "value-iteration", "long-run", "lookahead"] = "ppo"
    """`ppo`: an agent. `a2c`: the paper's agent. `value-iteration` computes with the known model: better policies,
    slower decisions. Of a problem with a transition: `long-run`, lookahead on a value for the long run that also prices
    merged symbols, the best there; `lookahead` for one step, where nothing is trained."""
    over_time: Annotated[OverTime, arg(name="")] = field(default_factory=OverTime)
    steps: int = 1_000_000
    """Environment steps, rounded up to whole updates (ppo, a2c)."""
    rounds: int = 300
    """Rounds of playing and fitting the value, at most (value-iteration)."""
    tolerance: float = 0.02
    """Stop once the mean Bellman residual is below this many times the price of a release (value-iteration)."""
    kernels: Literal["label", "value", "quadratic"] = "label"
    """`label`: merged symbols say the likely useful value. `value`: they also carry the continuation value, which gives
    better policies and several times slower decisions (value-iteration). `quadratic`, of a problem with a transition:
    for readings that are weak one by one."""
    quick: bool = False
    """A first policy within a minute or two: at most 200,000 steps, or 40 rounds."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Train, saving the state after each piece; an earlier state of the same command is continued."""
        self._check()
        model = model_of(self.problem)
        task = self._ongoing(model) if model.moves else self._stopping(model)
        say_what_is_not_told_apart(task.model)
        record = self._train(task)
        if self.json:
            print(json.dumps(record))
        else:
            speed = f"{record['per_second']:,.4g} per second with compilation"
            trained = f"{record['done']:,} {record['unit']}, {speed}" if record["done"] else "nothing is trained"
            print(f"Saved {self.out}: {trained}.")
            print(f"Next: reticent evaluate {self.out}")

    def _check(self) -> None:
        for name in ("steps", "rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1, but is {getattr(self, name)}.")
        if not self.tolerance >= 0:
            raise InputError(f"--tolerance must be zero or more, but is {self.tolerance}.")
        if not self.out.name or self.out.is_dir():
            raise InputError(f"-o {str(self.out)!r} is a folder; name the policy file to write.")
        check_writable(self.out)
        if self.out.exists() and Path(self.problem).exists() and self.out.samefile(self.problem):
            raise InputError(f"-o {str(self.out)!r} is the problem file itself: name another file.")
        check_seed(self.seed)

    def _stopping(self, model: "Model") -> "Task":
        if self.over_time != OverTime():
            raise InputError("--day and --window are for problems with a transition, and this one has none.")
        if self.method in OVER_TIME or self.kernels == "quadratic":
            raise InputError(
                f"--method {', '.join(OVER_TIME)} and --kernels quadratic are for problems with a transition, and this "
                "one has none."
            )
        task = task_of(model, self.bound, self.prices, self.enforce)
        if self.kernels == "value" and not (self.method == "value-iteration" and task.enforcement.replaces):
            raise InputError("--kernels value needs --enforce withhold or coarsen, and --method value-iteration.")
        say_what_is_assumed(model)
        return task

    def _ongoing(self, model: "Model") -> "Monitoring":
        if self.method == "value-iteration" or self.kernels == "value":
            raise InputError(
                "This problem has a transition, so it goes on: --method ppo, a2c, long-run or lookahead, and --kernels "
                "label or quadratic."
            )
        task = with_kernels(monitoring_of(model, self.bound, self.prices, self.enforce, self.over_time), self.kernels)
        warn_of_lock_up(task)
        return task

    def _train(self, task: "Task | Monitoring") -> dict[str, Any]:
        from reticent.process.compile_cache import use_compile_cache
        from reticent.solution.solve import solve

        use_compile_cache()
        partial, started = self.out.with_name(self.out.name + ".partial"), time.perf_counter()
        options = {name: self._option(name) for name in _OPTIONS[self.method]}
        with work_shown("compiling") as show:
            shown = _Shown(show, partial)
            # Which methods a task has is checked above.
            solution = solve(task, self.method, self.seed, report=shown, checkpoint=partial, **options)  # type: ignore
        solution.save(self.out)
        partial.unlink(missing_ok=True)
        seconds = time.perf_counter() - started
        if self.method == "lookahead":
            return {"policy": str(self.out), "done": 0, "unit": "steps", "seconds": seconds, "per_second": 0.0}
        done, speed = shown.last.done, (shown.last.done - shown.before) / seconds
        told = {"policy": str(self.out), "done": done, "unit": shown.last.unit}
        return {**told, "seconds": seconds, "per_second": speed}

    def _option(self, name: str) -> Any:
        given = getattr(self, name)
        return min(given, _QUICK[name]) if self.quick and name in _QUICK else given


# The options of each method, and what they are at most in a quick training.
_OPTIONS = {
    "ppo": ("steps",),
    "a2c": ("steps",),
    "value-iteration": ("rounds", "tolerance", "kernels"),
    "long-run": (),
    "lookahead": (),
}
# Methods for problems with a transition only.
OVER_TIME = ("long-run", "lookahead")


_QUICK = {"steps": 200_000, "rounds": 40}


class _Shown:
    """How far a training is, and from where it was continued."""

    before: int
    last: "Progress"

    def __init__(self, show: Show, partial: Path) -> None:
        self._show, self._partial = show, partial
        self._first = True

    def __call__(self, progress: "Progress") -> None:
        self.last = progress
        if self._first:
            self._first, self.before = False, progress.done
            if self._partial.exists() and not self.before:
                say(f"{self._partial} belongs to another training, so this one starts from the beginning.")
        self._show("training", progress.done, progress.total, progress.how)
