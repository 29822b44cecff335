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
SHIFTS = (0.0, 1e-9, 1e-7)
# Rows with a multiplier at the most.
MOST_ROWS = 128

# Only `solve` is called from Python: the others need no wrapper, which is quicker to compile.
_jit = njit(cache=True, error_model="numpy", no_cpython_wrapper=True)  # pyright: ignore[reportCallIssue]


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
def _basis(size, rows, pairs, key, excess, matrix):
    """B[i, k]: by how much a share of pair k, taken from its reading's key, changes row i."""
    for i in range(size):
        for k in range(size):
            o, z = pairs[k, 0], pairs[k, 1]
            matrix[i, k] = _weight(rows[i, 0], rows[i, 1], o, z, excess)
            matrix[i, k] -= _weight(rows[i, 0], rows[i, 1], key[z], z, excess)


@_jit
def _add(sums, sizes, option, z, share, excess):
    """Add a share of one reading to the sums of all rows of an option, and to those of absolute values."""
    if option > 0:
        for j in range(excess.shape[0]):
            sums[option - 1, j] += share * excess[j, z]
            sizes[option - 1, j] += abs(share * excess[j, z])


@_jit
def _shares(size, rows, pairs, key, excess, matrix, order, t, sums, sizes):
    """Shares of the pairs, and the sums of all rows with them; False for a singular basis."""
    sums[:], sizes[:] = 0.0, 0.0
    for z in range(key.size):
        _add(sums, sizes, key[z], z, 1.0, excess)
    _basis(size, rows, pairs, key, excess, matrix)
    if not _factor(matrix, size, order):
        return False
    for i in range(size):
        t[i] = -sums[rows[i, 0] - 1, rows[i, 1]]
    _solve(matrix, size, order, t)
    for k in range(size):
        o, z = pairs[k, 0], pairs[k, 1]
        _add(sums, sizes, o, z, t[k], excess)
        _add(sums, sizes, key[z], z, -t[k], excess)
    return True


@_jit
def _worst_row(size, rows, sums, sizes, least):
    """The row without a multiplier that is violated most: (m, j, by how much), or m = 0."""
    m_worst, j_worst, worst = 0, 0, 0.0
    for m in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            if sums[m, j] > worst and sums[m, j] > max(OF_ROW * sizes[m, j], least):
                active = False
                for i in range(size):
                    active = active or (rows[i, 0] == m + 1 and rows[i, 1] == j)
                if not active:
                    m_worst, j_worst, worst = m + 1, j, sums[m, j]
    return m_worst, j_worst, worst


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
def _price(size, rows, mu, cost, raw, excess, prices):
    """P[o, z], infinite where a reading may not be sent as it is."""
    for o in range(cost.shape[0]):
        for z in range(cost.shape[1]):
            prices[o, z] = cost[o, z]
    for z in range(cost.shape[1]):
        if not raw[z]:
            prices[0, z] = np.inf
    _add_rates(size, rows, mu, excess, prices)


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
def _long_step(slope, size, pairs, key, mu, dmu, prices, rates, flips, options):
    """How far to go, and what enters: (step, option, z), or (step, -1, i) where the multiplier of row i reaches zero.

    Keys are flipped on the way. The option -2 says that nothing ends the rise.
    """
    row_at, row = np.inf, -1
    for i in range(size):
        if dmu[i] < -TINY and mu[i] / -dmu[i] < row_at:
            row_at, row = mu[i] / -dmu[i], i
    for z in range(key.size):
        flips[z], options[z] = _next_flip(z, 0.0, size, pairs, key, prices, rates)
    for _ in range(4 * key.size):
        z = np.argmin(flips)
        if row_at <= flips[z]:
            return (row_at, -1, row) if row >= 0 else (0.0, -2, -1)
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
    return 0.0, -2, -1


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
        rows[z], mu[z] = rows[size], mu[size]
        pairs[leaving] = pairs[size]
    return size


@_jit
def _workspace(options, readings, count):
    """Room for one program after the other: rows, pairs and row exchanges; mu, dmu and t; B; sums; prices; keys."""
    numbers = np.zeros((2 * MOST_ROWS + 3, 2), np.int64)
    return (
        numbers[: MOST_ROWS + 1],
        numbers[MOST_ROWS + 1 : -1],
        np.zeros(MOST_ROWS + 1, np.int64),
        np.zeros((3, MOST_ROWS + 1)),
        np.zeros((MOST_ROWS + 1, MOST_ROWS + 1)),
        np.zeros((2, options - 1, count)),
        np.zeros((2, options, readings)),
        np.zeros((2, readings), np.int64),
        np.zeros(readings),
    )


@_jit
def _iterate(cost, excess, raw, x, workspace):
    """One run of the dual simplex; writes the kernel to x."""
    rows, pairs, order, vectors, matrix, row_sums, priced, choices, flips = workspace
    mu, dmu, t = vectors[0], vectors[1], vectors[2]
    sums, sizes, prices, rates = row_sums[0], row_sums[1], priced[0], priced[1]
    key, flip_options = choices[0], choices[1]
    readings, count = cost.shape[1], excess.shape[0]
    least = 0.0
    for j in range(count):
        together = 0.0
        for z in range(readings):
            together += abs(excess[j, z])
        least = max(least, OF_ALL_ROWS * together)
    size = 0
    _price(size, rows, mu, cost, raw, excess, prices)
    for z in range(readings):
        key[z] = np.argmin(prices[:, z])
    for _ in range(200 + 20 * sums.size):
        if not _shares(size, rows, pairs, key, excess, matrix, order, t, sums, sizes):
            return FAILED
        m, j, slope = _worst_row(size, rows, sums, sizes, least)
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
        rates[:] = 0.0
        _add_rates(size, rows, dmu, excess, rates)
        if m > 0:
            for z in range(readings):
                rates[m, z] += excess[j, z]
        step, option, z = _long_step(slope, size, pairs, key, mu, dmu, prices, rates, flips, flip_options)
        if option == -2 or (m > 0 and option >= 0 and size == MOST_ROWS):
            return FAILED
        for i in range(size):
            mu[i] = max(mu[i] + step * dmu[i], 0.0)
        size = _exchange(size, rows, mu, pairs, m, j, step, leaving, option, z)
        _price(size, rows, mu, cost, raw, excess, prices)
    return FAILED


@_jit
def _write(size, pairs, key, t, x):
    """The kernel: the keys, less what the pairs take from them."""
    x[:] = 0.0
    for z in range(key.size):
        x[key[z], z] = 1.0
    for k in range(size):
        o, z = pairs[k, 0], pairs[k, 1]
        x[o, z] += t[k]
        x[key[z], z] -= t[k]
    for o in range(x.shape[0]):
        for z in range(x.shape[1]):
            x[o, z] = max(x[o, z], 0.0)


@_jit
def _solve_one(cost, excess, raw, x, shifted, workspace):
    """The cheapest kernel of one program, written to x; else the one that merges everything into the first symbol."""
    largest = 0.0
    for o in range(cost.shape[0]):
        for z in range(cost.shape[1]):
            largest = max(largest, abs(cost[o, z]))
    for shift in SHIFTS:
        place = 0.0
        for o in range(cost.shape[0]):
            for z in range(cost.shape[1]):
                # Multiples of the golden ratio spread evenly: no two costs are shifted alike.
                place = (place + 0.6180339887498949) % 1.0
                shifted[o, z] = cost[o, z] + shift * largest * place
        if _iterate(shifted, excess, raw, x, workspace) == OPTIMAL:
            return OPTIMAL
    x[:] = 0.0
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
