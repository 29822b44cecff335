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

Nobody may rely on what comes back: `reticent.guard.safety` checks it. Where numba is not installed the same functions
are interpreted.
"""

import numpy as np

try:
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


@_jit
def _weight(row_m, row_j, option, z, excess):
    """What a reading adds to a row (m, j) when it is sent as this option."""
    return excess[row_j, z] if option == row_m else 0.0


@_jit
def _clear(matrix):
    """Zero everywhere; compiled assignments to slices are slower."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] = 0.0


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
def _basis(size, rows, pairs, key, excess, matrix):
    """B[i, k]: by how much a share of pair k, taken from its reading's key, changes row i."""
    for i in range(size):
        for k in range(size):
            o, z = pairs[k, 0], pairs[k, 1]
            matrix[i, k] = _weight(rows[i, 0], rows[i, 1], o, z, excess)
            matrix[i, k] -= _weight(rows[i, 0], rows[i, 1], key[z], z, excess)


@_jit
def _shares(size, rows, pairs, key, excess, matrix, order, t, sums):
    """Shares of the pairs, and the sums of all rows with them, options first; False for a singular basis."""
    _clear(sums)
    for z in range(key.size):
        for j in range(excess.shape[0]):
            sums[key[z], j] += excess[j, z]
    _basis(size, rows, pairs, key, excess, matrix)
    if not _factor(matrix, size, order):
        return False
    for i in range(size):
        t[i] = -sums[rows[i, 0], rows[i, 1]]
    _solve(matrix, size, order, t)
    for k in range(size):
        o, z = pairs[k, 0], pairs[k, 1]
        for j in range(excess.shape[0]):
            sums[o, j] += t[k] * excess[j, z]
            sums[key[z], j] -= t[k] * excess[j, z]
    return True


@_jit
def _worst_row(size, rows, pairs, key, t, excess, sums, least):
    """The row without a multiplier that is violated most: (m, j, by how much), or m = 0."""
    m_worst, j_worst, worst = 0, 0, least
    for m in range(1, sums.shape[0]):
        for j in range(sums.shape[1]):
            if sums[m, j] > worst and sums[m, j] > OF_ROW * _absolute(m, j, size, pairs, key, t, excess):
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
def _absolute(m, j, size, pairs, key, t, excess):
    """The sum of a row with absolute values."""
    together = 0.0
    for z in range(key.size):
        if key[z] == m:
            together += abs(excess[j, z])
    for k in range(size):
        if pairs[k, 0] == m or key[pairs[k, 1]] == m:
            together += abs(t[k] * excess[j, pairs[k, 1]])
    return together


@_jit
def _worst_pair(size, pairs, t, worst):
    """The pair, and whether its reading's key, has the share furthest below zero, if that is worse: (k, key?, how)."""
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
def _take_off(size, rows, cost, prices):
    """Prices without multipliers for the options of these rows."""
    for i in range(size):
        for z in range(cost.shape[1]):
            prices[rows[i, 0], z] = cost[rows[i, 0], z]


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
def _add_rates(size, rows, mu, excess, prices):
    for i in range(size):
        for z in range(prices.shape[1]):
            prices[rows[i, 0], z] += mu[i] * excess[rows[i, 1], z]


@_jit
def _next_flip(z, start, size, pairs, key, prices, rates):
    """When the first option undercuts the key of a reading, from `start` on, and which: (infinity, -1) if none does."""
    at, option, own = np.inf, -1, key[z]
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
def _first_flips(size, pairs, key, prices, rates, own, flips, options):
    """`_next_flip` of every reading, from the start of a step."""
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
        z = pairs[k, 1]
        flips[z], options[z] = _next_flip(z, 0.0, size, pairs, key, prices, rates)


@_jit
def _long_step(slope, size, pairs, key, mu, dmu, prices, rates, own, flips, options, waiting):
    """How far to go, and what enters: (step, option, z), or (step, -1, i) where the multiplier of row i reaches zero.

    Keys are flipped on the way. The option -2 says that nothing ends the rise.
    """
    row_at, row = np.inf, -1
    for i in range(size):
        if dmu[i] < -TINY and mu[i] / -dmu[i] < row_at:
            row_at, row = mu[i] / -dmu[i], i
    _first_flips(size, pairs, key, prices, rates, own, flips, options)
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
        option = options[z]
        drop = rates[key[z], z] - rates[option, z]
        has_pair = False
        for k in range(size):
            has_pair = has_pair or pairs[k, 1] == z
        if has_pair or not slope - drop > 0.0:
            return flips[z], option, z
        slope -= drop
        key[z] = option
        flips[z], options[z] = _next_flip(z, flips[z], size, pairs, key, prices, rates)
        if not flips[z] < row_at:
            left -= 1
            waiting[first] = waiting[left]
    return (row_at, -1, row) if row >= 0 else (0.0, -2, -1)


