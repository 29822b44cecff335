"""The secret at every moment, of a hidden pair that moves: past, present and future as rows of the guard.

With X_t = (S_t, U_t) the pair as one state x and b(x) = P(X_t = x | sent), the rows are, for every secret s,

    present and future    w(x) = b(x) P(S_{t+k} = s | X_t = x) = b(x) (T^k 1_s)(x),    k = 0 .. K
    past                  w(x) = P(S_j = s, X_t = x | sent),    for every moment j < t that is still open.

K is finite: further ahead max_x (T^k 1_s)(x) is below the limit, whatever the belief. Time turns the row k + 1 into the
row k, so rows that hold now hold after it: silence is always safe. A past row starts as the present one; time and what
is sent move it like the belief, w <- w T and w <- w l / p. Its moment is *retired* once max_x w(x) / b(x) is below the
limit for every secret: whatever is sent later, the posterior of S_j is an average of these quotients.

Open moments take slots. A moment that finds none is *missed*: nothing may be sent until it is retired, too. In the n
steps of silence since the last such moment l the quotient of any earlier moment j is an average,

    P(S_j = s | X_t = x') <= P(S_j = s) max_x T^n(x' | x) / b(x'),

so they are all retired once that is below the limit with the largest P(S_j = s) of them.

Of the rows of one moment the last secret's is kept implicitly, as what the others leave of the belief.
"""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float

from reticent.belief.bayes import secret_marginal, update
from reticent.guard.rows import PerRow, Rows, paced
from reticent.problem.merging import RETIRED

Weights = Float[Any, "*J X"]


class Chain(NamedTuple):
    """What the guard must know of a model that moves: T, P(S_{t+k} = s | X_t = x) for k = 0 .. K, and the limits."""

    transition: Float[Any, "X X"]
    ahead: Float[Any, "K S X"]
    limits: Float[Any, " S"]


class Moments(NamedTuple):
    """What everybody can compute from what was sent, and the guard goes by.

    `past` [M R X] are the rows of open moments, R all secrets but the last, and `open` says which slots hold one.
    `missed` [S] is the largest P(S_j = s) of missed moments that are not retired, zero where there are none, and
    `since` is T^n for the n steps since the last of them. `panel` are the moments of further providers for whom the
    bound is kept, along a first axis; the functions below are of one provider and leave it alone.
    """

    belief: Float[Any, "S U"]
    past: Float[Any, "M R X"]
    open: Bool[Any, " M"]
    missed: Float[Any, " S"]
    since: Float[Any, "X X"]
    panel: Any = None


def first_moment(prior: Float[Any, "S U"], slots: int) -> Moments:
    """Nothing was sent yet."""
    xp, (secrets, useful) = prior.__array_namespace__(), prior.shape
    past = xp.zeros((slots, secrets - 1, secrets * useful))
    return Moments(prior, past, xp.zeros(slots, bool), xp.zeros(secrets), xp.eye(secrets * useful))


def correct(moments: Moments, likelihood: Float[Any, "S U"]) -> tuple[Moments, Bool[Any, ""]]:
    """After something was sent, and whether the model calls that possible: w <- w l / p.

    Nothing else may be sent while moments are missed, so `since` need not change.
    """
    xp = likelihood.__array_namespace__()
    belief, possible = update(moments.belief, likelihood)
    mass = (moments.belief * likelihood).sum()
    scale = likelihood.reshape(-1) / xp.where(possible, mass, 1.0)
    return moments._replace(belief=belief, past=moments.past * xp.where(possible, scale, 1.0)[None, None]), possible


def pass_time(chain: Chain, moments: Moments) -> Moments:
    """One step of time: the present becomes a past moment, everything moves, and what is over is retired."""
    opened = _open_present(chain, moments) if len(moments.past) else moments
    belief = opened.belief.reshape(-1) @ chain.transition
    moved = opened._replace(
        belief=belief.reshape(moments.belief.shape),
        past=opened.past @ chain.transition,
        since=opened.since @ chain.transition,
    )
    return _retire(chain, moved) if len(moments.past) else moved


