"""A provider whose prior of the secret is not known: every prior in a range.

What the provider thinks of the secret at first, P(S), may be any law with lo(s) <= P(s) <= hi(s) for the secrets that
have a range; those without one share the rest in the model's proportions. P(U | S) is the model's. Such laws form a
polytope, and each of them is a mixture of its corners. Whoever starts from a mixture of priors believes, after
anything that was sent, a weighted mean of what is believed from each of them. So a bound that holds for the corners, as
members of a panel, holds for every prior in the range.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np
from jaxtyping import Float

from reticent.errors import InputError
from reticent.problem.model import Model

Range = tuple[float, float]
# Corners nearer to each other than this are one.
SAME = 1e-12


def over_priors(model: Model, ranges: Mapping[str, Range]) -> Model:
    """The model with a panel of the extreme priors in these ranges: for itself, and for each provider it has already.

    Args:
        model: The model.
        ranges: Of some secrets, the least and the largest probability that a provider may give them at first.

    Returns:
        The model; its own prior stays what it was.

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> model = rt.over_priors(tells_useful(), {"s0": (0.4, 0.55)})
        >>> [member.prior.sum(1).round(2).tolist() for member in model.panel]
        [[0.4, 0.6], [0.55, 0.45]]
    """
    _check(model, ranges)
    panel = [
        {"prior": prior, "channel": each.channel, "transition": each.transition}
        for each in (model, *model.panel)
        for prior in extreme_priors(each.prior, {model.secrets.index(name): own for name, own in ranges.items()})
    ]
    return model.with_panel(panel)


def extreme_priors(prior: Float[np.ndarray, "S U"], ranges: Mapping[int, Range]) -> list[Float[np.ndarray, "S U"]]:
    """The corners: all but one of the probabilities at an end of their range, the last as what is left."""
    secret = prior.sum(1)
    free = np.array([s not in ranges for s in range(len(secret))])
    names = [*ranges, *([-1] if free.any() else [])]
    limits = [*ranges.values(), *([(0.0, 1.0)] if free.any() else [])]
    corners: list[Float[np.ndarray, " K"]] = []
    for left in range(len(limits)):
        for ends in product(*(own for k, own in enumerate(limits) if k != left)):
            corner = np.insert(np.array(ends), left, 1 - sum(ends))
            low, high = limits[left]
            if low - SAME <= corner[left] <= high + SAME and not any(
                np.allclose(corner, c, atol=SAME) for c in corners
            ):
                corners.append(np.clip(corner, 0, 1))
    return [_with_secret(prior, secret, free, dict(zip(names, corner.tolist(), strict=True))) for corner in corners]


def _with_secret(
    prior: Float[np.ndarray, "S U"], secret: Float[np.ndarray, " S"], free: np.ndarray, corner: dict[int, float]
) -> Float[np.ndarray, "S U"]:
    """The prior with these probabilities of secrets; -1 stands for those without a range together."""
    rest = corner.get(-1, 0.0) * secret / secret[free].sum() if free.any() else secret
    wanted = np.array([rest[s] if free[s] else corner[s] for s in range(len(secret))])
    return prior * (wanted / secret)[:, None]


def parsed_ranges(given: tuple[str, ...]) -> dict[str, Range]:
    """{"smokes": (0.2, 0.5)} of "smokes=0.2..0.5"."""
    found = {}
    for text in given:
        name, equals, ends = text.rpartition("=")
        low, dots, high = ends.partition("..")
        try:
            found[name] = float(low), float(high)
        except ValueError:
            equals = ""
        if not (equals and dots and name):
            raise InputError(
                f"A range of priors is written SECRET=LOW..HIGH, such as smokes=0.2..0.5, unlike {text!r}."
            )
    return found


def _check(model: Model, ranges: Mapping[str, Range]) -> None:
    if unknown := sorted(set(ranges) - set(model.secrets)):
        raise InputError(
            f"There is no secret {unknown[0]!r} to have a range of priors; there are {list(model.secrets)}."
        )
    for name, (low, high) in ranges.items():
        if not 0 < low <= high < 1:
            raise InputError(
                f"The prior of {name!r} ranges from {low:g} to {high:g}: the first must not be above the second, and "
                "both lie between 0 and 1, because a provider who is sure at first cannot be kept below a bound."
            )
        if model.prior[model.secrets.index(name)].sum() == 0:
            raise InputError(f"The secret {name!r} never occurs in the model, so its prior can have no range.")
    least, most = sum(low for low, _ in ranges.values()), sum(high for _, high in ranges.values())
    if least > 1 or (len(ranges) == len(model.secrets) and most < 1):
        raise InputError(f"No prior lies within these ranges: they sum to {least:g} at least and {most:g} at most.")
