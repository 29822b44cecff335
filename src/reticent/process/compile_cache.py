"""Compiled programs are kept on disk, so that the second run of a command starts quickly."""

import os
from pathlib import Path


def use_compile_cache() -> None:
    """Keep compiled programs in the user's cache folder, unless JAX was told otherwise."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "reticent" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