def rows_of(chain: Chain, moments: Moments, channel: Float[Any, "A S U Z"]) -> Rows:
    """All rows as the readings of each sensor move them; those of empty slots hold whatever is sent."""
    xp, (sensors, symbols) = channel.__array_namespace__(), (len(channel), channel.shape[-1])
    weights, kept = _weights(chain, moments), _kept(chain, moments)
    flat = channel.reshape(sensors, -1, symbols)
    law = moments.belief.reshape(-1) @ flat
    # [J R A Z], and the last secret of each moment.
    event = (weights.reshape(-1, weights.shape[-1]) @ flat).swapaxes(0, 1).reshape(*weights.shape[:2], *law.shape)
    event = xp.concatenate([event, law[None, None] - event.sum(1, keepdims=True)], axis=1)
    event = xp.where(kept[:, None, None, None], event, 0.0).reshape(-1, *law.shape)
    value, limits = row_values(chain, moments)
    return Rows(event, law[None], value, limits, paced(value, limits))


def row_values(chain: Chain, moments: Moments) -> tuple[PerRow, PerRow]:
    """P(E_j) of every row and its limit; zero for those of empty slots."""
    xp = moments.belief.__array_namespace__()
    weights, kept = _weights(chain, moments), _kept(chain, moments)
    value = weights.sum(-1)
    value = xp.concatenate([value, moments.belief.sum() - value.sum(1, keepdims=True)], axis=1)
    value = xp.where(kept[:, None], value, 0.0)
    return value.reshape(-1), xp.broadcast_to(chain.limits[None], value.shape).reshape(-1)


def all_retired(moments: Moments) -> Bool[Any, ""]:
    """Whether no missed moment is left, so that something may be sent."""
    return (moments.missed == 0).all()


def _weights(chain: Chain, moments: Moments) -> Float[Any, "J R X"]:
    """w(x) of the present, the future and the past, of all secrets but the last."""
    xp = moments.belief.__array_namespace__()
    return xp.concatenate([moments.belief.reshape(-1)[None, None] * chain.ahead[:, :-1], moments.past])


def _kept(chain: Chain, moments: Moments) -> Bool[Any, " J"]:
    xp = moments.belief.__array_namespace__()
    return xp.concatenate([xp.ones(len(chain.ahead), bool), moments.open])


def _open_present(chain: Chain, moments: Moments) -> Moments:
    """The present takes the first empty slot; without one it is missed."""
    xp = moments.belief.__array_namespace__()
    empty = ~moments.open
    first = empty & (xp.cumsum(empty) == 1)
    present = moments.belief.reshape(-1)[None] * chain.ahead[0, :-1]
    full = ~empty.any()
    missed = xp.maximum(moments.missed, secret_marginal(moments.belief))
    return moments._replace(
        past=xp.where(first[:, None, None], present[None], moments.past),
        open=moments.open | first,
        missed=xp.where(full, missed, moments.missed),
        since=xp.where(full, xp.eye(len(moments.since)), moments.since),
    )


def _retire(chain: Chain, moments: Moments) -> Moments:
    """What can never reach the limit again is retired; RETIRED is more than rounding adds up to."""
    xp, belief = moments.belief.__array_namespace__(), moments.belief.reshape(-1)
    safe = (chain.limits - RETIRED)[:, None] * belief[None]
    weights = xp.concatenate([moments.past, belief[None, None] - moments.past.sum(1, keepdims=True)], axis=1)
    over = ((weights < safe[None]) | (belief == 0)[None, None]).all((1, 2))
    still = moments.open & ~over
    reach = xp.where(belief > 0, moments.since.max(0) / xp.where(belief > 0, belief, 1.0), 0.0).max()
    gone = (moments.missed * reach < chain.limits - RETIRED).all()
    return moments._replace(
        past=xp.where(still[:, None, None], moments.past, 0.0),
        open=still,
        missed=xp.where(gone, 0.0, moments.missed),
    )
