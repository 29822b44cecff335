"""Whether the sensors tell the useful values apart, which the paper assumes before its theorem 2."""

from itertools import combinations

from scipy.special import rel_entr

from reticent.problem.bound import ROUNDING
from reticent.problem.model import Model


def indistinguishable(model: Model) -> list[tuple[str, str]]:
    """Pairs of useful values that no single sensor tells apart under every secret.

    The paper wants, for u and u', some a with D(q(. | a, s, u) || q(. | a, s, u')) > 0 for all s. A secret under which
    one of the two cannot be does not count.
    """
    names, found = model.useful, []
    for u, v in combinations(range(len(names)), 2):
        both = (model.prior[:, u] > 0) & (model.prior[:, v] > 0)
        divergence = rel_entr(model.channel[:, both, u], model.channel[:, both, v]).sum(-1)
        if not (divergence > ROUNDING).all(1).any():
            found.append((names[u], names[v]))
    return found


def useful_values_told_apart(model: Model) -> str | None:
    """A sentence for those that are not; nothing where all are."""
    pairs = indistinguishable(model)
    if not pairs:
        return None
    named = ", ".join(f"{u!r} and {v!r}" for u, v in pairs)
    return (
        f"No single sensor tells the useful values {named} apart under every secret, which the paper assumes. The "
        "provider may never learn which of them it is: add a sensor that tells them apart, or make one value of them."
    )
