"""`reticent train`."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from reticent.cli.options import Bounds, EnforceOption, Prices, check_seed, check_writable, model_of, task_of
from reticent.cli.terminal import Show, say, say_what_is_assumed, say_what_is_not_told_apart, work_shown
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.problem.task import Task
    from reticent.solve.training import Progress


@dataclass(frozen=True)
class Train:
    """Train a policy and save it: an agent (PPO, or the paper's A2C), or lookahead by value iteration."""

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
    method: Literal["ppo", "a2c", "value-iteration"] = "ppo"
    """`ppo`: an agent. `a2c`: the paper's agent. `value-iteration` computes with the known model: better policies,
    slower decisions."""
    steps: int = 1_000_000
    """Environment steps, rounded up to whole updates (ppo, a2c)."""
    rounds: int = 300
    """Rounds of playing and fitting the value, at most (value-iteration)."""
    tolerance: float = 0.02
    """Stop once the mean Bellman residual is below this many times the price of a release (value-iteration)."""
    kernels: Literal["label", "value"] = "label"
    """`label`: merged symbols say the likely useful value. `value`: they also carry the continuation value, which gives
    better policies and several times slower decisions (value-iteration)."""
    quick: bool = False
    """A first policy within a minute or two: at most 200,000 steps, or 40 rounds."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Train, saving the state after each piece; an earlier state of the same command is continued."""
        self._check()
        task = task_of(model_of(self.problem), self.bound, self.prices, self.enforce)
        if self.kernels == "value" and not (self.method == "value-iteration" and task.enforcement.replaces):
            raise InputError("--kernels value needs --enforce withhold or coarsen, and --method value-iteration.")
        say_what_is_assumed(task.model)
        say_what_is_not_told_apart(task.model)
        record = self._train(task)
        if self.json:
            print(json.dumps(record))
        else:
            speed = f"{record['per_second']:,.4g} per second with compilation"
            print(f"Saved {self.out}: {record['done']:,} {record['unit']}, {speed}.")
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

    def _train(self, task: "Task") -> dict[str, Any]:
        from reticent.process.compile_cache import use_compile_cache
        from reticent.solution.solve import solve

        use_compile_cache()
        partial, started = self.out.with_name(self.out.name + ".partial"), time.perf_counter()
        options = {name: self._option(name) for name in _OPTIONS[self.method]}
        with work_shown("compiling") as show:
            shown = _Shown(show, partial)
            solution = solve(task, self.method, self.seed, report=shown, checkpoint=partial, **options)
        solution.save(self.out)
        partial.unlink(missing_ok=True)
        seconds = time.perf_counter() - started
        done, speed = shown.last.done, (shown.last.done - shown.before) / seconds
        told = {"policy": str(self.out), "done": done, "unit": shown.last.unit}
        return {**told, "seconds": seconds, "per_second": speed}

    def _option(self, name: str) -> Any:
        given = getattr(self, name)
        return min(given, _QUICK[name]) if self.quick and name in _QUICK else given


# The options of each method, and what they are at most in a quick training.
_OPTIONS = {"ppo": ("steps",), "a2c": ("steps",), "value-iteration": ("rounds", "tolerance", "kernels")}


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
