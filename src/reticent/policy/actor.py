"""The network policy: a multilayer perceptron over the public state, masked so that it cannot choose the forbidden."""

from itertools import pairwise
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.belief.bayes import secret_marginal, useful_marginal
from reticent.errors import InputError
from reticent.policy.heuristics import lookahead_costs
from reticent.policy.policy import Policy
from reticent.policy.store import PolicyFile
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
        parts = [belief.reshape(-1)]
        if self.inputs == "rich":
            process = self.process
            used = public.spent_bits if process.bound == "information" else jnp.max(secret_marginal(belief))
            stop = process.stop_cost(belief)
            gain = (stop - lookahead_costs(process, belief)) / process.time_cost
            parts += [
                jnp.log(jnp.maximum(belief.reshape(-1), 1e-9)) / 5,
                secret_marginal(belief),
                useful_marginal(belief),
                jnp.stack([used / process.limit, jnp.sqrt(stop / process.error_penalty)]),
                public.allowed[:-1].astype(float),
                jnp.tanh(gain / 4),
            ]
        return jnp.concatenate(parts).astype(jnp.float32)

    @property
    def size(self) -> int:
        """Length of the feature vector."""
        sensors, secrets, useful, _ = self.process.channel.shape
        cells = secrets * useful
        return cells if self.inputs == "belief" else 2 * cells + secrets + useful + 2 + 2 * sensors


class Network(eqx.Module):
    """Two hidden layers with leaky ReLU, 32-bit floats. Unlike `eqx.nn.MLP`, all its leaves are arrays, so it scans."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, inputs: int, outputs: int, width: int, key: PRNGKey) -> None:
        sizes = [inputs, width, width, outputs]
        keys = jax.random.split(key, len(sizes) - 1)
        layers = [eqx.nn.Linear(*pair, dtype=jnp.float32, key=k) for pair, k in zip(pairwise(sizes), keys, strict=True)]
        # A small last layer: every action starts about equally likely, every value near zero.
        layers[-1] = eqx.tree_at(lambda layer: layer.weight, layers[-1], 0.01 * layers[-1].weight)
        self.layers = tuple(layers)

    def __call__(self, x: Float[Array, " I"]) -> Float[Array, " O"]:
        *hidden, last = self.layers
        for layer in hidden:
            x = jax.nn.leaky_relu(layer(x))
        return last(x)


class Actor(Policy):
    """pi(a | public state), a softmax over sensors and stop. `greedy` takes the likeliest action, else it draws."""

    network: Network
    features: Features
    greedy: bool = eqx.field(static=True)

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        logits = masked_logits(self.network, self.features(public), public.allowed)
        return jnp.argmax(logits) if self.greedy else jax.random.categorical(key, logits)


def actor_arrays(actor: Actor) -> dict[str, np.ndarray]:
    """The network's numbers by name, for a policy file."""
    layers = enumerate(actor.network.layers)
    return {
        f"layers.{i}.{name}": np.asarray(getattr(layer, name)) for i, layer in layers for name in ("weight", "bias")
    }


def actor_of(file: PolicyFile) -> Actor:
    """The actor that a policy file holds."""
    if file.kind != "actor":
        raise InputError(f"This file holds a policy of kind {file.kind!r}, not an actor.")
    inputs, width, greedy = _settings(file.settings)
    process = ReleaseProcess(file.task)
    features = Features(process, inputs)
    network = Network(features.size, process.sensors + 1, width, jax.random.key(0))
    actor = Actor(network, features, greedy)
    wanted, found = (
        {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}
        for arrays in (actor_arrays(actor), file.arrays)
    )
    if wanted != found:
        raise InputError(f"The policy file holds arrays {found}, but its header calls for {wanted}.")
    if not all(np.isfinite(array).all() for array in file.arrays.values()):
        raise InputError("The policy file holds numbers that are not finite.")
    leaves = [
        jnp.asarray(file.arrays[f"layers.{i}.{n}"]) for i in range(len(network.layers)) for n in ("weight", "bias")
    ]
    return eqx.tree_at(lambda a: [x for layer in a.network.layers for x in (layer.weight, layer.bias)], actor, leaves)


def _settings(settings: Any) -> tuple[Inputs, int, bool]:
    """The network's settings from a header, checked."""
    match settings:
        case {"inputs": ("belief" | "rich") as inputs, "width": int(width), "greedy": bool(greedy)} if (
            1 <= width <= 2**14
        ):
            return inputs, width, greedy
    raise InputError(f"The policy file's settings {settings!r} do not describe a network.")


def masked_logits(network: Network, features: Float[Array, " F"], allowed: Array) -> Float[Array, " A_plus_stop"]:
    """Logits of the actions; those that are not allowed get probability zero."""
    return jnp.where(allowed, network(features), -jnp.inf)
