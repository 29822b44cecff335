"""The network policy: a multilayer perceptron over the public state, masked so that it cannot choose the forbidden."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.policy.features import features
from reticent.policy.network import Network
from reticent.policy.policy import Policy
from reticent.policy.settings import Inputs, seen
from reticent.process.process import Process, PublicState
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


class Actor(Policy):
    """pi(a | public state), a softmax over sensors and stop. `greedy` takes the likeliest action, else it draws."""

    network: Network
    features: Features
    greedy: bool = eqx.field(static=True)

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        logits = self._logits(public)
        return jnp.argmax(logits) if self.greedy else jax.random.categorical(key, logits)

    def probabilities(self, public: PublicState) -> Float[Array, " A_plus_stop"]:
        """pi(a | public state) as it acts."""
        logits = self._logits(public)
        return jax.nn.one_hot(jnp.argmax(logits), logits.size) if self.greedy else jax.nn.softmax(logits)

    def _logits(self, public: PublicState) -> Float[Array, " A_plus_stop"]:
        return masked_logits(self.network, self.features(public), public.allowed)

    def acts_in(self, process: Process) -> Process:
        return self.features.process


def masked_logits(network: Network, features: Float[Array, " F"], allowed: Array) -> Float[Array, " A_plus_stop"]:
    """Logits of the actions; those that are not allowed get probability zero."""
    return jnp.where(allowed, network(features), -jnp.inf)
