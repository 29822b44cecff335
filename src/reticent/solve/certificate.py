"""How far from optimal: a floor under the cost of every policy, the cost of one policy, and what lies between."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp

from reticent.errors import InputError
from reticent.estimate import Estimate, exact, mean
from reticent.policy.answer import Answer
from reticent.policy.lookahead import Lookahead, ValueFunction, going_on_costs
from reticent.policy.policy import Policy
from reticent.problem.task import Task
from reticent.process.process import Process, State, Transition
from reticent.process.rollout import simulate
from reticent.solve import sharpen, value_iteration
from reticent.solve.dual import floor_draws
from reticent.solve.lattice import TOLERANCE, Bracket, solve_lattice
from reticent.solve.tree import solve_tree
from reticent.types import Index, PRNGKey

Kind = Literal["exact", "exact bracket", "dual bound", "relaxation"]
# What is going on, how much of it is done, and how much there is, where that is known.
Report = Callable[[str, int, int | None], None]
# More pairs of sensor and symbol than this are left to the dual bound, and so are lattices of more nodes.
PAIRS, LATTICE_NODES, TREE_NODES = 6, 2_000_000, 200_000
# Episodes to simulate where a value takes the luck out of them, and elsewhere.
CONTROLLED_EPISODES, PLAIN_EPISODES = 8_192, 100_000


@dataclass(frozen=True)
class Effort:
    """How hard to try.

    `rounds` of value iteration, and of sharpening its value; None is what was found to be worth the time. `draws` that
    the clairvoyant plans on, `episodes` of the policy; None is 8,192 where a value takes out the luck, else 100,000.
    """

    rounds: int | None = None
    draws: int = 256
    episodes: int | None = None


DEFAULT = Effort()


@dataclass(frozen=True)
class Certificate:
    """lower <= optimal cost <= upper, each with its 95 % interval (of length zero where it is exact).

    `kind` says what the lower bound is: "exact" is the optimal cost; "exact bracket" the lower end of a bracket around
    it that was computed and is still open; "dual bound" comes from information relaxation of the problem itself,
    "relaxation" from that of an easier problem, which `floor_of` names.
    `paper_bound` is what the paper's theorem 2 would give with the same value function, if the largest `excess` found
    were the largest there is: an estimate.
    """

    lower: Estimate
    upper: Estimate
    kind: Kind
    floor_of: str
    excess: float | None = None
    paper_bound: float | None = None

    @property
    def gap(self) -> float:
        """What the policy may cost above the optimum."""
        return max(self.upper.value - self.lower.value, 0.0)

    @property
    def ratio(self) -> float:
        """The policy's cost in multiples of the lower bound: 1 is optimal."""
        return max(self.upper.value / self.lower.value, 1.0) if self.lower.value > 0 else math.inf

    def sentence(self) -> str:
        """The certificate in words."""
        if self.kind in ("exact", "exact bracket"):
            end = "" if self.kind == "exact" else " The bracket is still open: the true gap may be far smaller."
            return (
                f"No policy costs less than {self.lower.value:.6g} ({self.kind}, {self.floor_of}); this one costs "
                f"{self.upper}: {self._times()}.{end}"
            )
        weak = (
            "" if self.kind == "dual bound" else f" That floor is of {self.floor_of}: the true gap may be far smaller."
        )
        return (
            f"No policy costs less than {self.lower} in expectation ({self.kind}); this one costs {self.upper}: "
            f"{self._times()}.{weak}"
        )

    def _times(self) -> str:
        """How far above the lower bound the policy's cost is."""
        if math.isinf(self.ratio):
            return f"{self.gap:.4g} more"
        return f"{self.ratio:.3f} times the {'optimum' if self.kind == 'exact' else 'lower bound'}"

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        return {
            **asdict(self),
            "gap": self.gap,
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
            "sentence": self.sentence(),
        }


def certify(
    task: Task,
    policy: Policy | Answer | None = None,
    seed: int = 0,
    effort: Effort = DEFAULT,
    report: Report = lambda doing, done, total: None,
) -> Certificate:
    """A floor under the cost of every policy of this task, beside the cost of `policy`.

    Without a policy, beside the cost of one by value iteration or, where the task is small enough to be solved, of the
    best one with as many releases as were solved for.
    """
    floored, floor_of = floor_task(task)
    bracket = exact_bracket(task, policy.process if isinstance(policy, Lookahead) else None)
    if bracket:
        depth = f"by solving the problem up to {bracket.horizon} releases deep"
        upper = _ceiling(task, policy, None, seed, effort, report) if policy else exact(bracket.upper)
        kind = "exact" if bracket.gap <= TOLERANCE else "exact bracket"
        return Certificate(exact(bracket.lower), upper, kind, depth)
    if policy is None and not task.enforcement.releases:
        raise InputError("Answers are certified by their policy: make one first, with its public rule.")
    sharp = _sharp_policy(floored, seed, effort, report)
    if policy is None:
        policy = sharp if floored is task else _iterated(task, seed, effort, report)
    # Any value takes out luck; the sharp one most, but it knows no other process than its own.
    value = sharp.value if floored is task else None
    upper = _ceiling(task, policy, value, seed, effort, report)
    lower, excess, paper = dual_floor(
        sharp.process, sharp.value, effort.draws, seed, lambda done: report("A clairvoyant plans", done, effort.draws)
    )
    kind = "dual bound" if floored is task else "relaxation"
    return Certificate(lower, upper, kind, floor_of, excess, paper)


