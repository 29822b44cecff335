"""Gymnasium environments over processes: agents of other libraries run on them unchanged, and come back as policies.

Importing this registers `reticent/Synthetic-v0`, `reticent/Problem-v0` and `reticent/Recordings-v0`. What they are made
of is imported when the first of them is made.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import gymnasium
except ModuleNotFoundError as error:
    if error.name != "gymnasium":
        raise
    raise ModuleNotFoundError(
        "reticent.gym needs Gymnasium, which is not installed: pip install 'reticent[gym]'", name="gymnasium"
    ) from error

if TYPE_CHECKING:
    from reticent.gym.environment import ReleaseEnv
    from reticent.gym.outside import OutsidePolicy, from_sb3
    from reticent.gym.sb3 import sb3_vec_env
    from reticent.gym.vector import ReleaseVectorEnv

_HOME = {
    "OutsidePolicy": "outside",
    "ReleaseEnv": "environment",
    "ReleaseVectorEnv": "vector",
    "from_sb3": "outside",
    "sb3_vec_env": "sb3",
}

__all__ = ["OutsidePolicy", "ReleaseEnv", "ReleaseVectorEnv", "from_sb3", "sb3_vec_env"]

for _name in ("Synthetic", "Problem", "Recordings"):
    gymnasium.register(
        f"reticent/{_name}-v0",
        entry_point=f"reticent.gym.made:{_name.lower()}_env",
        vector_entry_point=f"reticent.gym.made:{_name.lower()}_vector_env",
    )


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'reticent.gym' has no attribute {name!r}")
    return getattr(import_module(f"reticent.gym.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
