"""A process as a Gymnasium environment, one episode after the other."""

from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from reticent.errors import InputError
from reticent.gym.play import Outcome, Play, Sight, first_key, move, start
from reticent.gym.spaces import Forbidden, action_space, check_playable, features_of, observation_space, played
from reticent.policy.actor import Inputs
from reticent.process.process import Process
from reticent.types import PRNGKey

Observation = Float[np.ndarray, " F"]
# What is told of a step beside the reward. The hidden pair is not in it.
TOLD = ("sensor", "symbol", "cost", "violated", "forbidden", "stop_cost")


class ReleaseEnv(gymnasium.Env[Observation, Any]):
    """A process as an environment: the reward is minus the cost, the last action is stop.

    `inputs` is what is seen of the public state, as our own agent sees it. `forbidden` is what becomes of a sensor
    that is not allowed: it counts as a "stop", which `info["forbidden"]` says, or is an "error".
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, process: Process, inputs: Inputs = "described", forbidden: Forbidden = "stop") -> None:
        check_playable(process, forbidden)
        self.process, self.features = process, features_of(process, inputs)
        self.forbidden: Forbidden = forbidden
        self.observation_space = observation_space(self.features)
        self.action_space = action_space(process)
        self._key: PRNGKey = None
        self._play: Play | None = None
        self._allowed: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A fresh episode. The same seed gives the same episodes from here on."""
        del options
        super().reset(seed=seed)
        if seed is not None or self._key is None:
            self._key = first_key(self.np_random)
        play, sight = start(self.features, self._key)
        seen: Any = jax.device_get(sight)
        self._play, self._key, self._allowed = play, play.key, seen.allowed
        return seen.observation.copy(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Release one reading of the chosen sensor, or stop."""
        if self._play is None or self._allowed is None:
            raise InputError("There is no episode under way: call reset() first, and after each that has ended.")
        chosen, refused = played(action, self._allowed, self.forbidden)
        play, *rest = move(self.features, self._play, jnp.asarray(chosen))
        seen, outcome = jax.device_get(rest)
        terminated, truncated = bool(outcome.terminated), bool(outcome.truncated)
        self._play, self._key, self._allowed = None if terminated or truncated else play, play.key, seen.allowed
        told = {name: value.item() for name, value in infos(chosen, refused, seen, outcome).items()}
        return seen.observation.copy(), -float(outcome.cost), terminated, truncated, told

    def action_masks(self) -> Bool[np.ndarray, " A_plus_stop"]:
        """Which actions are allowed now, under the name that MaskablePPO asks for."""
        if self._allowed is None:
            raise InputError("There is no episode under way: call reset() first.")
        return self._allowed.copy()


def infos(chosen: np.ndarray, refused: np.ndarray, sight: Sight, outcome: Outcome) -> dict[str, np.ndarray]:
    """What is told of a step, for one environment or many."""
    sensor = np.where(chosen == sight.allowed.shape[-1] - 1, -1, chosen)
    values = sensor, outcome.symbol, outcome.cost, outcome.violated, refused, sight.stop_cost
    return dict(zip(TOLD, map(np.asarray, values), strict=True))