def _sharp_policy(task: Task, seed: int, effort: Effort, report: Report) -> Lookahead:
    settings = sharpen.DEFAULT
    if effort.rounds:
        iteration = replace(settings.iteration, rounds=effort.rounds)
        settings = replace(settings, rounds=effort.rounds, iteration=iteration)
    rounds = settings.iteration.rounds + settings.rounds
    return sharpen.sharp_policy(Process.of(task), seed, settings, lambda done: report("A sharp value", done, rounds))


def _iterated(task: Task, seed: int, effort: Effort, report: Report) -> Lookahead:
    settings = value_iteration.DEFAULT
    settings = replace(settings, rounds=effort.rounds or settings.rounds)
    return value_iteration.value_iteration(
        Process.of(task), seed, settings, lambda done, _: report("Value iteration", done, settings.rounds)
    )


def _ceiling(
    task: Task, policy: Policy | Answer, value: ValueFunction | None, seed: int, effort: Effort, report: Report
) -> Estimate:
    if task.enforcement.priced:
        # The martingale goes with the priced cost; the plain one is what a policy is judged by.
        value = None
    elif isinstance(policy, Lookahead):
        value = value or policy.value
    episodes = effort.episodes or (CONTROLLED_EPISODES if value else PLAIN_EPISODES)
    doing = "The policy is simulated"
    report(doing, 0, None)
    if isinstance(policy, Answer):
        upper = mean(policy.simulate(episodes, seed).cost)
    else:
        # Value kernels belong to the policy, and so to the process that it acts in.
        process = policy.process if isinstance(policy, Lookahead) else Process.of(task)
        upper = ceiling(process, policy, episodes, seed, value)
    report(doing, episodes, episodes)
    return upper


def floor_task(task: Task) -> tuple[Task, str]:
    """The task whose optimal cost the dual bound can bound from below, at most that of `task`, and what it is."""
    easier = task.enforcement.relaxation(task.bound)
    if easier is None:
        raise InputError(f"There is no lower bound for tasks that enforce by {task.enforcement.name!r}.")
    bound, enforcement, what = easier
    if (bound, enforcement) == (task.bound, task.enforcement):
        return task, what
    return replace(task, bound=bound, enforcement=enforcement), what


def exact_bracket(task: Task, process: Process | None = None) -> Bracket | None:
    """The bracket of a task that is small enough to be solved, as narrow as the limits on nodes allow.

    `process` is the one that the policy acts in, if it has a process of its own.
    """
    sensors, _, _, symbols = task.model.channel.shape
    if sensors * symbols > PAIRS:
        return None
    if task.enforcement.ends_on_crossing:
        return solve_lattice(task, max_nodes=LATTICE_NODES)
    if task.enforcement.priced or not task.enforcement.releases:
        return None
    process, deepest, horizon = process or Process.of(task), None, 1
    while deepest is None or deepest.nodes * sensors * symbols < TREE_NODES:
        before, deepest = deepest, solve_tree(process, horizon, max_nodes=10 * TREE_NODES)
        if deepest.gap <= TOLERANCE or (before and deepest.nodes == before.nodes):
            break
        horizon += 1
    if task.enforcement.replaces and deepest.gap > TOLERANCE:
        # What is sent tells no more than the readings, so the optimum without bound is a floor too.
        unbounded = solve_lattice(floor_task(task)[0], max_nodes=LATTICE_NODES)
        deepest = replace(deepest, lower=max(deepest.lower, unbounded.lower))
    return deepest


def dual_floor(
    process: Process,
    value: ValueFunction,
    draws: int,
    seed: int,
    report: Callable[[int], None] | None = None,
) -> tuple[Estimate, float, float]:
    """The floor by information relaxation, the largest excess of the value, and the bound of the paper's theorem 2.

    The theorem: a V that never exceeds min(stop, C_T + E V) is below the optimal cost. A V that exceeds it by at most
    `excess` is so after scaling with C_T / (C_T + excess).
    """
    floor = floor_draws(process, value, draws, seed, report)
    # Under a multiplier the bound is on cost + mu leakage: what the limit allows is paid back.
    allowed = float(process.enforcement.price * process.bound.number) if process.enforcement.priced else 0.0
    start, release = float(value(process.prior, jnp.zeros(()))), float(process.objective.time_cost)
    paper = start * release / (release + max(floor.excess, 0.0))
    return mean(floor.cost - allowed), floor.excess, paper - allowed


def ceiling(process: Process, policy: Policy, episodes: int, seed: int, value: ValueFunction | None = None) -> Estimate:
    """The policy's cost by simulation; with a value for the process, its martingale as control variate."""
    played = process if value is None else Controlled(process, value)
    records = simulate(played, policy.act, episodes, seed)
    # The price of a multiplier is not part of what a policy is judged by.
    return mean(records.cost - (records.violation_cost if process.enforcement.priced else 0.0))


class Controlled(Process):
    """The process with Q_a - (cost + V after) added to every release: the same costs in the mean, with less noise."""

    value: ValueFunction

    def __init__(self, process: Process, value: ValueFunction) -> None:
        vars(self).update(vars(process))
        self.value = value

    def _carry_out(self, key: PRNGKey, state: State, action: Index) -> Transition:
        transition = super()._carry_out(key, state, action)
        sensor = jnp.minimum(action, self.sensors - 1)
        expected = going_on_costs(self, self.value, state.public)[sensor]
        after = transition.state.public
        rest = jnp.where(transition.terminated, 0.0, self.value(after.belief, after.spent_bits))
        luck = jnp.where(action < self.sensors, transition.cost + rest - expected, 0.0)
        return eqx.tree_at(lambda t: t.cost, transition, transition.cost - luck)
