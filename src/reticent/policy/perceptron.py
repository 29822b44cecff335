"""The small network that actors, critics and value functions share: two hidden layers with leaky ReLU.

Computes in the namespace of its arrays, for one input or many.
"""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Inexact

# Slope of a hidden unit below zero.
SLOPE = 0.01
# Weight [O I] and bias [O].
Layer = tuple[Any, Any]


def perceptron(layers: Sequence[Layer], x: Inexact[Any, "*N I"]) -> Inexact[Any, "*N O"]:
    """The outputs for some inputs."""
    *hidden, (last_weight, last_bias) = layers
    for weight, bias in hidden:
        x = x @ weight.T + bias
        x = x.__array_namespace__().maximum(x, SLOPE * x)
    return x @ last_weight.T + last_bias
