"""What somebody believes who knows the model and sees everything sent, by matrix products from scratch."""

from typing import NamedTuple

import numpy as np


class Highest(NamedTuple):
    """The largest posterior of a secret over all times at which somebody looks: of the moment itself, of any moment
    before it, and of any moment up to `ahead` steps after it."""

    filter: float
    smoother: float
    prediction: float


def highest_posteriors(model, likelihoods, ahead=30) -> Highest:
    """Of one sequence of likelihoods [T S U] of what was sent; one everywhere where nothing was."""
    pairs, secrets = model.prior.size, len(model.secrets)
    moves, told = model.dynamics.reshape(pairs, pairs), likelihoods.reshape(len(likelihoods), pairs)
    of_secret = lambda weight: weight.reshape(secrets, -1).sum(1).max() / weight.sum()  # noqa: E731
    forward, found = [model.prior.reshape(-1) * told[0]], Highest(0.0, 0.0, 0.0)
    for t in range(len(told)):
        if t:
            forward.append((forward[-1] @ moves) * told[t])
        forward[-1] = forward[-1] / forward[-1].sum()
        present = of_secret(forward[-1])
        backward, past = np.ones(pairs), [present]
        for j in range(t - 1, -1, -1):
            backward = moves @ (told[j + 1] * backward)
            backward = backward / backward.max()
            past.append(of_secret(forward[j] * backward))
        later, future = forward[-1], []
        for _ in range(ahead):
            later = later @ moves
            future.append(of_secret(later))
        found = Highest(max(found.filter, present), max(found.smoother, *past), max(found.prediction, *future))
    return found
