"""The network policy: a multilayer perceptron over the public state, masked so that it cannot choose the forbidden."""

from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.policy.features import features
from reticent.policy.network import Network
from reticent.policy.ongoing_features import ongoing_features, ongoing_seen
from reticent.policy.policy import Policy
from reticent.policy.settings import Inputs, seen
from reticent.process.ongoing import OngoingProcess
from reticent.process.process import Process, Public, PublicState
from reticent.process.rollout import AnyProcess
from reticent.types import Array, Index, PRNGKey


class Features(eqx.Module):
    """What a network sees of the public states of a process."""

    process: Process
    inputs: Inputs = eqx.field(static=True)

    def __call__(self, public: PublicState) -> Float[Array, " F"]:
        return features(self.process, self.inputs, public)

    @property
    def size(self) -> int:
        """Length of the feature vector."""
        secrets, useful = self.process.prior.shape
        return seen(self.inputs, secrets, useful, self.process.sensors)


class OngoingFeatures(eqx.Module):
    """What a network sees of the public states of a process that goes on."""

    process: OngoingProcess
    inputs: Inputs = eqx.field(static=True)

    def __call__(self, public: Public) -> Float[Array, " F"]:
        return ongoing_features(self.process, self.inputs, public)

    @property
    def size(self) -> int:
        """Length of the feature vector."""
        secrets, useful = self.process.prior.shape
        return ongoing_seen(self.inputs, secrets, useful, self.process.sensors)


Seen: TypeAlias = Features | OngoingFeatures


def features_of(process: AnyProcess, inputs: Inputs) -> Seen:
    """What a network sees of this process."""
    return OngoingFeatures(process, inputs) if isinstance(process, OngoingProcess) else Features(process, inputs)


class Actor(Policy):
    """pi(a | public state), a softmax over sensors and stop. `greedy` takes the likeliest action, else it draws."""

    network: Network
    features: Seen
    greedy: bool = eqx.field(static=True)

    def act(self, key: PRNGKey, public: Public) -> Index:
        logits = masked_logits(self.network, self.features(public), public.allowed)
        return jnp.argmax(logits) if self.greedy else jax.random.categorical(key, logits)

    def acts_in(self, process: Any) -> Any:
        return self.features.process


def masked_logits(network: Network, features: Float[Array, " F"], allowed: Array) -> Float[Array, " A_plus_stop"]:
    """Logits of the actions; those that are not allowed get probability zero."""
    return jnp.where(allowed, network(features), -jnp.inf)
