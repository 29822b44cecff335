"""How far from optimal: a lower bound on the cost of every policy, the cost of one policy, and the gap between."""

import abc
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp

from reticent.errors import InputError
from reticent.evaluate.estimate import Estimate, exact, mean
from reticent.policy.lookahead import Lookahead, ValueFunction, q_values
from reticent.policy.policy import Policy
from reticent.problem.task import Task
from reticent.process.process import Process, State, Transition
from reticent.process.rollout import simulate
from reticent.solve import refine, value_iteration
from reticent.solve.dual import lower_bound_draws
from reticent.solve.lattice import TOLERANCE, Bracket, solve_lattice
from reticent.solve.tree import solve_tree
from reticent.types import Index, PRNGKey

Kind = Literal["exact", "exact bracket", "dual bound", "relaxation"]
# The current stage, how much of it is done, and how much there is, where that is known.
Report = Callable[[str, int, int | None], None]
# More pairs of sensor and symbol than this are left to the dual bound, and so are lattices of more nodes.
PAIRS, LATTICE_NODES, TREE_NODES = 6, 2_000_000, 200_000
# Episodes to simulate where a value serves as control variate, and elsewhere.
CONTROLLED_EPISODES, PLAIN_EPISODES = 8_192, 100_000


@dataclass(frozen=True)
class Effort:
    """How hard to try.

    `rounds` of value iteration, and of refining its value; None is what was found to be worth the time. `draws` that
    the clairvoyant plans on, `episodes` of the policy; None is 8,192 with a control variate, else 100,000.
    """

    rounds: int | None = None
    draws: int = 256
    episodes: int | None = None


DEFAULT = Effort()


class Candidate(abc.ABC):
    """What a certificate is of: something that acts in a process, at a cost that is found by simulation."""

    process: Process

    @abc.abstractmethod
    def cost(self, episodes: int | None, seed: int, value: ValueFunction | None = None) -> Estimate:
        """Its mean cost, with this value or its own as control variate where there is one."""


@dataclass(frozen=True, eq=False)
class PolicyInProcess(Candidate):
    """A policy as a candidate."""

    process: Process
    policy: Policy

    def cost(self, episodes: int | None, seed: int, value: ValueFunction | None = None) -> Estimate:
        # The martingale goes with the priced cost; the plain one is what a policy is judged by.
        value = None if self.process.enforcement.priced else value or self.policy.control_variate
        episodes = episodes or (CONTROLLED_EPISODES if value else PLAIN_EPISODES)
        return upper_bound(self.process, self.policy, episodes, seed, value)


@dataclass(frozen=True)
class Certificate:
    """lower <= optimal cost <= upper, each with its 95 % interval (of length zero where it is exact).

    `kind` says what the lower bound is: "exact" is the optimal cost; "exact bracket" the lower end of a bracket around
    it that was computed and is still open; "dual bound" comes from information relaxation of the problem itself,
    "relaxation" from that of an easier problem, which `bound_of` names.
    `paper_bound` is what the paper's theorem 2 would give with the same value function, if the largest `excess` found
    were the largest there is: an estimate.

    Args:
        lower: No policy costs less, up to the interval.
        upper: What the certified policy costs.
        kind: What the lower bound is.
        bound_of: Which problem it is of, or how it was found.
        excess: See above.
        paper_bound: See above.

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> rt.certify(rt.Task(tells_useful(), rt.Confidence(0.8))).kind
        'exact'
    """

    lower: Estimate
    upper: Estimate
    kind: Kind
    bound_of: str
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
                f"No policy costs less than {self.lower.value:.6g} ({self.kind}, {self.bound_of}); this one costs "
                f"{self.upper}: {self._times()}.{end}"
            )
        weak = (
            "" if self.kind == "dual bound" else f" That bound is of {self.bound_of}: the true gap may be far smaller."
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
    candidate: Candidate | None = None,
    seed: int = 0,
    effort: Effort = DEFAULT,
    report: Report = lambda doing, done, total: None,
) -> Certificate:
    """How far from optimal: a lower bound on the cost of every policy of a task, beside the cost of one.

    Args:
        task: The task. There is no lower bound under the enforcement `PaperCost`.
        candidate: What to certify, such as a `Solution` (which has this as a method). Without one, a policy by value
            iteration or, where the task is small enough to be solved, the best one with as many releases as were
            solved for.
        seed: Seed of everything random.
        effort: How hard to try.
        report: Called with what is being done, how much of it is, and how much there is.

    Returns:
        The certificate: `lower` and `upper` with their intervals, and `sentence()`.

    Example:
        >>> from reticent.problem.synthetic import two_binary_sensors
        >>> print(rt.certify(rt.Task(two_binary_sensors(), rt.Confidence(0.8))).lower)
        7.34225
    """
    relaxed, bound_of = relaxed_task(task)
    bracket = exact_bracket(task, candidate.process if candidate else None)
    if bracket:
        depth = f"by solving the problem up to {bracket.horizon} releases deep"
        upper = _simulated(candidate, None, seed, effort, report) if candidate else exact(bracket.upper)
        kind = "exact" if bracket.gap <= TOLERANCE else "exact bracket"
        return Certificate(exact(bracket.lower), upper, kind, depth)
    if candidate is None and not task.enforcement.releases:
        raise InputError(
            "Answers are certified with their rule. Train a policy for answers first (method 'answer', or `reticent "
            "train --enforce answer`), then certify that."
        )
    sharp = _refined_policy(relaxed, seed, effort, report)
    if candidate is None:
        policy = sharp if relaxed is task else _iterated(task, seed, effort, report)
        candidate = PolicyInProcess(policy.process, policy)
    # Any value is a control variate; the sharp one the best, but it knows no other process than its own.
    value = sharp.value if relaxed is task else None
    upper = _simulated(candidate, value, seed, effort, report)
    lower, excess, paper = dual_bound(
        sharp.process, sharp.value, effort.draws, seed, lambda done: report("A clairvoyant plans", done, effort.draws)
    )
    kind = "dual bound" if relaxed is task else "relaxation"
    return Certificate(lower, upper, kind, bound_of, excess, paper)


