"""Panels: other models that a provider may have, for each of which a bound is kept.

A provider of the panel knows the public rule and sees everything sent, as all do, but has another prior, other channels
or another transition: learned from other people, tempered less, or simply believed. Whoever mixes such models with any
weights believes a weighted mean of what they make of the same releases,

    P(s | sent) = sum_p w_p P_p(sent) P_p(s | sent) / sum_p w_p P_p(sent),

so what stays below a limit for each of the panel does for every mixture.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.errors import InputError
from reticent.problem.bound import Bound

if TYPE_CHECKING:
    from reticent.problem.enforcement import Enforcement
    from reticent.problem.model import Model

TABLES, NAMES = ("prior", "channel", "transition"), ("secrets", "useful", "sensors", "symbols")


def members(model: "Model", given: Any) -> "tuple[Model, ...]":
    """The models of a panel, given as models or as objects that say in what they differ from this one."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(f"panel is a list of models, but is {given!r}.")
    return tuple(_member(model, each, number) for number, each in enumerate(given, 1))


def _member(model: "Model", given: Any, number: int) -> "Model":
    kind, names = type(model), {axis: getattr(model, axis) for axis in NAMES}
    if isinstance(given, kind):
        if given.panel or any(getattr(given, axis) != own for axis, own in names.items()):
            raise InputError(
                f"Model {number} of the panel has names of its own, or a panel. All have the secrets, useful values, "
                "sensors and symbols of the model whose panel it is, and no further panel."
            )
        given = {table: getattr(given, table) for table in TABLES}
    if not isinstance(given, dict) or not given.keys() <= set(TABLES):
        raise InputError(
            f"Model {number} of the panel is an object with {', '.join(TABLES)}, or some of them, unlike {given!r:.80}."
        )
    made = kind(**names, **{table: getattr(model, table) for table in TABLES} | given)
    _check_possible(model, made, number)
    return made


def _check_possible(model: "Model", member: "Model", number: int) -> None:
    """Refuse a provider who would hold something impossible that the model does not: no belief could follow it."""
    for what in ("prior", "channel", "dynamics"):
        lost = (getattr(model, what) > 0) & (getattr(member, what) <= 0)
        if what == "channel":
            lost &= (model.prior > 0)[None, :, :, None]
        if lost.any():
            raise InputError(
                f"Model {number} of the panel has probability zero in its {what} at {np.argwhere(lost)[0].tolist()}, "
                "where the model has more: what is sent may be impossible for it. Give it a small probability there."
            )


def members_to_json(model: "Model") -> list[dict[str, Any]]:
    """The panel's part of a problem file: in what each differs from the model."""

    def tables(each: "Model") -> dict[str, Any]:
        found = {table: getattr(each, table) for table in TABLES}
        return {name: own.tolist() for name, own in found.items() if not np.array_equal(own, getattr(model, name))}

    return [tables(each) for each in model.panel]


def check_panel(model: "Model", bound: Bound, enforcement: "Enforcement") -> None:
    """Refuse a panel whose bound nobody could keep. Where there is no bound to keep, none is promised to anybody."""
    if not model.panel or not bound.crossable:
        return
    if bound.posterior_limit(len(model.secrets)) is None or not enforcement.for_panels:
        raise InputError(
            f"A bound on {bound.name} enforced by {enforcement.name!r} is not kept for a panel of providers. Choose a "
            "confidence bound and 'coarsen', 'withhold' or 'mask', or leave the panel out."
        )
    for number, each in enumerate(model.panel, 1):
        if each.secret_moves != model.secret_moves:
            raise InputError(
                f"The secret moves in the model but not in model {number} of the panel, or the other way round. Give "
                "all of them a secret that moves, or none."
            )
        try:
            bound.check(each.prior)
        except InputError as error:
            raise InputError(f"For the provider with model {number} of the panel: {error}") from error


def for_whom(panel: "Sequence[Model]") -> str:
    """For which providers a bound is kept, in words."""
    if not panel:
        return "for a provider who knows this model"
    return f"for a provider with any of {len(panel) + 1} models, and with every mixture of them"
