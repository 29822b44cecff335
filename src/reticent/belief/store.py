"""Learned providers in a safetensors file."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from reticent.belief.lstm import LstmFilter
from reticent.belief.observation_model import ReadingLaw
from reticent.errors import InputError
from reticent.problem.array_file import read_arrays, write_arrays

FORMAT = "reticent-provider-1"
HEADER = "reticent"


def save_provider(path: Path, provider: LstmFilter) -> None:
    """Write the network, the prior and the law of readings, if it has one."""
    sizes = {
        "format": FORMAT,
        "sensors": provider.sensors,
        "features": provider.layers[0].input_size - provider.sensors,
        "look_back": provider.look_back,
        "antithetic_pairs": provider.antithetic_pairs,
        "hidden_pairs": provider.hidden_pairs,
        "law": provider.law is not None,
    }
    write_arrays(path, _named(provider), {HEADER: json.dumps(sizes)})


def load_provider(path: Path) -> LstmFilter:
    """The provider that a file holds; anything else is refused with a sentence."""
    arrays, metadata = read_arrays(path, "file of a learned provider")
    try:
        sizes = json.loads(metadata.get(HEADER, ""))
        if sizes.pop("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        prior, has_law = jnp.asarray(arrays[".prior"]), sizes.pop("law")
        empty = LstmFilter(prior, key=jax.random.key(0), **sizes)
        if has_law:
            shape = (empty.sensors, *prior.shape, sizes["features"])
            empty = empty.with_law(ReadingLaw(*(jnp.zeros(shape, jnp.float32) for _ in range(2))))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{str(path)!r} holds no learned provider: {error}.") from error
    wanted = {name: (array.shape, array.dtype) for name, array in _named(empty).items()}
    if wanted != {name: (array.shape, array.dtype) for name, array in arrays.items()}:
        raise InputError(f"{str(path)!r} holds arrays of other sizes than its header calls for.")
    filled = [jnp.asarray(arrays[name]) for name in _named(empty)]
    leaves, structure = jax.tree.flatten(eqx.filter(empty, eqx.is_array))
    del leaves
    return eqx.combine(jax.tree.unflatten(structure, filled), empty)


def _named(provider: LstmFilter) -> dict[str, np.ndarray]:
    """Arrays by their place in the provider."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(provider, eqx.is_array))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
