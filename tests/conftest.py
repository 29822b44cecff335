"""Shapes and types are checked at run time in every test; silent rank promotion is an error."""

import os
from pathlib import Path

from jaxtyping import install_import_hook

# Tests run side by side, one worker per core: threads of boosted trees would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Compiling takes most of the time of the tests: workers, commands under test and the next run share what was compiled.
# With a limit on its size, JAX locks the folder, so that nobody reads what another is just writing.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(2**30))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")

# numba compiles functions as they are written, without checks around them.
import reticent.guard.handler

with install_import_hook("reticent", "beartype.beartype"):
    import reticent.belief.filter  # noqa: F401  (switches 64-bit floats on before anything is traced)

import jax
import pytest
from hypothesis import settings

install_import_hook("reticent", "beartype.beartype")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Tracing takes long the first time, so no example has a deadline; the same examples every time.
settings.register_profile("reticent", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("reticent")


def pytest_configure(config):
    """Quick tests run little and compile much, so the compiler tries less hard; slow ones run much.

    Without its emitters of fused loops, because with them and without optimisation some programs give NaN.
    """
    if config.option.markexpr != "slow":
        flags = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
        os.environ.setdefault("XLA_FLAGS", flags)


# Every compiled program takes some of the pieces of memory that Linux gives a process, 65,530 in all; a worker
# that runs out of them dies.
MOST_PIECES = 25_000


@pytest.fixture(scope="module", autouse=True)
def few_programs_in_memory():
    yield
    pieces = Path("/proc/self/maps")
    if pieces.exists() and pieces.read_bytes().count(b"\n") > MOST_PIECES:
        jax.clear_caches()
