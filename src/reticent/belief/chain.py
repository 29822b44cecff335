"""Beliefs over a hidden pair that moves: prediction in time, filtering, smoothing. A Markov chain X_t = (S_t, U_t).

Arrays have any number of leading axes for sequences side by side; T steps come before [S U]. A likelihood [S U] is that
of whatever was sent at a step, q(y | a, ., .); of a silent step it is one everywhere.
"""

from typing import Any

from jaxtyping import Bool, Float

from reticent.belief.bayes import update
from reticent.errors import InputError

Beliefs = Float[Any, "*N S U"]
Sequences = Float[Any, "*N T S U"]
Transition = Float[Any, "S U S U"]


def predict(belief: Beliefs, transition: Transition) -> Beliefs:
    """The belief one step of time later: b'(x') = sum_x b(x) T(x' | x). Its other half, `bayes.update`, corrects it."""
    return _along(belief, _matrix(transition))


def forecast(belief: Beliefs, transition: Transition, steps: int) -> Sequences:
    """The beliefs 1 .. `steps` steps later, if nothing is sent."""
    ahead = []
    for _ in range(steps):
        belief = predict(belief, transition)
        ahead.append(belief)
    return belief.__array_namespace__().stack(ahead, axis=-3)


def filtered(prior: Float[Any, "S U"], transition: Transition, likelihoods: Sequences) -> Sequences:
    """P(X_t | sent up to t) at each step; the prior is that of the first one.

    What the model calls impossible is an `InputError`: no belief could account for it.
    """
    xp = likelihoods.__array_namespace__()
    predicted, after, possible = xp.broadcast_to(prior, likelihoods.shape[:-3] + prior.shape), [], []
    for t in range(likelihoods.shape[-3]):
        belief, told = update(predicted, likelihoods[..., t, :, :])
        after.append(belief)
        possible.append(told)
        predicted = predict(belief, transition)
    _check(xp.stack(possible, axis=-1))
    return xp.stack(after, axis=-3)


def smoothed(prior: Float[Any, "S U"], transition: Transition, likelihoods: Sequences) -> Sequences:
    """P(X_t | all that was sent until the end) at each step: forward-backward.

        gamma_t(x) ~ b_t(x) m_t(x),    m_t(x) = sum_x' T(x' | x) l_{t+1}(x') m_{t+1}(x'),    m_T = 1,

    where b_t is the filtered belief; messages m are scaled to a largest value of one.
    """
    beliefs, back = filtered(prior, transition, likelihoods), _matrix(transition).T
    xp = beliefs.__array_namespace__()
    message, found = xp.ones_like(beliefs[..., 0, :, :]), []
    for t in reversed(range(likelihoods.shape[-3])):
        found.append(update(beliefs[..., t, :, :], message)[0])
        message = _along(likelihoods[..., t, :, :] * message, back)
        message = message / message.max((-2, -1), keepdims=True)
    return xp.stack(found[::-1], axis=-3)


def _matrix(transition: Transition) -> Float[Any, "X X"]:
    secrets, useful = transition.shape[:2]
    return transition.reshape(secrets * useful, secrets * useful)


def _along(values: Beliefs, matrix: Float[Any, "X X"]) -> Beliefs:
    """The row vectors [S U] times the matrix."""
    return (values.reshape(*values.shape[:-2], len(matrix)) @ matrix).reshape(values.shape)


def _check(possible: Bool[Any, "*N T"]) -> None:
    if not possible.all():
        step = int((~possible.reshape(-1, possible.shape[-1])).any(0).argmax())
        raise InputError(
            f"What was sent at step {step} has probability zero under the model. The model does not fit: fit it again."
        )