def _refined_policy(task: Task, seed: int, effort: Effort, report: Report) -> Lookahead:
    settings = refine.DEFAULT
    if effort.rounds:
        iteration = replace(settings.iteration, rounds=effort.rounds)
        settings = replace(settings, rounds=effort.rounds, iteration=iteration)
    rounds = settings.iteration.rounds + settings.rounds
    return refine.refined_policy(Process.of(task), seed, settings, lambda done: report("A sharp value", done, rounds))


def _iterated(task: Task, seed: int, effort: Effort, report: Report) -> Lookahead:
    settings = value_iteration.DEFAULT
    settings = replace(settings, rounds=effort.rounds or settings.rounds)
    return value_iteration.value_iteration(
        Process.of(task), seed, settings, lambda done, _: report("Value iteration", done, settings.rounds)
    )


def _simulated(
    candidate: Candidate, value: ValueFunction | None, seed: int, effort: Effort, report: Report
) -> Estimate:
    doing = "The policy is simulated"
    report(doing, 0, None)
    upper = candidate.cost(effort.episodes, seed, value)
    report(doing, 1, 1)
    return upper


def relaxed_task(task: Task) -> tuple[Task, str]:
    """The task whose optimal cost the dual bound can bound from below, at most that of `task`, and what it is."""
    easier = task.enforcement.relaxation(task.bound)
    if easier is None:
        raise InputError(f"There is no lower bound for tasks that enforce by {task.enforcement.name!r}.")
    bound, enforcement, what = easier
    if (bound, enforcement) == (task.bound, task.enforcement):
        return task, what
    return replace(task, bound=bound, enforcement=enforcement), what


def exact_bracket(task: Task, process: Process | None = None) -> Bracket | None:
    """The bracket of a task that is small enough to be solved, as narrow as the limits on nodes allow; of one belief,
    so not for a panel of providers.

    `process` is the one that the policy acts in, if it has a process of its own.
    """
    sensors, _, _, symbols = task.model.channel.shape
    if sensors * symbols > PAIRS or task.panel:
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
        # What is sent tells no more than the readings, so the optimum without bound is a lower bound too.
        unbounded = solve_lattice(relaxed_task(task)[0], max_nodes=LATTICE_NODES)
        deepest = replace(deepest, lower=max(deepest.lower, unbounded.lower))
    return deepest


def dual_bound(
    process: Process,
    value: ValueFunction,
    draws: int,
    seed: int,
    report: Callable[[int], None] | None = None,
) -> tuple[Estimate, float, float]:
    """Lower bound by information relaxation, the largest excess of the value, and the bound of the paper's theorem 2.

    The theorem: a V that never exceeds min(stop, C_T + E V) is below the optimal cost. A V that exceeds it by at most
    `excess` is so after scaling with C_T / (C_T + excess).
    """
    drawn = lower_bound_draws(process, value, draws, seed, report)
    # Under a multiplier the bound is on cost + mu leakage: what the limit allows is paid back.
    allowed = float(process.enforcement.price * process.bound.number) if process.enforcement.priced else 0.0
    start, release = float(value(process.prior, jnp.zeros(()))), float(process.objective.time_cost)
    paper = start * release / (release + max(drawn.excess, 0.0))
    return mean(drawn.cost - allowed), drawn.excess, paper - allowed


def upper_bound(
    process: Process, policy: Policy, episodes: int, seed: int, value: ValueFunction | None = None
) -> Estimate:
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
        expected = q_values(self, self.value, state.public)[sensor]
        after = transition.state.public
        rest = jnp.where(transition.terminated, 0.0, self.value(after.belief, after.spent_bits))
        noise = jnp.where(action < self.sensors, transition.cost + rest - expected, 0.0)
        return eqx.tree_at(lambda t: t.cost, transition, transition.cost - noise)
