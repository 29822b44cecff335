"""The programs of the guard, solved exactly by a bounded dual simplex. Scalar code, for numba to compile.

    minimise    sum_oz cost[o, z] x[o, z]
    subject to  sum_o x[o, z] = 1,   x >= 0,   x[0, z] = 0 where z may not be sent as it is,
                sum_z x[m, z] excess[j, z] <= 0   for every merged symbol m >= 1 and row j.

A row (m, j) that holds with equality has a multiplier mu >= 0 and prices its option: P[m, z] = cost[m, z] + sum_j mu
excess[j, z]. At a basis every reading has a *key*, one of its cheapest options; and there are as many *pairs* (o, z) of
another cheapest option as there are rows with a multiplier. The shares t of the pairs follow from these rows, and the
keys take the rest of their readings, so that the equalities never enter the basis (generalised upper bounds).

Each iteration takes the worst violation, a row or a share below zero, and moves the multipliers along the direction in
which the dual objective rises. Readings on the way are handed to the option that undercuts their key for as long as it
still rises (long-step ratio test, bounded flipping); the first that would end the rise enters the basis.

Nobody may rely on what comes back: `reticent.guard.safety` checks it. Where numba is not installed, or not wanted, the
same functions are interpreted.
"""

import os
from typing import Any, NamedTuple

import numpy as np

from reticent.guard.program import PLAIN

try:
    if os.environ.get(PLAIN):
        raise ImportError("numba is not wanted here")
    from numba import njit
except ImportError:  # pragma: no cover

    def njit(**_):  # type: ignore[no-redef]
        """Leave the function to the interpreter."""
        return lambda function: function


OPTIMAL, FAILED = 0, 1
# A row is violated beyond rounding, a share is out of its range beyond rounding.
OF_ROW, OF_ALL_ROWS, OF_SHARE = 1e-12, 2e-16, 1e-11
# Directions and pivots smaller than this are zero.
TINY = 1e-13
# Costs are shifted by about so much of their size where the exact ones lead nowhere.
SHIFTS = (1e-9, 1e-7)
# Rows with a multiplier at the most.
MOST_ROWS = 128

# Only `solve` is called from Python: the others need no wrapper, which is quicker to compile.
_allocating = njit(cache=True, error_model="numpy", no_cpython_wrapper=True)  # pyright: ignore[reportCallIssue]
# The rest are only handed arrays. Counting references to those, which numba does by default, took a third of the time.
_jit = njit(cache=True, error_model="numpy", no_cpython_wrapper=True, _nrt=False)  # pyright: ignore[reportCallIssue]


class Room(NamedTuple):
    """Arrays for one program after the other. The first `size` rows and pairs are in the basis.

    `rows` [K 2] are (m, j), `mu` their multipliers and `dmu` the rates of those; `pairs` [K 2] are (o, z), `shares` [K]
    theirs. `matrix` holds the LU factors of the basis, rows exchanged as `order` says; `sums` [O J] all rows, options
    first. `prices` [O Z] move at `rates`, those of the `key` of each reading are `own` [2 Z]. At `flips` [Z] another of
    the `options` [Z] undercuts the key; `waiting` are the readings for which that is still to come.
    """

    rows: Any
    pairs: Any
    order: Any
    mu: Any
    dmu: Any
    shares: Any
    matrix: Any
    sums: Any
    prices: Any
    rates: Any
    key: Any
    own: Any
    flips: Any
    options: Any
    waiting: Any


@_jit
def _weight(row_m, row_j, option, z, excess):
    """What a reading adds to a row (m, j) when it is sent as this option."""
    return excess[row_j, z] if option == row_m else 0.0


@_jit
def _factor(matrix, size, order):
    """LU factors in place, rows exchanged as `order` says; False for a singular matrix."""
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        order[k] = pivot
        if not abs(matrix[pivot, k]) > 0.0:
            return False
        for j in range(size):
            matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        for i in range(k + 1, size):
            matrix[i, k] /= matrix[k, k]
            for j in range(k + 1, size):
                matrix[i, j] -= matrix[i, k] * matrix[k, j]
    return True


@_jit
def _solve(matrix, size, order, x):
    """B x = right side, in place."""
    for k in range(size):
        x[k], x[order[k]] = x[order[k]], x[k]
        for i in range(k):
            x[k] -= matrix[k, i] * x[i]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            x[k] -= matrix[k, i] * x[i]
        x[k] /= matrix[k, k]


@_jit
def _solve_transposed(matrix, size, order, x):
    """B' x = right side, in place."""
    for k in range(size):
        for i in range(k):
            x[k] -= matrix[i, k] * x[i]
        x[k] /= matrix[k, k]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            x[k] -= matrix[i, k] * x[i]
    for k in range(size - 1, -1, -1):
        x[k], x[order[k]] = x[order[k]], x[k]


