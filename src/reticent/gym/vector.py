"""Many episodes side by side in one compiled step."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float

from reticent.errors import InputError
from reticent.gym.environment import infos
from reticent.gym.play import Play, Sight, first_key, move_all, start_all
from reticent.gym.spaces import Forbidden, action_space, check_playable, features_of, observation_space, played
from reticent.policy.actor import Inputs
from reticent.process.process import Process

Observations = Float[np.ndarray, "N F"]


class ReleaseVectorEnv(VectorEnv[Observations, Any, np.ndarray]):
    """As many `ReleaseEnv`, stepped at once. An episode that ends is followed by the next one in the same step."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # type: ignore[misc]

    def __init__(
        self, process: Process, num_envs: int, inputs: Inputs = "described", forbidden: Forbidden = "stop"
    ) -> None:
        check_playable(process, forbidden)
        self.process, self.features, self.num_envs = process, features_of(process, inputs), num_envs
        self.forbidden: Forbidden = forbidden
        self.single_observation_space = observation_space(self.features)
        self.single_action_space = action_space(process)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._plays: Play | None = None
        self._allowed: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Fresh episodes. Environment i has the seed `seed + i`, as in Gymnasium's own vector environments."""
        del options
        super().reset(seed=seed)
        if seed is not None or self._plays is None:
            first = int(self.np_random.integers(2**31)) if seed is None else seed
            keys = jnp.stack([first_key(np_random(first + i)[0]) for i in range(self.num_envs)])
        else:
            keys = self._plays.key
        self._plays, sight = start_all(self.features, keys)
        seen: Any = jax.device_get(sight)
        self._allowed = seen.allowed
        return seen.observation.copy(), {}

    def step(self, actions: Any) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action in each environment."""
        if self._plays is None or self._allowed is None:
            raise InputError("There are no episodes under way: call reset() first.")
        chosen, refused = played(actions, self._allowed, self.forbidden)
        self._plays, *rest = move_all(self.features, self._plays, jnp.asarray(chosen))
        seen, reached, outcome = jax.device_get(rest)
        self._allowed = seen.allowed
        told = _told(infos(chosen, refused, reached, outcome), reached, outcome.terminated | outcome.truncated)
        flags = outcome.terminated.copy(), outcome.truncated.copy()
        return seen.observation.copy(), -outcome.cost, *flags, told

    def action_masks(self) -> Bool[np.ndarray, "N A_plus_stop"]:
        """Which actions are allowed now in each environment."""
        if self._allowed is None:
            raise InputError("There are no episodes under way: call reset() first.")
        return self._allowed.copy()


def _told(values: dict[str, np.ndarray], reached: Sight, done: Bool[np.ndarray, " N"]) -> dict[str, Any]:
    """What was told of each step, in Gymnasium's order: of last steps it is "final", beside the last observation."""
    told: dict[str, Any] = _masked(values, ~done)
    if done.any():
        last = np.full(len(done), None, dtype=object)
        for i in np.flatnonzero(done):
            last[i] = np.array(reached.observation[i])
        told |= {"final_obs": last, "_final_obs": done.copy()}
        told |= {"final_info": _masked(values, done), "_final_info": done.copy()}
    return told


def _masked(values: dict[str, np.ndarray], have: Bool[np.ndarray, " N"]) -> dict[str, np.ndarray]:
    """The values of those environments that have them, zero elsewhere, and which they are."""
    if not have.any():
        return {}
    zeroed = {name: np.where(have, value, np.zeros_like(value)) for name, value in values.items()}
    return zeroed | {f"_{name}": have.copy() for name in values}
