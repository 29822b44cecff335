"""The network of actors, critics and value functions while it learns, and how it is stored."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.policy.perceptron import perceptron
from reticent.policy.settings import check_network
from reticent.policy.store import PolicyFile
from reticent.types import Array, PRNGKey


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

    def __call__(self, x: Float[Array, "*N I"]) -> Float[Array, "*N O"]:
        return perceptron([(layer.weight, layer.bias) for layer in self.layers], x)


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
