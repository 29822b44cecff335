"""`reticent solve`."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from reticent.cli.options import Bounds, OverTime, Prices, model_of, monitoring_of, task_of
from reticent.cli.over_time import warn_of_lock_up
from reticent.cli.terminal import say_what_is_not_told_apart, stages
from reticent.errors import InputError
from reticent.problem.monitoring import SILENT

if TYPE_CHECKING:
    from reticent.problem.monitoring import Monitoring
    from reticent.problem.task import Task


@dataclass(frozen=True)
class Solve:
    """Bracket the optimal cost of a small problem exactly; with --expected-information, compute it.

    Of a problem with a transition, the optimal cost of the first --horizon steps is computed.
    """

    problem: Annotated[Positional[str], arg(metavar="PROBLEM")]
    """A JSON problem file, or `synthetic`."""
    method: Literal["lattice"] = "lattice"
    """How to solve it."""
    bound: Annotated[Bounds, arg(name="")] = field(default_factory=Bounds)
    prices: Annotated[Prices, arg(name="")] = field(default_factory=Prices)
    over_time: Annotated[OverTime, arg(name="")] = field(default_factory=OverTime)
    horizon: int | None = None
    """At most this many releases; by default as many as it takes to close the bracket. Of a problem with a transition,
    this many steps."""
    max_nodes: int = 10_000_000
    """Stop deepening the lattice at this many nodes."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Solve and print what was found."""
        for name, value in (("horizon", self.horizon), ("max-nodes", self.max_nodes)):
            if value is not None and value < 1:
                raise InputError(f"--{name} must be at least 1, but is {value}.")
        model = model_of(self.problem)
        if model.moves:
            return self._first_steps(monitoring_of(model, self.bound, self.prices, None, self.over_time))
        if self.over_time != OverTime():
            raise InputError("--day and --window are for problems with a transition, and this one has none.")
        task = task_of(model, self.bound, self.prices)
        say_what_is_not_told_apart(task.model)
        if self.horizon is None and self.bound.information is not None:
            raise InputError("The information bound needs --horizon: its lattice grows with the order of releases.")
        if self.bound.expected_information is None:
            self._bracket(task)
        elif self.horizon is None:
            raise InputError("The expected-information bound needs --horizon: it is solved for a number of releases.")
        else:
            self._mixture(task, self.horizon)

    def _first_steps(self, task: "Monitoring") -> None:
        from reticent.solve.ongoing_tree import first_steps

        warn_of_lock_up(task)
        if self.horizon is None:
            raise InputError("A problem with a transition goes on: --horizon says how many steps are solved exactly.")
        with stages("building the tree of all that may be sent"):
            found = first_steps(task, self.horizon)
        first = [*task.model.sensors, SILENT][found.action]
        if self.json:
            print(json.dumps({**asdict(found), "first": first, "kind": "exact"}))
            return
        print(f"The optimal cost of the first {found.steps} steps is {found.cost:.6f}; first action: {first}.")
        print(f"Without a bound it would be {found.lower:.6f}. Both are exact.")

    def _mixture(self, task: "Task", horizon: int) -> None:
        from reticent.solve.expected_information import solve_expected

        with _building() as report:
            solution = solve_expected(task, horizon, self.max_nodes, report)
        actions = [*task.model.sensors, "stop"]
        mixture = [
            {"weight": share.weight, **asdict(share.policy), "first": actions[share.policy.first]}
            for share in solution.mixture
        ]
        if self.json:
            exact = {"kind": "exact", "leakage_bits": solution.leakage_bits}
            print(json.dumps({**asdict(solution), "mixture": mixture, **exact}))
            return
        print(f"The optimal cost is {solution.cost:.6f}; one more bit would save {solution.multiplier:.6f}.")
        if len(mixture) > 1:
            print("It takes a draw between two policies at the start of each episode:")
        for share in mixture:
            chance, cost, bits = share["weight"], share["cost"], share["leakage_bits"]
            print(f"- chance {chance:.6f}: cost {cost:.6f}, {bits:.6f} bits, first action: {share['first']}")
        print(f"{solution.nodes:,} nodes, at most {solution.horizon} releases.")

    def _bracket(self, task: "Task") -> None:
        from reticent.solve.lattice import TOLERANCE, solve_lattice

        with _building() as report:
            bracket = solve_lattice(task, self.horizon, max_nodes=self.max_nodes, report=report)
        first = [*task.model.sensors, "stop"][bracket.first]
        closed = bracket.gap <= TOLERANCE
        record = {**asdict(bracket), "first": first, "gap": bracket.gap, "closed": closed, "kind": "exact bracket"}
        if self.json:
            print(json.dumps(record))
        else:
            print(f"The optimal cost lies between {bracket.lower:.6f} and {bracket.upper:.6f}; first action: {first}.")
            print(f"{bracket.nodes:,} nodes, at most {bracket.horizon} releases.")
            if not closed and self.horizon is None:
                print("The bracket is still open: --max-nodes ended the search.")
            elif not closed:
                print(f"The upper end is the best of at most {self.horizon} releases; the lower holds for any number.")


@contextmanager
def _building() -> Iterator[Callable[[int, int], None]]:
    """A line on the terminal that says how far the lattice is."""
    with stages("building the lattice") as tell:
        yield lambda depth, nodes: tell(f"building the lattice: depth {depth}, {nodes:,} nodes")
