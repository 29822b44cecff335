"""A problem in Cassandra's POMDP file format, which SARSOP, pomdp-solve and others read.

Only the problem WITHOUT a bound fits the format: there a cost depends on the hidden state, not on the belief. Names
become identifiers with the prefix of their kind, so that none is a reserved word; comments at the top list them.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np

from reticent.errors import InputError
from reticent.problem.model import Model
from reticent.problem.objective import Objective

DONE, NOTHING = "done", "nothing"


def pomdp_text(model: Model, objective: Objective, discount: float) -> str:
    """The problem without a bound, in the POMDP file format.

    States are the pairs (s, u) that the prior allows, and the absorbing `done`; actions are the sensors and one
    declaration for each useful value. Costs are written as negative rewards: SARSOP takes every number for a reward,
    also under `values: cost`.
    """
    _check_discount(model, objective, discount)
    pairs = [(int(s), int(u)) for s, u in np.argwhere(model.prior > 0)]
    states = _identifiers("pair_", [f"{model.secrets[s]} {model.useful[u]}" for s, u in pairs])
    sensors, symbols = _identifiers("read_", model.sensors), _identifiers("saw_", model.symbols)
    declarations = _identifiers("declare_", model.useful)
    legend = [
        "# Written by reticent: a release problem, without a bound on what becomes known of the secret.",
        "# Rewards are minus the costs, so the optimal cost is minus the value at the start.",
        *(f"# {name} = {model.secrets[s]!r}, {model.useful[u]!r}" for name, (s, u) in zip(states, pairs, strict=True)),
        *_legend(sensors, model.sensors),
        *_legend(declarations, model.useful),
        *_legend(symbols, model.symbols),
    ]
    preamble = [
        f"discount: {_number(discount)}",
        "values: reward",
        f"states: {' '.join([*states, DONE])}",
        f"actions: {' '.join([*sensors, *declarations])}",
        f"observations: {' '.join([*symbols, NOTHING])}",
        f"start: {_row([*(model.prior[pair] for pair in pairs), 0.0])}",
    ]
    body = []
    for a, sensor in enumerate(sensors):
        laws = {state: model.channel[a, s, u] for state, (s, u) in zip(states, pairs, strict=True)}
        body += ["", *_release(sensor, laws, objective.time_cost)]
    for u, declaration in enumerate(declarations):
        wrong = [state for state, pair in zip(states, pairs, strict=True) if pair[1] != u]
        body += ["", *_declare(declaration, wrong, objective.error_penalty)]
    return "\n".join([*legend, "", *preamble, *body, ""])


def _release(sensor: str, laws: dict[str, np.ndarray], time_cost: float) -> Iterator[str]:
    """The hidden pair stays; the symbol follows the sensor's law; the release costs C_T."""
    yield f"T: {sensor}"
    yield "identity"
    for state, law in laws.items():
        yield f"O: {sensor} : {state}"
        yield _row([*law, 0.0])
    yield f"O: {sensor} : {DONE} : {NOTHING} 1.0"
    for state in laws:
        yield f"R: {sensor} : {state} : * : * {_number(-time_cost)}"


def _declare(declaration: str, wrong: list[str], error_penalty: float) -> Iterator[str]:
    """The episode ends, at the price lambda where the declared value is wrong."""
    yield f"T: {declaration} : * : {DONE} 1.0"
    yield f"O: {declaration} : * : {NOTHING} 1.0"
    for state in wrong:
        yield f"R: {declaration} : {state} : * : * {_number(-error_penalty)}"


def _check_discount(model: Model, objective: Objective, discount: float) -> None:
    if not 0 < discount <= 1:
        raise InputError(f"The discount must lie above 0 and not above 1, but is {discount}.")
    forever = objective.time_cost / (1 - discount) if discount < 1 else math.inf
    dearest_stop = objective.error_penalty * (1 - 1 / len(model.useful))
    if forever <= dearest_stop:
        raise InputError(
            f"With the discount {discount:g} never declaring costs {forever:.6g}, declaring up to {dearest_stop:.6g}: "
            f"the best policy might never stop. Take a discount above {1 - objective.time_cost / dearest_stop:.9g}."
        )


def _identifiers(prefix: str, names: Sequence[str]) -> list[str]:
    """A distinct identifier for each name: the prefix, then its letters, digits and minus signs."""
    taken: dict[str, None] = {}
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        first = prefix + re.sub(r"[^A-Za-z0-9-]+", "_", plain).strip("_")
        free, number = first, 1
        while free in taken:
            number += 1
            free = f"{first}_{number}"
        taken[free] = None
    return list(taken)


def _legend(identifiers: list[str], names: tuple[str, ...]) -> Iterator[str]:
    # repr keeps a name on one line, whatever characters it has.
    return (f"# {identifier} = {name!r}" for identifier, name in zip(identifiers, names, strict=True))


def _row(numbers: Sequence[float]) -> str:
    return " ".join(map(_number, numbers))


def _number(value: float) -> str:
    """All digits, so that rows sum to one, and a point between digits, as the format wants it: 1.0e-07, not 1e-07."""
    digits, e, exponent = repr(float(value)).partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{e}{exponent}"