@_jit
def _direction(size, rows, pairs, key, excess, matrix, order, m, j, leaving, dmu):
    """Rates of the multipliers: row (m, j) gets one at rate 1, or the pair `leaving` becomes dearer at rate 1."""
    for k in range(size):
        o, z = pairs[k, 0], pairs[k, 1]
        dmu[k] = _weight(m, j, key[z], z, excess) - _weight(m, j, o, z, excess) if m > 0 else 0.0
    if m == 0:
        dmu[leaving] = 1.0
    _solve_transposed(matrix, size, order, dmu)


@_jit
def _exchange(size, rows, mu, pairs, m, j, step, leaving, option, z):
    """The basis after a step; its new size."""
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
def _workspace(options, readings, count):
    """Room for one program after the other: rows, pairs and row exchanges; mu, dmu and t; B; sums; prices; keys."""
    numbers = np.zeros((2 * MOST_ROWS + 3, 2), np.int64)
    return (
        numbers[: MOST_ROWS + 1],
        numbers[MOST_ROWS + 1 : -1],
        np.zeros(MOST_ROWS + 1, np.int64),
        np.zeros((3, MOST_ROWS + 1)),
        np.zeros((MOST_ROWS + 1, MOST_ROWS + 1)),
        np.zeros((options, count)),
        np.zeros((2, options, readings)),
        np.zeros((3, readings), np.int64),
        np.zeros((3, readings)),
    )


@_jit
def _iterate(cost, excess, raw, x, workspace):
    """One run of the dual simplex; writes the kernel to x."""
    rows, pairs, order, vectors, matrix, sums, priced, choices, own = workspace
    mu, dmu, t = vectors[0], vectors[1], vectors[2]
    prices, rates = priced[0], priced[1]
    key, flip_options, waiting, flips = choices[0], choices[1], choices[2], own[2]
    readings = cost.shape[1]
    size, least = 0, OF_ALL_ROWS * _largest_row(excess)
    _price(cost, raw, prices)
    _cheapest(prices, key, flips)
    for _ in range(200 + 20 * sums.size):
        if not _shares(size, rows, pairs, key, excess, matrix, order, t, sums):
            return FAILED
        m, j, slope = _worst_row(size, rows, pairs, key, t, excess, sums, least)
        leaving, of_key, worst = _worst_pair(size, pairs, t, slope)
        if leaving >= 0:
            m, slope = 0, worst
        elif m == 0:
            _write(size, pairs, key, t, x)
            return OPTIMAL
        if of_key:
            z = pairs[leaving, 1]
            pairs[leaving, 0], key[z] = key[z], pairs[leaving, 0]
            _basis(size, rows, pairs, key, excess, matrix)
            if not _factor(matrix, size, order):
                return FAILED
        _direction(size, rows, pairs, key, excess, matrix, order, m, j, leaving, dmu)
        _clear(rates)
        _add_rates(size, rows, dmu, excess, rates)
        if m > 0:
            for z in range(readings):
                rates[m, z] += excess[j, z]
        step, option, z = _long_step(slope, size, pairs, key, mu, dmu, prices, rates, own, flips, flip_options, waiting)
        if option == -2 or (m > 0 and option >= 0 and size == MOST_ROWS):
            return FAILED
        for i in range(size):
            mu[i] = max(mu[i] + step * dmu[i], 0.0)
        _take_off(size, rows, cost, prices)
        size = _exchange(size, rows, mu, pairs, m, j, step, leaving, option, z)
        _add_rates(size, rows, mu, excess, prices)
    return FAILED


@_jit
def _write(size, pairs, key, t, x):
    """The kernel: the keys, less what the pairs take from them."""
    _clear(x)
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
def _solve_one(cost, excess, raw, x, shifted, workspace):
    """The cheapest kernel of one program, written to x; else the one that merges everything into the first symbol."""
    if _iterate(cost, excess, raw, x, workspace) == OPTIMAL:
        return OPTIMAL
    for shift in SHIFTS:
        _shift(cost, shift, shifted)
        if _iterate(shifted, excess, raw, x, workspace) == OPTIMAL:
            return OPTIMAL
    _clear(x)
    x[1] = 1.0
    return FAILED


@njit(cache=True, error_model="numpy")
def solve(cost, excess, raw, x):
    """The cheapest kernels x [N O Z] of programs with cost [N O Z], excess [N J Z] and raw [N Z]; how many failed."""
    failed, shifted = 0, np.zeros(cost.shape[1:])
    workspace = _workspace(cost.shape[1], cost.shape[2], excess.shape[1])
    for n in range(cost.shape[0]):
        failed += _solve_one(cost[n], excess[n], raw[n], x[n], shifted, workspace)
    return failed
