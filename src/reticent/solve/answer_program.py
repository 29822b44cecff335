"""The linear program that chooses the rule for answers: the cheapest whose every cell is safe, estimates included.

    minimise    lambda P(u != answer) + C_T E[time of the answer]
    over        k(c | x) >= 0, sum_c k(c | x) = 1, no answer before reading has ended, but for blind ones at the start
    subject to  excess(k(c | .), s) <= 0  for every answer, every silence and every secret

The excess is convex, so each violated condition is replaced by its tangent and the program is solved again, until the
rule passes: no rule that is safe is ever cut off. A cell that is hardly used is closed. Always to answer blindly is
safe, as the prior is below the bound, so there is always a solution.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.optimize import linprog

from reticent.problem.objective import Objective
from reticent.solve.answer_limits import Moments, Reach, excess, excesses, slopes
from reticent.types import Array, Scalar

# Chances this small are the solver's rounding.
NOTHING = 1e-7
# Tangents are taken of conditions a little stricter than what must pass, so that the iteration ends.
STRICTER = 1.2
# The program's rule is exact to about 1e-7: cells that no source enters with more than this chance are closed.
LEAST_CHANCE = 1e-4
MOST_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Program:
    """What the rule is chosen from: private reading as estimated, and what the provider must not learn."""

    times: Int[np.ndarray, " K"]
    moments: Moments
    prior: Float[np.ndarray, "S U"]
    limit: float
    objective: Objective

    @property
    def useful(self) -> int:
        """Number of useful values: of guesses, and of answers."""
        return self.prior.shape[1]


class Flows:
    """The program's variables: k(c | x) where c is not before x, then the chance of each blind answer."""

    def __init__(self, times: int, useful: int) -> None:
        ended, guess, time, answer = (index.ravel() for index in np.indices((times, useful, times, useful)))
        later = time >= ended
        self.times, self.useful = times, useful
        self.source = (ended * useful + guess)[later]
        self.time, self.answer = time[later], answer[later]
        self.count = len(self.source) + useful
        self.to_weights = self._to_weights()

    @property
    def sources(self) -> int:
        """Number of sources; also of cells with an answer."""
        return self.times * self.useful

    @property
    def cells(self) -> int:
        """Answers, then silences."""
        return self.sources + self.times - 1

    def _to_weights(self) -> sparse.csr_array:
        """From the variables to the weights of all sources in all cells, [C X] in one."""
        blind = len(self.source) + np.arange(self.useful).repeat(self.sources)
        columns = [np.arange(len(self.source)), blind]
        cells = [self.time * self.useful + self.answer, blind - len(self.source)]
        sources = [self.source, np.tile(np.arange(self.sources), self.useful)]
        for time in range(self.times - 1):
            silent = np.flatnonzero(self.time > time)
            columns.append(silent)
            cells.append(np.full(len(silent), self.sources + time))
            sources.append(self.source[silent])
        rows = np.concatenate(cells) * self.sources + np.concatenate(sources)
        shape = self.cells * self.sources, self.count
        return sparse.csr_array((np.ones(len(rows)), (rows, np.concatenate(columns))), shape)

    def weights(self, flows: Float[np.ndarray, " V"]) -> Float[np.ndarray, "C X"]:
        """Weights of the sources in every cell: each answer, then each silence but the last, which never is."""
        return (self.to_weights @ flows).reshape(self.cells, self.sources)


def safe_weights(program: Program, reach: Reach) -> Float[np.ndarray, "C X"]:
    """Weights k(c | x) of the cheapest rule that is safe as far as the sample can tell; blind if none is found."""
    flows = Flows(len(program.times), program.useful)
    closed = np.zeros(flows.cells, bool)
    everywhere = np.ones((flows.cells, len(program.prior)), bool)
    cuts = [_cuts(program, flows, np.ones((flows.cells, flows.sources)), Reach(0.0, 0.0), everywhere)]
    for _ in range(MOST_ROUNDS):
        found = _solve(program, flows, sparse.csr_array(sparse.vstack(cuts)), closed)
        if found is None:
            break
        weights = flows.weights(found)
        most = weights.max(1)
        unsafe = (excesses_of(program, weights, reach) >= 0) & (most > 0)[:, None]
        if not unsafe.any():
            return weights
        # Only answers can be closed: who still reads is silent.
        closed |= unsafe.any(1) & (most < LEAST_CHANCE) & (np.arange(flows.cells) < flows.sources)
        cuts.append(_cuts(program, flows, weights, reach.wider(STRICTER), unsafe))
    return blind_weights(program)


