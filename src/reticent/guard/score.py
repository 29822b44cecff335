"""The quadratic score of what is known of a variable, and its tangents.

With the weighted posterior p(k) = P(k, y) of a symbol y it is sum_k p(k)^2 / sum_k p(k): convex and homogeneous, so it
lies above its tangents, sum_k (2 a(k) - sum_v a(v)^2) p(k) at any law a, and what is sent never lowers its mean.
"""

from typing import Any

from jaxtyping import Float


def score(joint: Float[Any, "K ..."]) -> Float[Any, "..."]:
    """sum_k p(k)^2 / sum_k p(k); zero where there is no mass."""
    law = joint.sum(0)
    return (joint**2).sum(0) / joint.__array_namespace__().where(law > 0, law, 1.0)


def tangents(anchors: Float[Any, "M K *N A"], joint: Float[Any, "K *N A Z"]) -> Float[Any, "M *N A Z"]:
    """What each reading adds to the score of a symbol by the tangent at that symbol's anchor."""
    slopes = 2 * anchors - (anchors**2).sum(1, keepdims=True)
    return (slopes[..., None] * joint[None]).sum(1)
