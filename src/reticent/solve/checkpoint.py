"""Checkpoints: interrupted training continues where it stopped, with the same result as without interruption."""

import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from reticent.errors import InputError
from reticent.problem.array_file import read_arrays, write_arrays
from reticent.solve.actor_critic import TrainState
from reticent.solve.value_iteration import IterationState

State = TypeVar("State", TrainState, IterationState)


def save_checkpoint(path: Path, state: State, settings: dict[str, Any]) -> None:
    """Write the whole training state, with the settings that it belongs to."""
    leaves = enumerate(jax.tree.leaves(state))
    write_arrays(path, {str(i): _plain(leaf) for i, leaf in leaves}, {"settings": json.dumps(settings)})


def load_checkpoint(path: Path, like: State, settings: dict[str, Any]) -> State | None:
    """The saved state, or None if there is none that fits these settings."""
    if not path.exists():
        return None
    try:
        arrays, metadata = read_arrays(path, "training state")
    except InputError:
        return None
    if metadata.get("settings") != json.dumps(settings):
        return None
    leaves, structure = jax.tree.flatten(like)
    if {name: array.shape for name, array in arrays.items()} != {str(i): _plain(x).shape for i, x in enumerate(leaves)}:
        return None
    return jax.tree.unflatten(structure, [_as(arrays[str(i)], leaf) for i, leaf in enumerate(leaves)])


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: jax.Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _as(array: np.ndarray, leaf: jax.Array) -> jax.Array:
    return jax.random.wrap_key_data(jnp.asarray(array)) if _is_key(leaf) else jnp.asarray(array, leaf.dtype)
