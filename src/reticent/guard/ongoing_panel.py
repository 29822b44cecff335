"""A panel of providers whose hidden pair moves: the moments of each, and the rows of all.

Providers stand along an axis P of every array. What one provider needs is written once, in `reticent.guard.moments`;
rules run it for each: `Each` makes of a function of one provider that of all.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from reticent.errors import InputError
from reticent.guard.chain import chain_of, slots_of
from reticent.guard.moments import Chain, Moments, correct, first_moment, pass_time, rows_of
from reticent.guard.rows import Rows
from reticent.problem.model import Model
from reticent.types import Index

Each = Callable[[Callable[..., Any]], Callable[..., Any]]


class OngoingPanel(NamedTuple):
    """What each provider takes for true: p(s, u), q(z | a, s, u), and how the pair moves."""

    prior: Float[Any, "P S U"]
    channel: Float[Any, "P A S U Z"]
    chain: Chain

    @classmethod
    def of(cls, models: Sequence[Model], limits: Float[np.ndarray, " S"]) -> "OngoingPanel":
        """Of these models; those that need fewer future rows than others get as many."""
        chains = [_chain(number, model, limits) for number, model in enumerate(models, 1)]
        rows = max(len(chain.ahead) for chain in chains)
        chain = stacked([_reaching(chain, rows) for chain in chains])
        return cls(np.stack([model.prior for model in models]), np.stack([model.channel for model in models]), chain)


def panel_slots(models: Sequence[Model], limits: Float[np.ndarray, " S"]) -> int:
    """How many past moments to have slots for, so that there are enough for each provider."""
    return max((slots_of(model, _chain(number, model, limits)) for number, model in enumerate(models, 1)), default=0)


def begin(each: Each, panel: OngoingPanel, slots: int) -> Moments:
    """Nothing was sent yet."""
    return each(lambda prior: first_moment(prior, slots))(panel.prior)


def hear(
    each: Each, panel: OngoingPanel, moments: Moments, sensor: Index | int, chances: Float[Any, " Z"]
) -> tuple[Moments, Bool[Any, ""]]:
    """After the sensor has sent a symbol, and whether every provider holds that possible.

    `chances` are those of each reading to be sent as that symbol.
    """
    told, possible = each(correct)(moments, panel.channel[:, sensor] @ chances)
    return told, possible.all()


def move(each: Each, panel: OngoingPanel, moments: Moments) -> Moments:
    """One step of time."""
    return each(pass_time)(panel.chain, moments)


def panel_rows(each: Each, panel: OngoingPanel, moments: Moments) -> Rows:
    """The rows of each provider."""
    return each(rows_of)(panel.chain, moments, panel.channel)


def in_turn(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of one provider, for all of them one after the other."""

    def run(*given: Any) -> Any:
        count = len(given[0]) if isinstance(given[0], np.ndarray) else len(given[0][0])
        return stacked([function(*(_mapped(lambda x, i=i: x[i], tree) for tree in given)) for i in range(count)])

    return run


def stacked(trees: Sequence[Any]) -> Any:
    """Records of arrays along a first axis."""
    return _mapped(lambda *arrays: np.stack(arrays), *trees)


def _mapped(function: Callable[..., Any], *trees: Any) -> Any:
    """A record of what the function says of the arrays of these records, one by one."""
    first = trees[0]
    if first is None:
        return None
    if not isinstance(first, tuple):
        return function(*trees)
    parts = [_mapped(function, *fields) for fields in zip(*trees, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def _chain(number: int, model: Model, limits: Float[np.ndarray, " S"]) -> Chain:
    try:
        return chain_of(model, limits)
    except InputError as error:
        raise InputError(f"For the provider with model {number} of the panel: {error}") from error


def _reaching(chain: Chain, rows: int) -> Chain:
    """The chain with so many future rows: more than it needs do no harm."""
    ahead = list(chain.ahead)
    while len(ahead) < rows:
        ahead.append(ahead[-1] @ chain.transition.T)
    return chain._replace(ahead=np.array(ahead))
