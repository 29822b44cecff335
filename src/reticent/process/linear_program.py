"""Many small linear programs at once: which reading is sent as it is, and which is merged with others.

One program per belief and sensor. Option 0 sends the reading z as it is, option m >= 1 sends the merged symbol m:

    minimise    sum_oz cost[o, z] x[o, z]
    subject to  sum_o x[o, z] = 1,   x >= 0,   x[0, z] = 0 where z may not be sent as it is,
                sum_z x[m, z] excess[s, z] <= 0   for every merged symbol m and secret s.

Primal-dual interior points with Mehrotra's predictor and corrector, from a start that is strictly feasible on both
sides, for a fixed number of iterations. Only the (merged symbols x secrets) Schur complement is ever inverted. The
batch is the last axis of every array, in pieces that fit the cache: on CPUs twice as fast as vmapping.

What comes back is positive but not exact. Nobody may rely on it to be feasible: `guarantee` checks.
"""

from itertools import combinations_with_replacement
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from reticent.problem.merging import BACK_OFF, ITERATIONS
from reticent.types import Array

PIECE = 64


@jax.custom_batching.custom_vmap
def cheapest_kernels(
    cost: Float[Array, "O Z *B"], excess: Float[Array, "S Z *B"], raw: Bool[Array, "Z ..."]
) -> Float[Array, "O Z *B"]:
    """The kernels x[o, z] of least cost; `raw` says which readings may be sent as they are.

    The sum of excess[s] over z must be negative for every s: merging everything is then strictly feasible.
    """
    batch = raw.shape[1:]
    count = int(np.prod(batch))
    piece = min(count, PIECE)
    pad = -count % piece

    def pieces(x: Array) -> Array:
        x = x.reshape(*x.shape[: x.ndim - len(batch)], count)
        # The last piece is filled up with copies of the first program.
        x = jnp.concatenate([x, jnp.repeat(x[..., :1], pad, axis=-1)], axis=-1)
        return jnp.moveaxis(x.reshape(*x.shape[:-1], -1, piece), -2, 0)

    kernels = jax.lax.map(lambda program: _interior_point(*program), (pieces(cost), pieces(excess), pieces(raw)))
    kernels = jnp.moveaxis(kernels, 0, -2).reshape(*cost.shape[:2], -1)
    return kernels[..., :count].reshape(cost.shape)


@cheapest_kernels.def_vmap
def _batch_last(axis_size: int, in_batched: list[bool], *arrays: Array) -> tuple[Array, bool]:
    """Under vmap the new batch axis joins the others at the end."""
    last = [
        jnp.moveaxis(x, 0, -1) if batched else jnp.repeat(x[..., None], axis_size, axis=-1)
        for x, batched in zip(arrays, in_batched, strict=True)
    ]
    return jnp.moveaxis(cheapest_kernels(*last), -1, 0), True


class _Point(NamedTuple):
    """Primal x with slack w of the safety constraints, and dual: reduced cost d >= 0, multiplier mu >= 0 of safety."""

    x: Float[Array, "O Z B"]
    w: Float[Array, "M S B"]
    d: Float[Array, "O Z B"]
    mu: Float[Array, "M S B"]


def _interior_point(
    cost: Float[Array, "O Z B"], excess: Float[Array, "S Z B"], raw: Bool[Array, "Z B"]
) -> Float[Array, "O Z B"]:
    options = jnp.concatenate([raw[None], jnp.ones_like(cost[1:], bool)]).astype(cost.dtype)
    products = jnp.stack([excess[s] * excess[t] for s, t in _pairs(len(excess))])

    def improve(_, point: _Point) -> _Point:
        return _step(point, options, excess, products)

    point = jax.lax.fori_loop(0, ITERATIONS, improve, _start(cost, options, excess))
    return point.x * options


def _start(cost: Array, options: Array, excess: Array) -> _Point:
    """Merge everything evenly, and as much raw as leaves half of the slack; duals that are feasible for sure."""
    symbols = len(cost) - 1
    slack, slack_of_raw = -excess.sum(1), -(options[:1] * excess).sum(1)
    share = 0.5 * jnp.minimum(1.0, jnp.min(slack / jnp.maximum(slack_of_raw, 1e-300), axis=0))
    raw = share[None] * options[0]
    x = jnp.concatenate([raw[None], jnp.repeat((1 - raw)[None] / symbols, symbols, axis=0)])
    w = -_per_secret(x[1:], excess)
    centre = jnp.mean(jnp.abs(cost) * options, axis=(0, 1))
    mu = centre[None, None] / w
    priced = cost + _priced(mu, excess)
    floor = jnp.min(jnp.where(options > 0, priced, jnp.inf), axis=0) - 4 * centre[None]
    # Options that do not exist stand at 1 with a direction of 0, out of the way.
    exists = options > 0
    return _Point(jnp.where(exists, x, 1.0), w, jnp.where(exists, priced - floor[None], 1.0), mu)


