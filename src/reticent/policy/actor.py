"""The network policy: a multilayer perceptron over the public state, masked so that it cannot choose the forbidden."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.policy.heuristics import lookahead_costs
from reticent.policy.network import Network, describe, described
from reticent.policy.policy import Policy
from reticent.process.release import PublicState, ReleaseProcess
from reticent.types import Array, Index, PRNGKey

Inputs = Literal["belief", "rich"]


class Features(eqx.Module):
    """What a network sees of the public state, as 32-bit floats.

    "belief" is the paper's input: beta alone. "rich" adds its logarithm and marginals, the share of the bound
    that is used up, which sensors are allowed, and what each sensor gains over stopping now by one-step lookahead.
    """

    process: ReleaseProcess
    inputs: Inputs = eqx.field(static=True)

    def __call__(self, public: PublicState) -> Float[Array, " F"]:
        belief = public.belief
        if self.inputs == "belief":
            return belief.reshape(-1).astype(jnp.float32)
        process = self.process
        gain = (process.stop_cost(belief) - lookahead_costs(process, public)) / process.time_cost
        more = jnp.concatenate([public.allowed[:-1], jnp.tanh(gain / 4)]).astype(jnp.float32)
        return jnp.concatenate([describe(belief, process.used(belief, public.spent_bits)), more])

    @property
    def size(self) -> int:
        """Length of the feature vector."""
        sensors, secrets, useful, _ = self.process.channel.shape
        return secrets * useful if self.inputs == "belief" else described(secrets, useful) + 2 * sensors


class Actor(Policy):
    """pi(a | public state), a softmax over sensors and stop. `greedy` takes the likeliest action, else it draws."""

    network: Network
    features: Features
    greedy: bool = eqx.field(static=True)

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        logits = masked_logits(self.network, self.features(public), public.allowed)
        return jnp.argmax(logits) if self.greedy else jax.random.categorical(key, logits)


def masked_logits(network: Network, features: Float[Array, " F"], allowed: Array) -> Float[Array, " A_plus_stop"]:
    """Logits of the actions; those that are not allowed get probability zero."""
    return jnp.where(allowed, network(features), -jnp.inf)
