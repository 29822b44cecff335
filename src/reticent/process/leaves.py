"""Bounds, enforcements and prices as compiled code sees them: their numbers are array leaves.

The dataclasses themselves are plain Python, so that those who do not compile anything can use them without JAX.
"""

import dataclasses
import typing
from functools import cache
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

Record = TypeVar("Record")
STATIC = (str, bool)


def with_leaves(record: Record) -> Record:
    """The dataclass with arrays for numbers, known to JAX as a tree of them. Texts and flags stay part of the type."""
    data = _register(type(record))
    changed = {name: _leaf(getattr(record, name)) for name in data}
    return _made(type(record), {**_values(record), **changed})


def _leaf(value: Any) -> Any:
    if isinstance(value, eqx.Module):
        return value
    return with_leaves(value) if dataclasses.is_dataclass(value) else jnp.asarray(value, float)


@cache
def _register(kind: type) -> tuple[str, ...]:
    """Tell JAX once which fields of this type are leaves, and return them."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    fixed = {field.name for field in dataclasses.fields(kind) if field.metadata.get("static")}  # type: ignore[arg-type]
    data = tuple(name for name in names if hints[name] not in STATIC and name not in fixed)
    static = tuple(name for name in names if name not in data)

    def flatten(record: Any) -> tuple[list[tuple[Any, Any]], Any]:
        leaves = [(jax.tree_util.GetAttrKey(name), getattr(record, name)) for name in data]
        return leaves, tuple(getattr(record, name) for name in static)

    def unflatten(kept: Any, leaves: Any) -> Any:
        return _made(kind, dict(zip((*data, *static), (*leaves, *kept), strict=True)))

    jax.tree_util.register_pytree_with_keys(kind, flatten, unflatten)
    return data


def _values(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """A record of these values. They may be tracers, so nothing is checked again."""
    record = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(record, name, value)
    return record
