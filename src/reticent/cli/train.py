"""`reticent train`."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from tyro.conf import Positional, arg

from reticent.cli.options import Bounds, EnforceOption, Prices, check_seed, check_writable, model_of, task_of
from reticent.cli.terminal import console, progress_bar, say, say_what_is_assumed
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.policy.answer import Answer
    from reticent.policy.lookahead import Lookahead
    from reticent.problem.task import Task
    from reticent.process.process import Process

# A killed training loses at most this much.
SECONDS_BETWEEN_SAVES = 5.0


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
    `answer` sends no readings but one guess of U, and keeps --confidence: see `reticent docs answer`.
    `mask` never crosses --information. `lagrangian` keeps --expected-information, by a learned price of each bit.
    `paper`: the printed cost, for reproduction."""
    method: Literal["a2c", "value-iteration"] = "a2c"
    """`value-iteration` computes with the known model: better policies, dearer decisions."""
    steps: int = 1_000_000
    """Environment steps, rounded up to whole updates (a2c)."""
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
        task = task_of(model_of(self.problem), self.bound, self.prices, self.enforce)
        if self.kernels == "value" and not (self.method == "value-iteration" and task.enforcement.replaces):
            raise InputError("--kernels value needs --enforce withhold or coarsen, and --method value-iteration.")
        if not task.enforcement.releases and self.method != "value-iteration":
            raise InputError("--enforce answer needs --method value-iteration.")
        say_what_is_assumed(task.model)
        record = self._train(task)
        if self.json:
            print(json.dumps(record))
        else:
            speed = f"{record['per_second']:,.4g} per second with compilation"
            print(f"Saved {self.out}: {record['done']:,} {record['unit']}, {speed}.")
            print(f"Next: reticent evaluate {self.out}")

    def _train(self, task: "Task") -> dict[str, Any]:
        from reticent.compile_cache import use_compile_cache
        from reticent.policy.answer import private_task
        from reticent.policy.saved import policy_file
        from reticent.process.process import Process
        from reticent.provenance import provenance
        from reticent.solve.checkpoint import load_checkpoint, save_checkpoint

        use_compile_cache()
        answers = not task.enforcement.releases
        process = Process.of(private_task(task) if answers else task)
        run = self._agent(process) if self.method == "a2c" else self._values(process)
        partial = self.out.with_name(self.out.name + ".partial")
        whole = {**run.settings, "task": task.to_json()}
        state = load_checkpoint(partial, run.fresh, whole) or run.fresh
        if partial.exists() and state is run.fresh:
            say(f"{partial} is of another training, so this one starts anew.")
        before = done = run.done(state)
        started = saved = time.perf_counter()
        with progress_bar() as progress:
            bar = progress.add_task("Training goes on" if before else "Training", total=run.total, completed=before)
            for reached, how in run.go_on(state):
                state, done = reached, run.done(reached)
                progress.update(bar, completed=done, description=f"Training, {how}")
                if time.perf_counter() - saved > SECONDS_BETWEEN_SAVES:
                    save_checkpoint(partial, state, whole)
                    saved = time.perf_counter()
        origin = {**run.settings, "done": done, **provenance()}
        policy = self._answer(task, run.policy(state)) if answers else run.policy(state)
        policy_file(policy, task, run.settings, origin).save(self.out)
        partial.unlink(missing_ok=True)
        seconds = time.perf_counter() - started
        speed = (done - before) / seconds
        return {"policy": str(self.out), "done": done, "unit": run.unit, "seconds": seconds, "per_second": speed}

    def _answer(self, task: "Task", private: "Lookahead") -> "Answer":
        from reticent.solve.answer import answer

        with console().status("Finding the rule for answers, and confirming it ..."):
            return answer(task, private, self.seed)

    def _agent(self, process: "Process") -> "_Training":
        from reticent.solve.a2c import RECIPES, initialise, policy_of, training

        recipe = RECIPES[self.recipe]
        total = recipe.steps_run(self.steps)

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

    def _values(self, process: "Process") -> "_Training":
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