@_jit
def _basis(size, room, excess):
    """LU factors of B[i, k], by how much a share of pair k, taken from its reading's key, changes row i; False where
    they are singular."""
    rows, pairs, key, matrix = room.rows, room.pairs, room.key, room.matrix
    for i in range(size):
        for k in range(size):
            o, z = pairs[k, 0], pairs[k, 1]
            matrix[i, k] = _weight(rows[i, 0], rows[i, 1], o, z, excess)
            matrix[i, k] -= _weight(rows[i, 0], rows[i, 1], key[z], z, excess)
    return _factor(matrix, size, room.order)


@_jit
def _find_shares(size, room, excess):
    """Shares of the pairs, and the sums of all rows with them; False for a singular basis."""
    rows, pairs, key, t, sums = room.rows, room.pairs, room.key, room.shares, room.sums
    sums[:] = 0.0
    for z in range(key.size):
        for j in range(excess.shape[0]):
            sums[key[z], j] += excess[j, z]
    if not _basis(size, room, excess):
        return False
    for i in range(size):
        t[i] = -sums[rows[i, 0], rows[i, 1]]
    _solve(room.matrix, size, room.order, t)
    for k in range(size):
        o, z = pairs[k, 0], pairs[k, 1]
        for j in range(excess.shape[0]):
            sums[o, j] += t[k] * excess[j, z]
            sums[key[z], j] -= t[k] * excess[j, z]
    return True


@_jit
def _worst_row(size, room, excess, least):
    """The row without a multiplier that is violated most: (m, j, by how much), or m = 0."""
    rows, sums = room.rows, room.sums
    m_worst, j_worst, worst = 0, 0, least
    for m in range(1, sums.shape[0]):
        for j in range(sums.shape[1]):
            if sums[m, j] > worst and sums[m, j] > OF_ROW * _absolute(m, j, size, room, excess):
                active = False
                for i in range(size):
                    active = active or (rows[i, 0] == m and rows[i, 1] == j)
                if not active:
                    m_worst, j_worst, worst = m, j, sums[m, j]
    return m_worst, j_worst, worst if m_worst > 0 else 0.0


@_jit
def _largest_row(excess):
    """The largest sum of absolute values of a row."""
    largest = 0.0
    for j in range(excess.shape[0]):
        together = 0.0
        for z in range(excess.shape[1]):
            together += abs(excess[j, z])
        largest = max(largest, together)
    return largest


@_jit
def _absolute(m, j, size, room, excess):
    """The sum of a row with absolute values."""
    pairs, key, t = room.pairs, room.key, room.shares
    together = 0.0
    for z in range(key.size):
        if key[z] == m:
            together += abs(excess[j, z])
    for k in range(size):
        if pairs[k, 0] == m or key[pairs[k, 1]] == m:
            together += abs(t[k] * excess[j, pairs[k, 1]])
    return together


@_jit
def _worst_pair(size, room, worst):
    """The pair, and whether its reading's key, has the share furthest below zero, if that is worse: (k, key?, how)."""
    pairs, t = room.pairs, room.shares
    found, of_key = -1, False
    worst = max(worst, OF_SHARE)
    for k in range(size):
        if -t[k] > worst:
            found, of_key, worst = k, False, -t[k]
        together, largest = 0.0, k
        for i in range(size):
            if pairs[i, 1] == pairs[k, 1]:
                together += t[i]
                if t[i] > t[largest]:
                    largest = i
        if together - 1.0 > worst:
            found, of_key, worst = largest, True, together - 1.0
    return found, of_key, worst


@_jit
def _price(cost, raw, prices):
    """P[o, z] without multipliers, infinite where a reading may not be sent as it is."""
    for o in range(cost.shape[0]):
        for z in range(cost.shape[1]):
            prices[o, z] = cost[o, z]
    for z in range(cost.shape[1]):
        prices[0, z] = prices[0, z] if raw[z] else np.inf


@_jit
def _take_off(size, room, cost):
    """Prices without multipliers for the options of the rows."""
    for i in range(size):
        m = room.rows[i, 0]
        for z in range(cost.shape[1]):
            room.prices[m, z] = cost[m, z]


@_jit
def _cheapest(prices, key, least):
    """The first of the cheapest options of each reading, to `key`, and its price to `least`."""
    for z in range(key.size):
        key[z], least[z] = 0, prices[0, z]
    for o in range(1, prices.shape[0]):
        for z in range(key.size):
            cheaper = prices[o, z] < least[z]
            key[z] = o if cheaper else key[z]
            least[z] = prices[o, z] if cheaper else least[z]


