"""Release mechanisms of others: a fixed public channel between the reading and what is sent, the same at every step.

What the provider then sees is a model like any other, with the channel behind every sensor: `Mechanism.model`. Local
differential privacy and the one-shot privacy funnel are such mechanisms, each with a number to tune.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from reticent.errors import InputError
from reticent.problem.model import Model

# Of the randomised response; beyond the largest hardly anything is changed.
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
# What a bit about the secret costs, in bits about the useful value; and how much a bit said about either counts against
# one sent at all (the inverse of Tishby's temperature).
SECRET_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4)
SHARPNESS = 40.0
ROUNDS, STARTS, SETTLED = 300, 4, 1e-9
TINY = 1e-300


@dataclass(frozen=True)
class Mechanism:
    """W_a(y | z): what is sent as y in place of the reading z of sensor a. `variant` says how it was tuned."""

    variant: str
    channel: Float[np.ndarray, "A Z Y"] = field(compare=False, repr=False)

    def model(self, model: Model) -> Model:
        """What the provider sees: q(y | a, s, u) = sum_z W_a(y | z) q(z | a, s, u)."""
        seen = np.einsum("asuz,azy->asuy", model.channel, self.channel)
        symbols = [f"y{i}" for i in range(seen.shape[-1])]
        return Model(model.prior, seen, model.secrets, model.useful, model.sensors, symbols)

    def send(self, codes: Int[np.ndarray, "N A"], seed: int) -> Int[np.ndarray, "N A"]:
        """What is sent in place of recorded codes, drawn once for each moment and sensor."""
        uniform = np.random.default_rng(seed).random(codes.shape)
        cumulative = self.channel.cumsum(-1)[np.arange(codes.shape[1])[None], codes]
        return (cumulative <= uniform[..., None] * cumulative[..., -1:]).sum(-1)


def randomised_response(model: Model, epsilon: float) -> Mechanism:
    """k-ary randomised response on the reading, k = |Z|: the reading with chance e^epsilon / (e^epsilon + k - 1), else
    any other.

    W(y | z) / W(y | z') <= e^epsilon for all readings z, z': one release is epsilon-locally differentially private in
    the reading, so it moves the odds of any two pairs (s, u) by a factor of at most e^epsilon, and n releases by
    e^(n epsilon). It does not know which readings tell the secret.
    """
    if not epsilon > 0:
        raise InputError(f"epsilon must be above 0, but is {epsilon:g}.")
    sensors, symbols = model.channel.shape[0], model.channel.shape[-1]
    other = 1 / (np.exp(epsilon) + symbols - 1)
    one = np.full((symbols, symbols), other) + np.eye(symbols) * (np.exp(epsilon) - 1) * other
    return Mechanism(f"epsilon {epsilon:g}", np.broadcast_to(one, (sensors, symbols, symbols)).copy())


def privacy_funnel(model: Model, secret_weight: float) -> Mechanism:
    """The one-shot privacy funnel: for each sensor a channel to |S||U| + 1 symbols that tells U rather than S.

    At the prior it minimises I(Z; Y) - beta (I(U; Y) - weight I(S; Y)), with beta = `SHARPNESS`, by alternating between
    the channel and the laws of y, u and s given y (Chechik and Tishby, 2002); the best of several starts.
    """
    channels = [_funnel(model.prior, own, secret_weight) for own in model.channel]
    return Mechanism(f"secret weight {secret_weight:g}", np.stack(channels))


def _funnel(
    prior: Float[np.ndarray, "S U"], channel: Float[np.ndarray, "S U Z"], weight: float
) -> Float[np.ndarray, "Z Y"]:
    joint = prior[..., None] * channel
    law, size = joint.sum((0, 1)), min(channel.shape[-1], prior.size + 1)
    # Readings that never come say nothing.
    useful, secret = (np.where(law > 0, j / np.maximum(law, TINY), 1 / len(j)) for j in (joint.sum(0), joint.sum(1)))
    found = [_alternate(law, useful, secret, weight, size, start) for start in range(STARTS)]
    return min(found, key=lambda each: each[0])[1]


def _alternate(
    law: Float[np.ndarray, " Z"],
    useful: Float[np.ndarray, "U Z"],
    secret: Float[np.ndarray, "S Z"],
    weight: float,
    size: int,
    start: int,
) -> tuple[float, Float[np.ndarray, "Z Y"]]:
    """The least objective of one start, and its channel."""
    channel = np.random.default_rng(start).dirichlet(np.ones(size), len(law))
    best, before = (np.inf, channel), np.inf
    for _ in range(ROUNDS):
        sent = law @ channel
        told = [(own * law) @ channel / np.maximum(sent, TINY) for own in (useful, secret)]
        objective = _nats(law, channel, sent) - SHARPNESS * (
            _told_nats(useful, law, sent, told[0]) - weight * _told_nats(secret, law, sent, told[1])
        )
        if abs(objective - before) < SETTLED:
            break
        before, best = objective, min(best, (objective, channel), key=lambda each: each[0])
        # W(y|z) ~ p(y) exp(-beta (D(u|z || u|y) - weight D(s|z || s|y))): the terms without y cancel.
        fits = [own.T @ np.log(np.maximum(each, TINY)) for own, each in zip((useful, secret), told, strict=True)]
        scores = np.log(np.maximum(sent, TINY)) + SHARPNESS * (fits[0] - weight * fits[1])
        channel = np.exp(scores - scores.max(1, keepdims=True))
        channel /= channel.sum(1, keepdims=True)
    return best


def _nats(law: np.ndarray, channel: np.ndarray, sent: np.ndarray) -> float:
    """I(Z; Y)."""
    ratio = np.log(np.maximum(channel, TINY)) - np.log(np.maximum(sent, TINY))
    return float((law[:, None] * channel * ratio).sum())


def _told_nats(own: np.ndarray, law: np.ndarray, sent: np.ndarray, told: np.ndarray) -> float:
    """I(X; Y), for X = U or S."""
    ratio = np.log(np.maximum(told, TINY)) - np.log(np.maximum((own * law).sum(1, keepdims=True), TINY))
    return float((sent * told * ratio).sum())


# By the name that studies give them: all that there is to tune.
MECHANISMS: dict[str, Callable[[Model], list[Mechanism]]] = {
    "randomised response": lambda model: [randomised_response(model, epsilon) for epsilon in EPSILONS],
    "privacy funnel": lambda model: [privacy_funnel(model, weight) for weight in SECRET_WEIGHTS],
}
