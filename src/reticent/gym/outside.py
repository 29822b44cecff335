"""An agent trained elsewhere as a policy, which is evaluated, certified and audited like any other."""

import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.errors import InputError
from reticent.gym.spaces import features_of, played
from reticent.policy.actor import Features, Inputs
from reticent.policy.policy import Policy
from reticent.process.process import Process, PublicState
from reticent.types import Index, PRNGKey

# Observations and allowed actions, one row per episode, to actions.
Predict = Callable[[Float[np.ndarray, "N F"], Bool[np.ndarray, "N A_plus_stop"]], Any]
# Simulations run in several threads, which outside agents may not be made for.
_ONE_AT_A_TIME = threading.Lock()


class OutsidePolicy(Policy):
    """Asks `predict` for the action, for many episodes in one call.

    `predict` must give the same answer to the same question, and must not call JAX. As in the environments, a sensor
    that is not allowed counts as a stop.
    """

    features: Features
    predict: Predict = eqx.field(static=True)

    def __init__(self, process: Process, inputs: Inputs, predict: Predict) -> None:
        self.features, self.predict = features_of(process, inputs), predict

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        del key
        action, seen = jax.ShapeDtypeStruct((), jnp.int64), self.features(public)
        return jax.pure_callback(partial(_ask, self.predict), action, seen, public.allowed, vmap_method="broadcast_all")


def _ask(predict: Predict, seen: Any, allowed: Any) -> Int[np.ndarray, "..."]:
    """One question for all rows, however they are batched."""
    # Copies: outside agents may write into what they are given.
    rows, masks = (np.array(x).reshape(-1, x.shape[-1]) for x in (seen, allowed))
    with _ONE_AT_A_TIME:
        actions, _ = played(predict(rows, masks), masks, "stop")
    return actions.reshape(allowed.shape[:-1])


def from_sb3(model: Any) -> Predict:
    """What a model of Stable-Baselines3 or sb3-contrib does when it leaves nothing to chance. MaskablePPO is told the
    masks."""
    nothing = np.zeros((1, *model.observation_space.shape), np.float32)
    if model.predict(nothing)[1] is not None:
        raise InputError("This model remembers earlier steps, but a policy sees the public state and has no memory.")
    masked = "action_masks" in inspect.signature(model.predict).parameters

    def predict(observations: Float[np.ndarray, "N F"], allowed: Bool[np.ndarray, "N A_plus_stop"]) -> Any:
        masks = {"action_masks": allowed} if masked else {}
        return model.predict(observations, deterministic=True, **masks)[0]

    return predict
