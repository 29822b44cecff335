"""A lower bound on the cost of every policy, by information relaxation (Brown, Smith & Sun 2010).

Draw the hidden pair and, for each sensor, all the readings it will ever give. A clairvoyant who sees them could only do
better than any policy, so each release also pays what this knowledge is worth, as far as a value V can tell:

    Q_a(beta) - (cost of z + V(beta_z)),    Q_a(beta) = sum_z p(z | beta, a) (cost of z + V(beta_z)).

That is zero in the mean for whoever does not know z, whatever V is, so no policy pays more in expectation and the mean
of the clairvoyant's least costs is a lower bound. With the optimal V it is the optimal cost itself, on every draw.

The hidden pair never changes and the readings of one sensor are exchangeable, so the clairvoyant's state is how many
readings of each sensor are taken: a shortest path over these counts, where a release costs the regret Q_a - V. Two cuts
keep it finite. Both are decided without knowing the future, so the bound stays valid:
- where stopping is provably optimal, because one more release could not pay even if it settled everything, it stops;
- a path that has paid more than the value at the prior plus `SPARE`, even if it ended here at a cost that no policy
  can go below, ends here.

The clairvoyant goes where V errs. `scout` returns such beliefs, for V to be refined there (solve/refine.py).
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from reticent.errors import InputError
from reticent.policy.lookahead import ValueFunction, q_values
from reticent.process.cores import cores
from reticent.process.process import Process
from reticent.solve.one_step_bound import least_continuation, least_costs
from reticent.types import Array, Belief

# Draws that are planned side by side, and beliefs per compiled call.
DRAWS, BELIEFS = 32, 64
# Plans per round of scouts: fixed, so that what is learned does not depend on the number of cores.
SCOUTING = 2
LONGEST = 200
# What a path may pay above the value at the prior, in releases. Scouts give up paths with this much regret already.
SPARE, SCOUTED = 1.0, 4.0


class Node(NamedTuple):
    """Beliefs as the clairvoyant finds them: their value, and what stopping there costs.

    `least`: no policy that goes on from there pays less.
    """

    value: Any
    stop: Any
    least: Any
    forbidden: Any


class Look(NamedTuple):
    """One release of each sensor: its expected cost to go under V, and one that no policy can go below."""

    cost: Any
    least: Any


class LowerBoundDraws(NamedTuple):
    """The clairvoyant's least cost on each draw, whose mean is a lower bound in expectation.

    `excess` is by how much V exceeded the continuation value under V, at most, at all the beliefs looked from.
    """

    cost: Float[np.ndarray, " N"]
    excess: float


class Looked(NamedTuple):
    """Beliefs that the clairvoyant looked from, and each sensor's cost to go there under V."""

    belief: Float[np.ndarray, "N S U"]
    costs: Float[np.ndarray, "N A"]


