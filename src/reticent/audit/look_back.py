"""Attackers who look back: each is asked for the hidden pair of every moment, with all that was released until the end.

The public rule of a guard that keeps the present only lets what is sent later tell what was hidden before; these
attackers find out.
"""

import abc

import numpy as np
from jaxtyping import Float

from reticent.audit.moving_traces import MovingTraces, pair_frequencies
from reticent.audit.posterior import Posterior, posterior_of
from reticent.belief.chain import filtered, smoothed
from reticent.data.trajectories import Trajectories
from reticent.errors import InputError
from reticent.fit.transition import fit_transition
from reticent.problem.model import Model

# Share of what everybody says together in the law of each hidden pair: nothing is impossible because it is rare.
SMOOTHING = 0.02


class LookBackAttacker(abc.ABC):
    """Infers secret and useful value of every moment from everything that was released in its episode."""

    name: str

    @abc.abstractmethod
    def fit(self, traces: MovingTraces) -> None:
        """Train on traces, hidden pairs included."""

    @abc.abstractmethod
    def posterior(self, traces: MovingTraces) -> Posterior:
        """Posterior of every row; does not read the hidden pairs."""


class Smoother(LookBackAttacker):
    """Forward-backward with the model and the public rule, both contained in `MovingTraces.likelihood`."""

    def __init__(self, model: Model, name: str = "smoother with the model") -> None:
        self.model, self.name = model, name

    def fit(self, traces: MovingTraces) -> None:
        """Does nothing: the model is known."""

    def posterior(self, traces: MovingTraces) -> Posterior:
        beliefs = smoothed(self.model.prior, self.model.dynamics, self._likelihoods(traces))
        return posterior_of(beliefs[traces.episode, traces.step], self.model.prior)

    def at_the_time(self, traces: MovingTraces) -> Posterior:
        """What it believed of each moment when that moment was the present: the filter."""
        beliefs = filtered(self.model.prior, self.model.dynamics, self._likelihoods(traces))
        return posterior_of(beliefs[traces.episode, traces.step], self.model.prior)

    def _likelihoods(self, traces: MovingTraces) -> Float[np.ndarray, "E T S U"]:
        if traces.likelihood is None:
            raise InputError("The smoother needs the likelihood of each release; these traces have none. Give a model.")
        return traces.padded(traces.likelihood, 1.0)


class RefittedHmm(LookBackAttacker):
    """Hidden Markov model, counted in traces whose hidden pairs are known: how pairs move, and what is sent (or that
    nothing is) with each. Nothing of the model or of the public rule is used."""

    name = "refitted HMM"

    def fit(self, traces: MovingTraces) -> None:
        self.prior = pair_frequencies(traces)
        self.transition = fit_transition(_lives(traces), self.prior)
        self.law = said_law(traces)

    def posterior(self, traces: MovingTraces) -> Posterior:
        likelihoods = traces.padded(self.law.T[traces.said].reshape(-1, *self.prior.shape), 1.0)
        beliefs = smoothed(self.prior, self.transition, likelihoods)
        return posterior_of(beliefs[traces.episode, traces.step], self.prior)


def said_law(traces: MovingTraces) -> Float[np.ndarray, "X K"]:
    """P(what is said | pair), counted and smoothed; every thing that can be said has a chance."""
    pairs = len(traces.names.secrets) * len(traces.names.useful)
    counts = np.zeros((pairs, traces.different))
    np.add.at(counts, (traces.pair, traces.said), 1)
    together = counts.sum(0) + 1
    together = together / together.sum()
    own = np.maximum(counts.sum(1, keepdims=True), 1)
    law = np.where(counts.sum(1, keepdims=True) > 0, counts / own, together)
    return (1 - SMOOTHING) * law + SMOOTHING * together


def _lives(traces: MovingTraces) -> Trajectories:
    """The hidden pairs of the traces as trajectories."""
    return Trajectories(
        codes=traces.said[:, None],
        secret=traces.secret,
        useful=traces.useful,
        trajectory=traces.episode,
        person=traces.person,
        people=(),
        sensors=("what was sent",),
        secrets=traces.names.secrets,
        useful_values=traces.names.useful,
        step=1.0,
    )
