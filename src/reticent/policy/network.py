"""The small network that actors, critics and value functions share, what it sees of a belief, and how it is stored."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.policy.settings import LEAST_BELIEF, LEAST_DOUBT, LOG_SCALE, SLOPE, check_network
from reticent.policy.store import PolicyFile
from reticent.types import Array, Belief, PRNGKey, Scalar


def describe(belief: Belief, used: Scalar) -> Float[Array, " F"]:
    """The belief, its logarithm and marginals, the share of the bound that is used up, and how unsure U still is."""
    belief, used = belief.astype(jnp.float32), used.astype(jnp.float32)
    by_useful = belief.sum(0)
    # A belief that rounding puts above one must not give the root of a negative number.
    unsure = jnp.sqrt(jnp.maximum(1 - jnp.max(by_useful), LEAST_DOUBT))
    logarithm = jnp.log(jnp.maximum(belief.reshape(-1), LEAST_BELIEF)) / LOG_SCALE
    return jnp.concatenate([belief.reshape(-1), logarithm, belief.sum(1), by_useful, jnp.stack([used, unsure])])


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
            x = jax.nn.leaky_relu(layer(x), SLOPE)
        return last(x)


def network_arrays(network: Network) -> dict[str, np.ndarray]:
    """The network's numbers by name, for a policy file."""
    return {
        f"layers.{i}.{name}": np.asarray(getattr(layer, name))
        for i, layer in enumerate(network.layers)
        for name in ("weight", "bias")
    }


def network_of(file: PolicyFile, inputs: int, outputs: int, width: int) -> Network:
    """The network that a policy file holds, if its arrays are those of a network of these sizes."""
    check_network(file, inputs, outputs, width)
    network = Network(inputs, outputs, width, jax.random.key(0))
    leaves = [
        jnp.asarray(file.arrays[f"layers.{i}.{n}"]) for i in range(len(network.layers)) for n in ("weight", "bias")
    ]
    return eqx.tree_at(lambda n: [x for layer in n.layers for x in (layer.weight, layer.bias)], network, leaves)
