"""Exact solution on the count lattice, with certified brackets.

The hidden pair never changes, so the belief depends only on how often each sensor gave each symbol: histories fold
into a lattice of counts. Levels are built forward (one more release each) and solved backward. A node where stopping
is provably optimal is not expanded, and a release that enters the forbidden region ends there.

Cutting the lattice at depth T brackets the optimal cost of the problem without horizon: declaring at depth T is a
policy, so it gives an upper bound (and the exact value of the problem with at most T releases); pretending that
after depth T one more release settles everything gives a lower bound.

Under the information bound the information spent depends on the order of the releases, so a node is a pair of counts
and information spent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import rel_entr

from reticent.errors import InputError
from reticent.problem.enforcement import Promise
from reticent.problem.task import Task

CHUNK = 50_000
TOLERANCE = 1e-7
FORBIDDEN, UNREACHED = -1, -2
UNITS_PER_BIT = 1e12


@dataclass(frozen=True)
class Bracket:
    """lower <= optimal cost <= upper, both certain up to rounding; `upper` is exact for at most `horizon` releases.

    Args:
        lower: No policy costs less.
        upper: Some policy costs this.
        first: The first action of the policy that attains `upper`: a sensor's index, or the number of sensors to stop.
        nodes: How many nodes were held.
        horizon: How many releases deep the problem was solved.

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> rt.solve(rt.Task(tells_useful(), rt.Confidence(0.8)), "lattice").gap
        0.0
    """

    lower: float
    upper: float
    first: int
    nodes: int
    horizon: int

    @property
    def gap(self) -> float:
        """How much is not known."""
        return self.upper - self.lower


@dataclass
class Level:
    """Nodes after the same number of releases, sorted by key.

    `live` are the nodes where another release may pay, known once the level was expanded; `children` are their
    positions in the next level, or a negative code.
    """

    depth: int
    keys: Int[np.ndarray, " N"]
    spent: Int[np.ndarray, " N"] | None
    live: Int[np.ndarray, " M"] | None = None
    children: Int[np.ndarray, "M A Z"] | None = None


class Outlook(NamedTuple):
    """One release from each of N nodes. What may come is weighted with its probability: no division is needed."""

    law: Float[np.ndarray, "N A Z"]
    stop: Float[np.ndarray, "N A Z"]
    forbidden: Bool[np.ndarray, "N A Z"]
    allowed: Bool[np.ndarray, "N A"]
    spent: Int[np.ndarray, "N A"] | None


def solve_lattice(
    task: Task,
    horizon: int | None = None,
    tolerance: float = TOLERANCE,
    max_nodes: int = 10_000_000,
    report: Callable[[int, int], None] | None = None,
) -> Bracket:
    """Bracket the optimal cost of a small task.

    Without a horizon the lattice is deepened until the bracket is narrower than `tolerance` or `max_nodes` are held.
    `report` is called with the depth and the number of nodes after each level.
    """
    if not solvable(task):
        raise InputError(f"The lattice solves tasks that enforce by penalty or mask, not by {task.enforcement.name!r}.")
    if task.panel:
        raise InputError(
            "The lattice follows one belief, but the bound is kept for a panel of providers. Leave it out."
        )
    lattice = Lattice(task, horizon)
    levels, checked = [], 1
    for levels in lattice.grow(max_nodes, report):
        if horizon is None and (nodes := count(levels)) >= 2 * checked:
            checked = nodes
            if (bracket := lattice.bracket(levels)).gap <= tolerance:
                return bracket
    return lattice.bracket(levels)


def solvable(task: Task) -> bool:
    """Whether readings are sent as they are, so that histories fold into counts, and the cost is that of the stop."""
    enforcement = task.enforcement
    plain = enforcement.releases and not enforcement.replaces and not enforcement.priced
    return plain and (enforcement.ends_on_crossing or enforcement.promise is Promise.NEVER)


def count(levels: list[Level]) -> int:
    """Nodes of all levels."""
    return sum(level.keys.size for level in levels)


class Lattice:
    """The tables of one task, and the two passes over its levels: `grow` forward, `bracket` backward."""

    def __init__(self, task: Task, horizon: int | None) -> None:
        sensors, secrets, useful, symbols = task.model.channel.shape
        kinds = sensors * symbols
        # All counts but the last, which the depth implies, are packed into one 64-bit key.
        self.bits = 63 // max(kinds - 1, 1)
        self.horizon, self.deepest = horizon, horizon or 2**self.bits - 1
        if self.deepest >= 2**self.bits or self.bits < 2:
            raise InputError(
                f"{sensors} sensors of {symbols} symbols are too many for the lattice"
                f"{f' at horizon {horizon}' if horizon else ''}. It suits up to about nine pairs of sensor and "
                "symbol; train an agent instead."
            )
        self.objective, self.bound, self.enforcement = task.objective, task.bound, task.enforcement
        self.shape = (sensors, symbols)
        self.prior = task.model.prior.reshape(-1)
        channel = np.moveaxis(task.model.channel, -1, 1).reshape(kinds, secrets * useful)
        self.never = (channel == 0).astype(float)
        self.log_channel = np.log(np.where(channel == 0, 1.0, channel))
        # beta @ useful_joint[u] is P(u, a, z); beta @ secret_joint[s] is P(s, a, z).
        secret_of, useful_of = np.divmod(np.arange(secrets * useful), useful)
        self.useful_joint = [(channel * (useful_of == u)).T for u in range(useful)]
        self.secret_joint = [(channel * (secret_of == s)).T for s in range(secrets)]
        self.useful_of = np.eye(useful)[useful_of]
        self.secret_of = np.eye(secrets)[secret_of]
        stride = [1 << (self.bits * kind) for kind in range(kinds - 1)]
        self.stride = np.array([*stride, 0], np.int64).reshape(self.shape)

    def root(self) -> Level:
        spent = np.zeros(1, np.int64) if self.bound.on_spending else None
        return Level(0, np.zeros(1, np.int64), spent)

    def grow(self, max_nodes: int, report: Callable[[int, int], None] | None) -> Iterator[list[Level]]:
        """The same list of levels, deeper each time, until the horizon, or nothing is left to expand, or too much."""
        levels = [self.root()]
        yield levels
        while levels[-1].keys.size and len(levels) <= self.deepest and count(levels) < max_nodes:
            levels.append(self.expand(levels[-1]))
            if report:
                report(len(levels) - 1, count(levels))
            yield levels
        if self.horizon is not None and levels[-1].keys.size and len(levels) <= self.horizon:
            raise InputError(
                f"{self.horizon} releases need more than {max_nodes} nodes (depth {len(levels) - 1} was reached): "
                "take a shorter horizon or allow more nodes."
            )

    def expand(self, level: Level) -> Level:
        """The next level; fills in `level.live` and `level.children`."""
        lives, codes, keys, spendings = [], [], [], []
        for node, beliefs in self.chunks(level):
            look = self.look(level, node, beliefs)
            live = self._lower(look) < self.stop_cost(beliefs)
            reached = ((look.law > 0) & ~look.forbidden & look.allowed[:, :, None])[live]
            lives.append(node[live])
            codes.append(np.where(reached, 0, np.where(look.forbidden[live], FORBIDDEN, UNREACHED)).astype(np.int32))
            keys.append((level.keys[node][live, None, None] + self.stride)[reached])
            if look.spent is not None:
                spendings.append(np.broadcast_to(look.spent[live, :, None], reached.shape)[reached])
        level.live, level.children = np.concatenate(lives), np.concatenate(codes)
        keys, spent, position = _distinct(np.concatenate(keys), np.concatenate(spendings) if spendings else None)
        level.children[level.children == 0] = position
        return Level(level.depth + 1, keys, spent)

    def bracket(self, levels: list[Level]) -> Bracket:
        """Backward induction, lower and upper side by side."""
        last = levels[-1]
        values = self._stops(last)
        for node, beliefs in self.chunks(last):
            values[0, node] = np.minimum(values[0, node], self._lower(self.look(last, node, beliefs)))
        first = self.shape[0]
        for level in reversed(levels[:-1]):
            values, first = self._back_up(level, values)
        lower, upper = values[:, 0].tolist()
        return Bracket(lower, upper, first, count(levels), last.depth)

    def _back_up(self, level: Level, following: Float[np.ndarray, "2 L"]) -> tuple[Float[np.ndarray, "2 N"], int]:
        """V = min(stop, min_a C_T + sum_z p(z) V'), and the first node's best action on the upper side."""
        assert level.live is not None
        assert level.children is not None
        values = self._stops(level)
        # The two negative codes of `children` point to the padding: nothing follows there.
        padded = np.pad(following, ((0, 0), (0, 2)))
        first, start = self.shape[0], 0
        for node, beliefs in self.chunks(level, level.live):
            look = self.look(level, node, beliefs)
            child = level.children[start : start + node.size]
            start += node.size
            costs = [self._cost(look, look.law * side[child]) for side in padded]
            if node[0] == 0 and costs[1][0].min() < values[1, 0]:
                first = int(costs[1][0].argmin())
            values[:, node] = np.minimum(values[:, node], [cost.min(1) for cost in costs])
        return values, first

    def _lower(self, look: Outlook) -> Float[np.ndarray, " N"]:
        """Lower bound on the continuation value: after one release, at best the stop or one more release settles it."""
        return self._cost(look, np.minimum(look.stop, self.objective.time_cost * look.law)).min(1)

    def _cost(self, look: Outlook, following: Float[np.ndarray, "N A Z"]) -> Float[np.ndarray, "N A"]:
        """C_T + sum_z p(z) V'(beta_z), with C_B for V' in F; infinite where the sensor is not allowed."""
        entered = self.enforcement.release_cost(self.objective, self.bound, False, True) - self.objective.time_cost
        cost = self.objective.time_cost + np.where(look.forbidden, entered * look.law, following).sum(2)
        return np.where(look.allowed, cost, np.inf)

    def look(self, level: Level, node: Int[np.ndarray, " N"], beliefs: Float[np.ndarray, "N SU"]) -> Outlook:
        """One release from each of these nodes of a level."""
        shape = (node.size, *self.shape)
        useful = [beliefs @ joint for joint in self.useful_joint]
        law = np.sum(useful, axis=0)
        stop = self.objective.error_penalty * (law - np.max(useful, axis=0))
        forbidden, allowed, spent = np.zeros(shape, bool), np.ones(shape[:2], bool), None
        secret = [beliefs @ joint for joint in self.secret_joint]
        if not self.bound.on_spending:
            forbidden = (self.bound.entered(np.stack(secret), law) & (law > 0)).reshape(shape)
            if not self.enforcement.ends_on_crossing:
                allowed = ~forbidden.any(2)
        else:
            assert level.spent is not None
            bits = _information_bits(beliefs @ self.secret_of, np.stack(secret), law).reshape(shape).sum(2)
            spent = level.spent[node][:, None] + np.rint(bits * UNITS_PER_BIT).astype(np.int64)
            allowed = spent < self.bound.number * UNITS_PER_BIT
        return Outlook(law.reshape(shape), stop.reshape(shape), forbidden, allowed, spent)

    def stop_cost(self, beliefs: Float[np.ndarray, "N SU"]) -> Float[np.ndarray, " N"]:
        """lambda (1 - max_u beta(u))."""
        return self.objective.error_penalty * (1 - (beliefs @ self.useful_of).max(1))

    def _stops(self, level: Level) -> Float[np.ndarray, "2 N"]:
        """Stop cost of every node, once for each side of the bracket."""
        values = np.empty((2, level.keys.size))
        for node, beliefs in self.chunks(level):
            values[:, node] = self.stop_cost(beliefs)
        return values

    def chunks(
        self, level: Level, nodes: Int[np.ndarray, " N"] | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The nodes in pieces that fit the cache, with their beliefs."""
        nodes = np.arange(level.keys.size) if nodes is None else nodes
        for start in range(0, nodes.size, CHUNK):
            node = nodes[start : start + CHUNK]
            yield node, self._beliefs(level.keys[node], level.depth)

    def _beliefs(self, keys: Int[np.ndarray, " N"], depth: int) -> Float[np.ndarray, "N SU"]:
        """beta(s, u), proportional to p(s, u) prod_az q(z | a, s, u)^n[a, z]."""
        shifts = self.bits * np.arange(self.stride.size - 1)
        counts = np.empty((keys.size, self.stride.size))
        counts[:, :-1] = (keys[:, None] >> shifts) & (2**self.bits - 1)
        counts[:, -1] = depth - counts[:, :-1].sum(1)
        logs = counts @ self.log_channel
        logs[(counts @ self.never > 0) | (self.prior == 0)] = -np.inf
        joint = self.prior * np.exp(logs - logs.max(1, keepdims=True))
        return joint / joint.sum(1, keepdims=True)


def _distinct(
    keys: Int[np.ndarray, " M"], spent: Int[np.ndarray, " M"] | None
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"] | None, Int[np.ndarray, " M"]]:
    """Distinct (key, spent) pairs in order, and where each given one is among them."""
    order = np.argsort(keys, kind="stable") if spent is None else np.lexsort((spent, keys))
    new = np.ones(keys.size, bool)
    new[1:] = np.diff(keys[order]) != 0
    if spent is not None:
        new[1:] |= np.diff(spent[order]) != 0
    position = np.empty(keys.size, np.int32)
    position[order] = np.cumsum(new) - 1
    return keys[order][new], None if spent is None else spent[order][new], position


def _information_bits(
    secret: Float[np.ndarray, "N S"], joint: Float[np.ndarray, "S N AZ"], law: Float[np.ndarray, "N AZ"]
) -> Float[np.ndarray, "N AZ"]:
    """Share of each symbol in I_a(beta): sum_s P(s, z) log2 (P(s, z) / (beta(s) p(z)))."""
    return np.sum([rel_entr(joint[s], secret[:, s, None] * law) for s in range(len(joint))], axis=0) / np.log(2)
