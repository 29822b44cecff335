"""`reticent evaluate`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from reticent.cli.options import EnforceOption, check_seed, check_writable
from reticent.cli.over_time import print_days
from reticent.cli.terminal import stages
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.evaluate.estimate import Estimate
    from reticent.evaluate.evaluation import Evaluation
    from reticent.problem.task import Task
    from reticent.solution.ongoing import OngoingSolution


@dataclass(frozen=True)
class Evaluate:
    """Simulate a saved policy and print cost, stopping time, accuracies and violations, each with its 95 % interval.

    Of a policy for a problem that goes on, days are simulated: silence and utility over time, when a day typically
    locks and when it is free again, and the highest posteriors of the secret.
    """

    policy: Annotated[Positional[Path], arg(metavar="POLICY")]
    """A policy file."""
    episodes: int = 100_000
    """Episodes to simulate."""
    days: int = 100
    """Of a problem that goes on: days to simulate."""
    out: Path | None = None
    """Of a problem that goes on: a folder for a page about the day, its figures and days.json."""
    precision: float | None = None
    """Simulate no more episodes than make the interval of the mean cost this narrow: so far to each side."""
    enforce: EnforceOption | None = None
    """Keep the bound in another way than the policy was trained for."""
    traces: Path | None = None
    """Write everything that was released to this Parquet file: see `reticent docs traces`."""
    seed: int = 1
    """Seed of the simulation."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Load, simulate, print."""
        from reticent.evaluate.evaluation import check_episodes
        from reticent.gateway.forecast import forecast_file
        from reticent.gateway.sessions import ASSUMPTION
        from reticent.problem.enforcement import named_enforcement
        from reticent.process.compile_cache import use_compile_cache
        from reticent.solution.ongoing import OngoingSolution
        from reticent.solution.solve import load

        check_seed(self.seed)
        check_episodes(self.episodes, self.precision)
        if self.traces:
            check_writable(self.traces)
        use_compile_cache()
        solution = load(self.policy, None if self.enforce is None else named_enforcement(self.enforce))
        if isinstance(solution, OngoingSolution):
            return self._days(solution)
        if self.out is not None:
            raise InputError("--out is for policies of problems that go on, and this one has a stop.")
        task = solution.task
        most = "" if self.precision is None else "at most "
        with stages(f"simulating {most}{self.episodes:,} episodes"):
            evaluation = solution.evaluate(self.episodes, self.seed, self.traces, self.precision)
        # A gateway serves the file as it is.
        served = None if self.enforce or task.panel else forecast_file(self.policy)
        if self.json:
            gateway = None if served is None else {**served.to_json(), "assumption": ASSUMPTION}
            found = {"policy": str(self.policy), "promised": task.promised, **evaluation.to_json()}
            print(json.dumps({**found, "gateway": gateway}))
        else:
            _print_evaluation(evaluation, task)
            if task.bound.crossable:
                print(f"Promise: {task.promised}.")
            if served is not None:
                print(f"Session after session on a gateway: {served.silence}\n{ASSUMPTION} {served.informed}")
            if not task.bound.pathwise:
                said, limit = evaluation.spent_bits, task.bound.number
                print(f"The bound is on the mean of spent bits: {said}, {_side(said, limit)} the limit {limit:g}.")
            if self.traces:
                print(f"What was released: {self.traces}")

    def _days(self, solution: "OngoingSolution") -> None:
        if self.precision is not None:
            raise InputError("--precision is for episodes; of a policy that goes on say how many --days.")
        with stages(f"simulating {self.days:,} days"):
            found = solution.evaluate(self.days, self.seed, self.traces, self.out)
        if self.json:
            print(json.dumps({"policy": str(self.policy), **found.to_json()}))
            return
        print_days(found)
        for what, path in (("What was sent", self.traces), ("Page", self.out and self.out / "report.html")):
            if path is not None:
                print(f"{what}: {path}")


def _side(number: "Estimate", limit: float) -> str:
    if number.low <= limit <= number.high:
        return "not told apart from"
    return "below" if number.high < limit else "above"


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
