"""The solver of the guard within programs that XLA compiles.

On CPUs XLA calls the machine code that numba made, through its foreign function interface: nothing is copied and no
Python runs. That interface is C and belongs to a version of JAX, so it is used with those that were tried; with others,
on other devices and without numba, JAX calls Python back.
"""

import ctypes
from functools import cache
from typing import Any

import jax
import numpy as np

from reticent.guard.program import cheapest_kernels, solver
from reticent.types import Array

TRIED = ((0, 10),)
TARGET = "reticent_cheapest_kernels"


def call(cost: Array, excess: Array, raw: Array) -> Array:
    """`cheapest_kernels` for JAX arrays."""
    result = jax.ShapeDtypeStruct(cost.shape, np.dtype(float))
    programs = cost.astype(float), excess.astype(float), raw
    if jax.default_backend() == "cpu" and _registered():
        return jax.ffi.ffi_call(TARGET, result, vmap_method="broadcast_all")(*programs)
    return jax.pure_callback(_called_back, result, *programs, vmap_method="broadcast_all")


def _called_back(*programs: Any) -> np.ndarray:
    return cheapest_kernels(*map(np.asarray, programs))


@cache
def _registered() -> bool:
    """Whether XLA can call the machine code; tells it the first time."""
    if jax.__version_info__[:2] not in TRIED or not hasattr(solver(), "signatures"):
        return False
    from reticent.guard.handler import handler

    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    jax.ffi.register_ffi_target(TARGET, capsule(handler.address, None, None), platform="cpu")
    return True
