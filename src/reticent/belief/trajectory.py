"""Information of what was sent about a secret that moves, in bits: per step, and about the whole trajectory.

Three numbers, none smaller than the one before it:

- *present*: sum_t I(S_t; Y_t | Y^{t-1}), what each release says about the secret of its own moment;
- *directed* (Massey 1990): I(S^T -> Y^T) = sum_t I(S^t; Y_t | Y^{t-1}), about all secrets up to its moment;
- *trajectory*: I(S^T; Y^T), what everything sent says about all secrets. It equals the directed information where the
  useful value does not influence how the secret moves.

Each is computed along sequences whose secrets are known; the mean over simulated ones is an unbiased estimate.
"""

from typing import Any

from jaxtyping import Float, Int

from reticent.belief.bayes import secret_marginal
from reticent.belief.chain import Sequences, Transition, predict
from reticent.belief.information import NATS_PER_BIT, entropy_bits

Secrets = Int[Any, "*N T"]
Prior = Float[Any, "S U"]


def present_bits(before: Sequences, after: Sequences) -> Float[Any, "*N T"]:
    """H(S_t) before each release minus that after it."""
    return entropy_bits(secret_marginal(before)) - entropy_bits(secret_marginal(after))


def directed_bits(prior: Prior, transition: Transition, likelihoods: Sequences, secrets: Secrets) -> Float[Any, "*N T"]:
    """log2 p(y_t | s^t, y^{t-1}) / p(y_t | y^{t-1}) at each step."""
    known = _masks(prior, secrets)
    # log p(s_t, y_t | s^{t-1}, y^{t-1}) less log p(s_t | s^{t-1}, y^{t-1}).
    both = _log_masses(prior, transition, [known, likelihoods])
    return (both[..., 1] - _log_masses(prior, transition, [likelihoods])[..., 0]) / NATS_PER_BIT


def trajectory_bits(prior: Prior, transition: Transition, likelihoods: Sequences, secrets: Secrets) -> Float[Any, "*N"]:
    """log2 p(s^T, y^T) / p(s^T) p(y^T)."""
    known = _masks(prior, secrets)
    both, paths, sent = (
        _log_masses(prior, transition, each).sum((-2, -1)) for each in ([known, likelihoods], [known], [likelihoods])
    )
    return (both - paths - sent) / NATS_PER_BIT


def _masks(prior: Prior, secrets: Secrets) -> Sequences:
    """The likelihood of knowing the secret: 1[s = s_t]."""
    values = secrets.__array_namespace__().arange(prior.shape[0])
    known = (values == secrets[..., None])[..., None]
    return (known & (prior >= 0)) * 1.0


def _log_masses(prior: Prior, transition: Transition, likelihoods: list[Sequences]) -> Float[Any, "*N T L"]:
    """The logarithm of the probability of each of several observations per step, given all before it."""
    xp = prior.__array_namespace__()
    belief, found = xp.broadcast_to(prior, likelihoods[0].shape[:-3] + prior.shape), []
    for t in range(likelihoods[0].shape[-3]):
        for likelihood in likelihoods:
            joint = belief * likelihood[..., t, :, :]
            mass = joint.sum((-2, -1))
            belief = joint / mass[..., None, None]
            found.append(xp.log(mass))
        belief = predict(belief, transition)
    logarithms = xp.stack(found, axis=-1)
    return logarithms.reshape(*logarithms.shape[:-1], -1, len(likelihoods))
