"""The vector environment as a `VecEnv` of Stable-Baselines3."""

from typing import Any

import gymnasium
import numpy as np

from reticent.gym.environment import TOLD
from reticent.gym.vector import ReleaseVectorEnv

try:
    from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "stable_baselines3":
        raise
    raise ModuleNotFoundError(
        "sb3_vec_env needs Stable-Baselines3, which is not installed: pip install 'reticent[agents]'",
        name="stable_baselines3",
    ) from error


class Sb3VecEnv(VecEnv):
    """Passes everything on; only the end of an episode is told in Stable-Baselines3's words."""

    def __init__(self, vector: ReleaseVectorEnv) -> None:
        self.vector = vector
        super().__init__(vector.num_envs, vector.single_observation_space, vector.single_action_space)

    def reset(self) -> np.ndarray:
        # Seeds of neighbours differ by one, here as there.
        observations, _ = self.vector.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, told = self.vector.step(self._actions)
        done = terminated | truncated
        infos = [
            {**_of(told["final_info"] if done[i] else told, i), "TimeLimit.truncated": bool(truncated[i])}
            for i in range(self.num_envs)
        ]
        for i in np.flatnonzero(done):
            infos[i]["terminal_observation"] = told["final_obs"][i]
        return observations, rewards.astype(np.float32), done, infos

    def close(self) -> None:
        self.vector.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.vector, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"All environments share one process: {attr_name!r} cannot be set for some of them.")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        rows = getattr(self.vector, method_name)(*method_args, **method_kwargs)
        return [rows[i] for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


def _of(told: dict[str, Any], i: int) -> dict[str, Any]:
    """What one environment was told."""
    return {name: told[name][i].item() for name in TOLD}


def sb3_vec_env(id: str, num_envs: int, **options: Any) -> Sb3VecEnv:
    """Many environments of this id in one compiled step, for agents of Stable-Baselines3."""
    vector = gymnasium.make_vec(id, num_envs, "vector_entry_point", **options)
    assert isinstance(vector, ReleaseVectorEnv)
    return Sb3VecEnv(vector)