def _step(point: _Point, options: Array, excess: Array, products: Array) -> _Point:
    """One predictor-corrector step; a step to a point that is not strictly inside is not taken."""
    x, w, d, mu = point
    weight = options * x / d
    per_reading = 1 / weight.sum(0)
    inverse = _inverse(_schur(weight, per_reading, products, w / mu))
    complementarity, constraints = options * x * d, w * mu
    count = options.sum((0, 1)) + constraints.shape[0] * constraints.shape[1]

    def direction(for_x: Array, for_w: Array) -> _Point:
        push = options * for_x / d
        shift = push.sum(0) * per_reading
        right = _per_secret(push[1:] - weight[1:] * shift[None], excess) + for_w / mu
        dmu = (inverse * right.reshape(1, -1, right.shape[-1])).sum(1).reshape(mu.shape)
        priced = _priced(dmu, excess)
        dd = options * (priced - ((weight * priced).sum(0) * per_reading - shift)[None])
        return _Point(push - weight * dd, (for_w - w * dmu) / mu, dd, dmu)

    gap = (complementarity.sum((0, 1)) + constraints.sum((0, 1))) / count
    probe = direction(-complementarity, -constraints)
    primal, dual = (jnp.minimum(1.0, length) for length in _lengths(point, probe))
    left = (options * (x + primal * probe.x) * (d + dual * probe.d)).sum((0, 1))
    left = (left + ((w + primal * probe.w) * (mu + dual * probe.mu)).sum((0, 1))) / count
    target = (gap * (left / gap) ** 3)[None, None]
    way = direction(options * (target - probe.x * probe.d) - complementarity, target - probe.w * probe.mu - constraints)
    primal, dual = (jnp.minimum(1.0, BACK_OFF * length) for length in _lengths(point, way))
    new = _Point(x + primal * way.x, w + primal * way.w, d + dual * way.d, mu + dual * way.mu)
    inside = jnp.stack([jnp.min(part, axis=(0, 1)) for part in new]).min(0) > 0
    return _Point(*(jnp.where(inside[None, None], after, before) for after, before in zip(new, point, strict=True)))


def _lengths(point: _Point, way: _Point) -> tuple[Array, Array]:
    """How far primal and dual may go before something turns negative."""
    worst = [jnp.max(-step / value, axis=(0, 1)) for step, value in zip(way, point, strict=True)]
    primal, dual = jnp.maximum(worst[0], worst[1]), jnp.maximum(worst[2], worst[3])
    return 1 / jnp.maximum(primal, 1e-300)[None, None], 1 / jnp.maximum(dual, 1e-300)[None, None]


def _schur(weight: Array, per_reading: Array, products: Array, diagonal: Array) -> Float[Array, "MS MS B"]:
    """What is left of Newton's equations once x, w and the equalities are eliminated; symmetric in m and in s."""
    symbols, secrets = diagonal.shape[:2]
    merged = weight[1:]
    blocks = jnp.stack(
        [(merged[m] if m == n else 0.0) - merged[m] * merged[n] * per_reading for m, n in _pairs(symbols)]
    )
    sums = (blocks[:, None] * products[None]).sum(2)
    m, s = np.divmod(np.arange(symbols * secrets), secrets)
    matrix = sums[_pair_index(symbols)[m[:, None], m], _pair_index(secrets)[s[:, None], s]]
    own = np.arange(symbols * secrets)
    return matrix.at[own, own].add(diagonal.reshape(-1, diagonal.shape[-1]))


def _inverse(matrix: Float[Array, "N N B"]) -> Float[Array, "N N B"]:
    """Inverse of a positive definite matrix by sweeping each pivot in turn, for the whole batch at once."""

    def sweep(k: Array, matrix: Array) -> Array:
        row, column = matrix[None, k], matrix[:, None, k]
        pivot = row[:, k, None]
        own = (jnp.arange(len(matrix)) == k)[:, None, None]
        swept = jnp.where(own, row / pivot, matrix - column * row / pivot)
        return jnp.where(own.swapaxes(0, 1), jnp.where(own, 1 / pivot, -column / pivot), swept)

    return jax.lax.fori_loop(0, len(matrix), sweep, matrix)


def _per_secret(x: Float[Array, "M Z B"], excess: Float[Array, "S Z B"]) -> Float[Array, "M S B"]:
    return (x[:, None] * excess[None]).sum(2)


def _priced(mu: Float[Array, "M S B"], excess: Float[Array, "S Z B"]) -> Float[Array, "O Z B"]:
    """sum_s mu[m, s] excess[s, z]; nothing for option 0."""
    merged = (mu[:, :, None] * excess[None]).sum(1)
    return jnp.concatenate([jnp.zeros_like(merged[:1]), merged])


def _pairs(count: int) -> list[tuple[int, int]]:
    return list(combinations_with_replacement(range(count), 2))


def _pair_index(count: int) -> np.ndarray:
    """Where the unordered pair (i, j) stands in `_pairs`."""
    index = np.empty((count, count), int)
    for position, (i, j) in enumerate(_pairs(count)):
        index[i, j] = index[j, i] = position
    return index