@_jit
def _add(size, rows, mu, excess, prices):
    """Add to prices what the multipliers of the rows are worth, or to their rates what the rates of these are."""
    for i in range(size):
        for z in range(prices.shape[1]):
            prices[rows[i, 0], z] += mu[i] * excess[rows[i, 1], z]


@_jit
def _next_flip(z, start, size, room):
    """When the first option undercuts the key of a reading, from `start` on, and which: (infinity, -1) if none does."""
    pairs, prices, rates = room.pairs, room.prices, room.rates
    at, option, own = np.inf, -1, room.key[z]
    for o in range(prices.shape[0]):
        closing = rates[own, z] - rates[o, z]
        if o != own and closing > TINY and prices[o, z] < np.inf:
            basic = False
            for k in range(size):
                basic = basic or (pairs[k, 0] == o and pairs[k, 1] == z)
            when = max((prices[o, z] - prices[own, z]) / closing, start)
            if not basic and when < at:
                at, option = when, o
    return at, option


@_jit
def _first_flips(size, room):
    """`_next_flip` of every reading, from the start of a step."""
    key, prices, rates, own, flips, options = room.key, room.prices, room.rates, room.own, room.flips, room.options
    for z in range(key.size):
        own[0, z], own[1, z] = prices[key[z], z], rates[key[z], z]
        flips[z], options[z] = np.inf, -1
    for o in range(prices.shape[0]):
        for z in range(key.size):
            closing = own[1, z] - rates[o, z]
            when = max((prices[o, z] - own[0, z]) / closing, 0.0) if closing > TINY else np.inf
            sooner = when < flips[z]
            flips[z] = when if sooner else flips[z]
            options[z] = o if sooner else options[z]
    for k in range(size):
        z = room.pairs[k, 1]
        flips[z], options[z] = _next_flip(z, 0.0, size, room)


@_jit
def _long_step(slope, size, room):
    """How far to go, and what enters: (step, option, z), or (step, -1, i) where the multiplier of row i reaches zero.

    Keys are flipped on the way. The option -2 says that nothing ends the rise.
    """
    key, rates, flips, waiting = room.key, room.rates, room.flips, room.waiting
    row_at, row = np.inf, -1
    for i in range(size):
        if room.dmu[i] < -TINY and room.mu[i] / -room.dmu[i] < row_at:
            row_at, row = room.mu[i] / -room.dmu[i], i
    _first_flips(size, room)
    # Readings that are undercut at all, and before a multiplier reaches zero.
    left = 0
    for z in range(key.size):
        waiting[left] = z
        left += flips[z] < row_at
    while left > 0:
        first, at = 0, np.inf
        for i in range(left):
            when = flips[waiting[i]]
            first, at = (i, when) if when < at else (first, at)
        z = waiting[first]
        option = room.options[z]
        drop = rates[key[z], z] - rates[option, z]
        has_pair = False
        for k in range(size):
            has_pair = has_pair or room.pairs[k, 1] == z
        if has_pair or not slope - drop > 0.0:
            return flips[z], option, z
        slope -= drop
        key[z] = option
        flips[z], room.options[z] = _next_flip(z, flips[z], size, room)
        if not flips[z] < row_at:
            left -= 1
            waiting[first] = waiting[left]
    return (row_at, -1, row) if row >= 0 else (0.0, -2, -1)


@_jit
def _direction(size, room, excess, m, j, leaving):
    """Rates of the multipliers, where row (m, j) gets one at rate 1 or the pair `leaving` becomes dearer at rate 1; and
    of the prices."""
    key, dmu = room.key, room.dmu
    for k in range(size):
        o, z = room.pairs[k, 0], room.pairs[k, 1]
        dmu[k] = _weight(m, j, key[z], z, excess) - _weight(m, j, o, z, excess) if m > 0 else 0.0
    if m == 0:
        dmu[leaving] = 1.0
    _solve_transposed(room.matrix, size, room.order, dmu)
    room.rates[:] = 0.0
    _add(size, room.rows, dmu, excess, room.rates)
    if m > 0:
        for z in range(key.size):
            room.rates[m, z] += excess[j, z]


@_jit
def _exchange(size, room, m, j, step, leaving, option, z):
    """The basis after a step; its new size."""
    rows, pairs, mu = room.rows, room.pairs, room.mu
    if m > 0:
        i = size if option >= 0 else z
        rows[i, 0], rows[i, 1], mu[i] = m, j, step
        if option >= 0:
            pairs[size, 0], pairs[size, 1] = option, z
            size += 1
    elif option >= 0:
        pairs[leaving, 0], pairs[leaving, 1] = option, z
    else:
        size -= 1
        for side in range(2):
            rows[z, side] = rows[size, side]
            pairs[leaving, side] = pairs[size, side]
        mu[z] = mu[size]
    return size