def blind_weights(program: Program) -> Float[np.ndarray, "C X"]:
    """Weights of the rule that always answers at once what is likeliest beforehand."""
    flows = Flows(len(program.times), program.useful)
    always = np.zeros(flows.count)
    always[len(flows.source) + program.prior.sum(0).argmax()] = 1.0
    return flows.weights(always)


def _solve(
    program: Program, flows: Flows, cuts: sparse.csr_array, closed: Bool[np.ndarray, " C"]
) -> Float[np.ndarray, " V"] | None:
    """The variables at the optimum of one linear program, as an exact kernel."""
    free = len(flows.source)
    cell = np.append(flows.time * flows.useful + flows.answer, np.arange(flows.useful))
    of_source = sparse.csr_array((np.ones(free), (flows.source, np.arange(free))), (flows.sources, free))
    total = sparse.hstack([of_source, np.ones((flows.sources, flows.useful))])
    # Nothing is known of sources that the sample has not: they are answered last, among others.
    known = (program.moments.mass > 0)[flows.source] | (flows.time == flows.times - 1)
    open_ = ~closed[cell] & np.append(known, np.ones(flows.useful, bool))
    bounds = np.stack([np.zeros(flows.count), open_], 1)
    costs = _costs(program, flows)
    found = linprog(costs, cuts, np.zeros(cuts.indptr.size - 1), total, np.ones(flows.sources), bounds).x
    if found is None:
        return None
    # Chances below the solver's tolerance are none, and all are scaled so that they sum to one to the last digit.
    found = np.where(found < NOTHING, 0.0, found)
    blind = found[free:].sum()
    if blind > 1 - LEAST_CHANCE:
        return np.append(np.zeros(free), found[free:] / blind)
    scale = (1 - blind) / (of_source @ found[:free])
    return np.append(found[:free] * scale[flows.source], found[free:])


def _costs(program: Program, flows: Flows) -> Float[np.ndarray, " V"]:
    """What each variable adds to the expected cost."""
    price, law = program.objective, program.moments.law(program.prior).sum(1)
    wrong = law.sum(1, keepdims=True) - law
    told = price.error_penalty * wrong[flows.source, flows.answer]
    waited = price.time_cost * program.times[flows.time] * law.sum(1)[flows.source]
    return np.append(told + waited, price.error_penalty * (1 - program.prior.sum(0)))


def excesses_of(program: Program, weights: Float[np.ndarray, "C X"], reach: Reach) -> Float[np.ndarray, "C S"]:
    """The excess of every cell and secret over the program's limit."""
    slope = weights @ slopes(program.moments, program.limit)
    limit = np.full(len(weights), program.limit)
    return excesses(weights, slope, program.moments, program.prior.sum(1), limit, reach)


def _tangent(weights, slopes, moments, prior, limit, reach) -> Float[Array, " X"]:
    """Derivative of the excess of one cell and secret by the weights."""

    def of(weights: Float[Array, " X"]) -> Scalar:
        return excess(weights, weights @ slopes, moments, prior, limit, reach)

    return jax.grad(of)(weights)


# Over secrets, then over cells.
_all_tangents = jax.jit(
    jax.vmap(jax.vmap(_tangent, (None, 1, (None, 1, 1), 0, None, None)), (0, None, (None,) * 3, None, None, None))
)


def tangents_of(program: Program, weights: Float[np.ndarray, "C X"], reach: Reach) -> Float[np.ndarray, "C S X"]:
    """Derivatives of the excesses by the weights of their cell; times the weights, they are the excesses themselves."""
    moments = program.moments
    return np.asarray(
        _all_tangents(
            weights,
            slopes(moments, program.limit),
            (moments.mass, moments.secret, moments.square),
            program.prior.sum(1),
            program.limit,
            (reach.deviations, reach.ranges),
        )
    )


def _cuts(
    program: Program,
    flows: Flows,
    weights: Float[np.ndarray, "C X"],
    reach: Reach,
    of: Bool[np.ndarray, "C S"],
) -> sparse.csr_array:
    """Tangents of the excess at these weights as rows over the variables, for the chosen cells and secrets."""
    cell, secret = np.nonzero(of)
    rows = tangents_of(program, weights, reach)[cell, secret]
    # The solver's tolerance is absolute: rows of one size make it a tolerance of the chances.
    rows = rows / abs(rows).max(1, keepdims=True)
    columns = cell[:, None] * flows.sources + np.arange(flows.sources)
    pointers = np.arange(len(cell) + 1) * flows.sources
    shape = len(cell), flows.cells * flows.sources
    blocks = sparse.csr_array((rows.ravel(), columns.ravel(), pointers), shape)
    return blocks @ flows.to_weights
