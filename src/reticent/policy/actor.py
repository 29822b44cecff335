"""The network policy: a multilayer perceptron over the public state, masked so that it cannot choose the forbidden."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.policy.heuristics import lookahead_costs
from reticent.policy.network import Network, describe
from reticent.policy.policy import Policy
from reticent.policy.settings import GAIN_SCALE, Inputs, seen
from reticent.process.process import Process, PublicState
from reticent.types import Array, Index, PRNGKey


class Features(eqx.Module):
    """What a network sees of the public state, as 32-bit floats.

    "belief" is the paper's input: beta alone. "described" adds its logarithm and marginals, the share of the bound
    that is used up, and which sensors are allowed. "rich" adds what each sensor gains over stopping now by one-step
    lookahead, for which the process must have a finite model.
    """

    process: Process
    inputs: Inputs = eqx.field(static=True)

    def __call__(self, public: PublicState) -> Float[Array, " F"]:
        belief = public.belief
        if self.inputs == "belief":
            return belief.reshape(-1).astype(jnp.float32)
        process = self.process
        described = jnp.concatenate(
            [describe(belief, process.used(belief, public.spent_bits)), public.allowed[:-1].astype(jnp.float32)]
        )
        if self.inputs == "described":
            return described
        gain = (process.stop_cost(belief) - lookahead_costs(process, public)) / process.objective.time_cost
        return jnp.concatenate([described, jnp.tanh(gain / GAIN_SCALE).astype(jnp.float32)])

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
        logits = masked_logits(self.network, self.features(public), public.allowed)
        return jnp.argmax(logits) if self.greedy else jax.random.categorical(key, logits)


def masked_logits(network: Network, features: Float[Array, " F"], allowed: Array) -> Float[Array, " A_plus_stop"]:
    """Logits of the actions; those that are not allowed get probability zero."""
    return jnp.where(allowed, network(features), -jnp.inf)