@_allocating
def _new_room(options, readings, count):
    """Room for programs of this size with so many rows per option."""
    most = MOST_ROWS + 1
    return Room(
        rows=np.zeros((most, 2), np.int64),
        pairs=np.zeros((most, 2), np.int64),
        order=np.zeros(most, np.int64),
        mu=np.zeros(most),
        dmu=np.zeros(most),
        shares=np.zeros(most),
        matrix=np.zeros((most, most)),
        sums=np.zeros((options, count)),
        prices=np.zeros((options, readings)),
        rates=np.zeros((options, readings)),
        key=np.zeros(readings, np.int64),
        own=np.zeros((2, readings)),
        flips=np.zeros(readings),
        options=np.zeros(readings, np.int64),
        waiting=np.zeros(readings, np.int64),
    )


@_jit
def _iterate(cost, excess, raw, x, room):
    """One run of the dual simplex; writes the kernel to x."""
    key, pairs, mu = room.key, room.pairs, room.mu
    size, least = 0, OF_ALL_ROWS * _largest_row(excess)
    _price(cost, raw, room.prices)
    _cheapest(room.prices, key, room.flips)
    for _ in range(200 + 20 * room.sums.size):
        if not _find_shares(size, room, excess):
            return FAILED
        m, j, slope = _worst_row(size, room, excess, least)
        leaving, of_key, worst = _worst_pair(size, room, slope)
        if leaving >= 0:
            m, slope = 0, worst
        elif m == 0:
            _write(size, room, x)
            return OPTIMAL
        if of_key:
            z = pairs[leaving, 1]
            pairs[leaving, 0], key[z] = key[z], pairs[leaving, 0]
            if not _basis(size, room, excess):
                return FAILED
        _direction(size, room, excess, m, j, leaving)
        step, option, z = _long_step(slope, size, room)
        if option == -2 or (m > 0 and option >= 0 and size == MOST_ROWS):
            return FAILED
        for i in range(size):
            mu[i] = max(mu[i] + step * room.dmu[i], 0.0)
        _take_off(size, room, cost)
        size = _exchange(size, room, m, j, step, leaving, option, z)
        _add(size, room.rows, mu, excess, room.prices)
    return FAILED


@_jit
def _write(size, room, x):
    """The kernel: the keys, less what the pairs take from them."""
    pairs, key, t = room.pairs, room.key, room.shares
    x[:] = 0.0
    for z in range(key.size):
        x[key[z], z] = 1.0
    for k in range(size):
        o, z = pairs[k, 0], pairs[k, 1]
        x[o, z] += t[k]
        x[key[z], z] -= t[k]
    for k in range(size):
        o, z = pairs[k, 0], pairs[k, 1]
        x[o, z], x[key[z], z] = max(x[o, z], 0.0), max(x[key[z], z], 0.0)


@_jit
def _shift(cost, shift, shifted):
    """The costs, each shifted by another share of `shift` times the largest of them."""
    largest, place = 0.0, 0.0
    for o in range(cost.shape[0]):
        for z in range(cost.shape[1]):
            largest = max(largest, abs(cost[o, z]))
    for o in range(cost.shape[0]):
        for z in range(cost.shape[1]):
            # Multiples of the golden ratio spread evenly: no two costs are shifted alike.
            place = (place + 0.6180339887498949) % 1.0
            shifted[o, z] = cost[o, z] + shift * largest * place


@_jit
def _solve_one(cost, excess, raw, x, shifted, room):
    """The cheapest kernel of one program, written to x; else the one that merges everything into the first symbol."""
    if _iterate(cost, excess, raw, x, room) == OPTIMAL:
        return OPTIMAL
    for shift in SHIFTS:
        _shift(cost, shift, shifted)
        if _iterate(shifted, excess, raw, x, room) == OPTIMAL:
            return OPTIMAL
    x[:] = 0.0
    x[1] = 1.0
    return FAILED


@njit(cache=True, error_model="numpy")
def solve(cost, excess, raw, x):
    """The cheapest kernels x [N O Z] of programs with cost [N O Z], excess [N J Z] and raw [N Z]; how many failed."""
    failed, shifted = 0, np.zeros(cost.shape[1:])
    room = _new_room(cost.shape[1], cost.shape[2], excess.shape[1])
    for n in range(cost.shape[0]):
        failed += _solve_one(cost[n], excess[n], raw[n], x[n], shifted, room)
    return failed
