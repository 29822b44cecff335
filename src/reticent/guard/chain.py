"""The chain of a model as the guard needs it: how far ahead and back it must look. Numpy, once per model."""

import numpy as np
from jaxtyping import Float

from reticent.errors import InputError
from reticent.guard.moments import Chain
from reticent.problem.merging import MARGIN, NEAREST, RETIRED
from reticent.problem.model import Model

# A chain that needs more future rows or slots than this is refused.
MOST_AHEAD, MOST_SLOTS = 4_096, 4_096
# Slots by default, as a multiple of what silence needs: a moment near its limit takes several times as long to mix.
SPARE = 8


def chain_of(model: Model, limits: Float[np.ndarray, " S"]) -> Chain:
    """T, and the rows of the present and the future: as many steps ahead as some belief could tell the secret.

    Where the secret never moves its present says all. A model whose own dynamics reach the limit is refused.
    """
    pairs = model.prior.size
    transition, secret = model.dynamics.reshape(pairs, pairs), _secret_of(model)
    chain = Chain(transition, secret[None], limits)
    if model.secret_moves:
        chain = chain._replace(ahead=_ahead(transition, secret, limits))
    _check_prior(model, chain)
    return chain


def present_only(model: Model, limits: Float[np.ndarray, " S"]) -> Chain:
    """The chain of a guard that keeps to the present alone, and so does not keep the promise; for comparison."""
    pairs = model.prior.size
    return Chain(model.dynamics.reshape(pairs, pairs), _secret_of(model)[None], limits)


def slots_of(model: Model, chain: Chain) -> int:
    """How many moments to have slots for: some more than are open at once where nothing is sent."""
    return min(SPARE * _open_in_silence(chain), MOST_SLOTS) if model.secret_moves else 0


def _secret_of(model: Model) -> Float[np.ndarray, "S X"]:
    """1_s(x)."""
    secrets, useful = model.prior.shape
    return np.repeat(np.eye(secrets), useful, axis=1)


def _ahead(transition: np.ndarray, secret: np.ndarray, limits: np.ndarray) -> Float[np.ndarray, "K S X"]:
    found, now = [], secret
    while (now.max(1) >= limits - MARGIN).any():
        if len(found) == MOST_AHEAD:
            s = int((now.max(1) - limits).argmax())
            raise InputError(
                f"Even {MOST_AHEAD} steps ahead some pair makes secret {s} as probable as {now[s].max():.6g}, which is "
                f"not below the bound of {limits[s]:g}: the chain itself says too much. Choose a larger bound, a "
                "longer time step, or a model whose secret moves."
            )
        found.append(now)
        now = now @ transition.T
    return np.array(found or [secret])


def _check_prior(model: Model, chain: Chain) -> None:
    """The prior must keep what is to be promised: for the first moment, and for all after it while nothing is sent."""
    expected = chain.ahead @ model.prior.reshape(-1)
    k, s = np.unravel_index((expected - chain.limits).argmax(), expected.shape)
    if expected[k, s] >= chain.limits[s] - NEAREST:
        when = "now" if k == 0 else f"in {k} steps"
        raise InputError(
            f"By the prior the secret is {model.secrets[s]!r} {when} with probability {expected[k, s]:.6g}, before "
            f"anything is sent, which is not below the bound of {chain.limits[s]:g}. Choose a larger bound."
        )


def _open_in_silence(chain: Chain) -> int:
    """After how many steps a moment retires where nothing was ever sent, which is how many are open at once."""
    # Far beyond any mixing; rows are averaged for chains with a period.
    lazy = (chain.transition + np.eye(len(chain.transition))) / 2
    settled = np.linalg.matrix_power(lazy, 2**20).mean(0)
    belief = settled / settled.sum()
    weights = belief * chain.ahead[0]
    for steps in range(1, MOST_SLOTS + 1):
        belief, weights = belief @ chain.transition, weights @ chain.transition
        if ((weights < (chain.limits - RETIRED)[:, None] * belief) | (belief == 0)).all():
            return steps
    raise InputError(
        f"A moment is not forgotten within {MOST_SLOTS} steps in which nothing is sent: what is sent later could "
        "always tell the secret of long ago. Choose a larger bound, a longer time step, or a model whose secret moves "
        "faster."
    )
