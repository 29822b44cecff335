"""Named arrays in a safetensors file: written whole or not at all, never pickle."""

import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from reticent.errors import InputError


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file by way of a neighbour, so that an interrupted write leaves the old file whole."""
    path = Path(path)
    neighbour = path.with_name(path.name + ".writing")
    try:
        save_file(arrays, neighbour, metadata)
        os.replace(neighbour, path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"Cannot write {str(path)!r}: {error}.") from error


def read_arrays(path: str | Path, what: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and metadata of a safetensors file."""
    if not Path(path).is_file():
        raise InputError(f"There is no {what} {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{str(path)!r} is damaged or not a {what}: {error}.") from error
