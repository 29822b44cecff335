"""`reticent solve`."""

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from reticent.cli.options import Bounds, Prices, model_of, task_of
from reticent.cli.terminal import console
from reticent.errors import InputError


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
        task = task_of(model_of(self.problem), self.bound, self.prices)
        if self.horizon is None and self.bound.information is not None:
            raise InputError("The information bound needs --horizon: its lattice grows with the order of releases.")
        with console().status("Building the lattice ...") as status:
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