def lower_bound_draws(
    process: Process,
    value: ValueFunction,
    count: int,
    seed: int,
    report: Callable[[int], None] | None = None,
) -> LowerBoundDraws:
    """The lower bound from `count` independent draws.

    `report` is called with the number of draws that are done.
    """
    if (LONGEST + 1) ** process.sensors * DRAWS >= 2**63:
        raise InputError(f"{process.sensors} sensors are too many for the dual bound.")
    pieces = []
    for plan in _plans(process, value, -(-count // DRAWS), DRAWS, seed, scouting=False):
        pieces.append(plan)
        if report:
            report(min(len(pieces) * DRAWS, count))
    excess = max(plan.excess for plan in pieces)
    return LowerBoundDraws(np.concatenate([plan.cost for plan in pieces])[:count], excess)


def scout(process: Process, value: ValueFunction, draws: int, seed: int) -> Looked:
    """Where a clairvoyant goes on some draws."""
    plans = list(_plans(process, value, SCOUTING, -(-draws // SCOUTING), seed, scouting=True))
    return _joined([plan.looked for plan in plans])


def _joined(parts: list[Looked]) -> Looked:
    return Looked(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class _Plan(NamedTuple):
    """The least cost on each draw, the largest excess of V, and where the clairvoyant looked."""

    cost: Float[np.ndarray, " D"]
    excess: float
    looked: Looked


def _plans(
    process: Process, value: ValueFunction, count: int, draws: int, seed: int, scouting: bool
) -> Iterator[_Plan]:
    """Plans of so many independent draws each, side by side on all cores."""
    seeds = np.random.SeedSequence(seed).spawn(count)
    with ThreadPoolExecutor(len(cores())) as pool:
        yield from pool.map(lambda seed: _plan(process, value, draws, np.random.default_rng(seed), scouting), seeds)


def _plan(process: Process, value: ValueFunction, count: int, rng: np.random.Generator, scouting: bool) -> _Plan:
    """Level by level: one more release each."""
    draws = _Draws(process, count, rng)
    root = _nodes(process, value, np.asarray(process.prior)[None])
    start, excess = root.value[0], 0.0
    looked = [Looked(np.zeros((0, *process.prior.shape)), np.zeros((0, process.sensors)))]
    spare = (SCOUTED if scouting else SPARE) * float(process.objective.time_cost)
    # What a path costs that is given up for having paid too much.
    least = np.full(count, start + spare)
    draw, counts, regret = np.arange(count), np.zeros((count, process.sensors), np.int64), np.zeros(count)
    here = Node(*(np.repeat(x, count) for x in root))
    for _ in range(LONGEST):
        np.minimum.at(least, draw, start + regret + here.stop - here.value)
        end = here.value if scouting else np.minimum(here.stop, here.least)
        kept = (here.least < here.stop) & (regret + end - here.value < spare)
        draw, counts, regret, here = draw[kept], counts[kept], regret[kept], Node(*(x[kept] for x in here))
        if not draw.size:
            break
        beliefs = draws.beliefs(draw, counts)
        look = _looks(process, value, beliefs)
        continuation = look.cost.min(1)
        looked.append(Looked(beliefs, look.cost))
        excess = max(excess, float(np.max(here.value - continuation)))
        parent, sensor = np.nonzero(look.least < here.stop[:, None])
        if not parent.size:
            break
        reached = regret[parent] + look.cost[parent, sensor] - here.value[parent]
        keys, first, child = np.unique(draws.keys(draw, counts, parent, sensor), return_index=True, return_inverse=True)
        counts = counts[parent]
        counts[np.arange(parent.size), sensor] += 1
        origin, draw, counts = draw[parent], draw[parent][first], counts[first]
        regret = np.full(keys.size, np.inf)
        np.minimum.at(regret, child, reached)
        here = _nodes(process, value, draws.beliefs(draw, counts))
        # Entering F ends the episode; what that costs is already in the regret.
        ended = here.forbidden[child]
        np.minimum.at(least, origin[ended], start + reached[ended])
        going = ~here.forbidden
        draw, counts, regret, here = draw[going], counts[going], regret[going], Node(*(x[going] for x in here))
    else:
        np.minimum.at(least, draw, start + regret + np.minimum(here.stop, here.least) - here.value)
    return _Plan(least, excess, _joined(looked))


class _Draws:
    """Hidden pairs and all the readings to come; the belief after any number of each sensor's."""

    def __init__(self, process: Process, count: int, rng: np.random.Generator) -> None:
        prior, channel = np.asarray(process.prior), np.asarray(process.channel)
        sensors, secrets, useful, symbols = channel.shape
        laws = channel.reshape(sensors, secrets * useful, symbols)
        pair = rng.choice(prior.size, count, p=prior.reshape(-1))
        cumulative = np.cumsum(laws[:, pair], axis=-1)
        drawn = rng.random((sensors, count, LONGEST, 1)) * cumulative[:, :, None, -1:]
        # Counting what lies below never gives a symbol of probability zero.
        readings = np.stack(
            [[(c <= r).sum(-1) for c, r in zip(*pairs, strict=True)] for pairs in zip(cumulative, drawn, strict=True)]
        )
        with np.errstate(divide="ignore"):
            logs, self.log_prior = np.log(np.moveaxis(laws, -1, 1)), np.log(prior.reshape(-1))
        self.logs = np.zeros((sensors, count, LONGEST + 1, prior.size))
        for sensor in range(sensors):
            self.logs[sensor, :, 1:] = np.cumsum(logs[sensor][readings[sensor]], axis=1)
        self.shape = prior.shape

    def beliefs(self, draw: Int[np.ndarray, " N"], counts: Int[np.ndarray, "N A"]) -> Float[np.ndarray, "N S U"]:
        """beta(s, u), proportional to p(s, u) times the likelihood of the first n_a readings of each sensor."""
        logs = self.log_prior + sum(self.logs[sensor, draw, counts[:, sensor]] for sensor in range(counts.shape[1]))
        joint = np.exp(logs - logs.max(1, keepdims=True))
        return (joint / joint.sum(1, keepdims=True)).reshape(-1, *self.shape)

    def keys(self, draw, counts, parent, sensor) -> Int[np.ndarray, " E"]:
        """One number for each node that an edge leads to."""
        places = (LONGEST + 1) ** np.arange(counts.shape[1] + 1)
        return (counts @ places[:-1] + draw * places[-1])[parent] + places[sensor]


def _nodes(process: Process, value: ValueFunction, beliefs: Float[np.ndarray, "N S U"]) -> Node:
    return Node(*_in_chunks(lambda chunk: _node(process, value, chunk), beliefs))


def _looks(process: Process, value: ValueFunction, beliefs: Float[np.ndarray, "N S U"]) -> Look:
    return Look(*_in_chunks(lambda chunk: _look(process, value, chunk), beliefs))


def _in_chunks(run: Callable[[Array], tuple], beliefs: Float[np.ndarray, "N S U"]) -> Iterator[np.ndarray]:
    """Calls of one size, the last one padded, so that nothing is compiled twice."""
    padded = np.concatenate([beliefs, np.repeat(beliefs[-1:], -len(beliefs) % BELIEFS, axis=0)])
    parts = [jax.device_get(run(jnp.asarray(padded[i : i + BELIEFS]))) for i in range(0, len(padded), BELIEFS)]
    return (np.concatenate(columns)[: len(beliefs)] for columns in zip(*parts, strict=True))


@eqx.filter_jit
def _node(process: Process, value: ValueFunction, beliefs: Float[Array, "N S U"]) -> Node:
    def one(belief: Belief) -> Node:
        stop, least = process.stop_cost(belief), least_continuation(process, belief)
        return Node(value(belief, jnp.zeros(())), stop, least, process.crossed(belief, jnp.zeros(())))

    return jax.lax.map(one, beliefs, batch_size=8)


@eqx.filter_jit
def _look(process: Process, value: ValueFunction, beliefs: Float[Array, "N S U"]) -> Look:
    def one(belief: Belief) -> Look:
        public = process.public(belief, jnp.zeros(()))
        least = jnp.where(public.allowed[:-1], least_costs(process, process.outlook(public)), jnp.inf)
        return Look(q_values(process, value, public), least)

    return jax.lax.map(one, beliefs, batch_size=8)
