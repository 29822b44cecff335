"""Attacker that counts how often each sensor sends each symbol under each hidden pair."""

from typing import Any

import numpy as np

from reticent.audit.attacker import Attacker
from reticent.audit.features import Bins, Scale, counted, places, scaled
from reticent.audit.posterior import Posterior, frequencies, posterior_of
from reticent.audit.traces import Traces


class NaiveBayes(Attacker):
    """Multinomial naive Bayes over (sensor, symbol). Readings are discretised into deciles per sensor and axis."""

    name = "naive Bayes"
    parts = 10

    def fit(self, traces: Traces) -> None:
        from sklearn.naive_bayes import MultinomialNB

        self.prior, self.scale = frequencies(traces), Scale.of(traces)
        traces = scaled(traces, self.scale)
        self.bins = Bins.of(traces, self.parts)
        pairs = traces.secret * len(traces.names.useful) + traces.useful
        self.model = MultinomialNB(alpha=1.0).fit(self._counts(traces), pairs)

    def posterior(self, traces: Traces) -> Posterior:
        belief = np.zeros((len(traces), self.prior.size))
        belief[:, self.model.classes_] = self.model.predict_proba(self._counts(scaled(traces, self.scale)))
        return posterior_of(belief.reshape(-1, *self.prior.shape), self.prior)

    def _counts(self, traces: Traces) -> Any:
        """Counts of each (sensor, symbol or bin) per episode, a sparse matrix."""
        return counted(traces, *places(traces, self.bins))
