"""The C function by which XLA calls the guard's solver: reads the call frame, solves in place. Needs numba.

Places are counted in words of eight bytes, in the structs of XLA's c_api.h.
"""

from pathlib import Path
from typing import Any
from zlib import crc32

import numba
import numpy as np
from numba import cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

from reticent.guard import pivots
from reticent.guard.pivots import solve

# Of a call frame: the extension, and the addresses of the buffers that are given and of those to be filled.
WORDS, EXTENSION, GIVEN, FILLED = 22, 1, 9, 14
# Of the extension by which XLA asks for the version: where to write it, and the word there.
METADATA, VERSION = 3, 3
# Of a buffer: its data, its rank and its lengths.
DATA, RANK, LENGTHS = 3, 4, 5
# Major version 0 in the low half of the word, minor version 1 in the high one: XLA accepts any minor version.
OLDEST = 1 << 32


def _pointer(_: Any, address: Any) -> Any:
    """The address as a pointer."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


_at: Any = intrinsic(_pointer)
# Its stub describes another function.
_array: Any = numba.carray  # pyright: ignore[reportPrivateImportUsage]


def _handler(stamp: int) -> Any:
    """The function compiled for the solver's source with this checksum. Numba keeps machine code on disk by the source
    and the closure of a function: without the checksum it would not see that what this one calls has changed."""

    @cfunc(types.intp(types.CPointer(types.intp)), cache=True)
    def handler(frame):
        """Null, which means success, for a frame with the buffers cost, excess, raw and the result."""
        if stamp < 0:
            return stamp
        words = _array(frame, (WORDS,))
        if words[EXTENSION] != 0:
            metadata = _array(_at(words[EXTENSION]), (METADATA + 1,), np.int64)[METADATA]
            _array(_at(metadata), (VERSION + 1,), np.int64)[VERSION] = OLDEST
            return 0
        given = _array(_at(words[GIVEN]), (3,), np.int64)
        filled = _array(_at(words[FILLED]), (1,), np.int64)
        cost = _array(_at(given[0]), (LENGTHS + 1,), np.int64)
        excess = _array(_at(given[1]), (LENGTHS + 1,), np.int64)
        rank = cost[RANK]
        lengths, rows = _array(_at(cost[LENGTHS]), (rank,), np.int64), _array(_at(excess[LENGTHS]), (rank,), np.int64)
        count = 1
        for axis in range(rank - 2):
            count *= lengths[axis]
        options, readings, secrets = lengths[rank - 2], lengths[rank - 1], rows[rank - 2]
        raw = _array(_at(given[2]), (LENGTHS + 1,), np.int64)[DATA]
        found = _array(_at(filled[0]), (LENGTHS + 1,), np.int64)[DATA]
        solve(
            _array(_at(cost[DATA]), (count, options, readings), np.float64),
            _array(_at(excess[DATA]), (count, secrets, readings), np.float64),
            _array(_at(raw), (count, readings), np.bool_),
            _array(_at(found), (count, options, readings), np.float64),
        )
        return 0

    return handler


handler = _handler(crc32(Path(pivots.__file__).read_bytes()))
