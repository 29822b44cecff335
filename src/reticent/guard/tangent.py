"""Tangent planes of functions of beliefs: by JAX where arrays are JAX's, by complex steps where they are numpy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Inexact

# Nothing is subtracted, so the step may be as small as 32-bit floats allow: the error is its square.
STEP = 1e-20


def gradients(function: Callable[[Any], Any], points: Inexact[Any, "*N S U"]) -> Inexact[Any, "*N S U"]:
    """The gradient of a function [*N S U] -> [*N], which takes every point by itself, at each point.

    For numpy the function is evaluated at points with an imaginary part (Squire & Trapp 1998): f(x + ih) = f(x) +
    i h f'(x) up to h^2, for whatever is made of sums, products, quotients, roots, logarithms and maxima.
    """
    if not isinstance(points, np.ndarray):
        import jax

        return jax.grad(lambda points: function(points).sum())(points)
    pairs = points.shape[-2] * points.shape[-1]
    steps = (1j * STEP * np.eye(pairs)).reshape(pairs, *[1] * (points.ndim - 2), *points.shape[-2:])
    slopes = function(points + steps).imag / STEP
    return np.moveaxis(slopes, 0, -1).reshape(points.shape)
