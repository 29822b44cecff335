"""Boosted trees on windows around the moment: what was said before and after it, near and far."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from reticent.audit.classifiers import predicted
from reticent.audit.look_back import LookBackAttacker, said_law
from reticent.audit.moving_traces import MovingTraces, pair_frequencies
from reticent.audit.posterior import LABELS, Label, Posterior, from_marginals

# Steps to each side of the moment that windows reach, and those whose release is a category of its own.
REACHES, NEAR = (1, 3, 10, 30, 100, 300), 2
MOST_CATEGORIES = 250
# Moments to learn from: more take longer and tell little, for neighbours resemble each other.
MOST_MOMENTS = 20_000
LEAST_CHANCE = 1e-12


class WindowTrees(LookBackAttacker):
    """Gradient-boosted trees on sums of evidence over windows before and after the moment.

    The evidence of a step is the logarithm of P(what was said | pair), centred over the pairs: as counted in the traces
    learned from and, where the model is known, as the public rule has it. Beside it stand the releases nearest to the
    moment as categories, and how often nothing was said.
    """

    name = "boosted trees on windows"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, traces: MovingTraces) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        self.prior, self.law = pair_frequencies(traces), said_law(traces)
        count = min(MOST_MOMENTS, len(traces))
        rows = np.sort(np.random.default_rng(self.seed).permutation(len(traces))[:count])
        features = self._features(traces)[rows]
        categories = list(range(2 * NEAR + 1)) if traces.different < MOST_CATEGORIES else None

        def learned(label: Label) -> Any:
            truth = getattr(traces, label)[rows]
            if len(np.unique(truth)) == 1:
                return truth[0]
            trees = HistGradientBoostingClassifier(
                max_iter=100,
                max_leaf_nodes=8,
                min_samples_leaf=100,
                learning_rate=0.05,
                categorical_features=categories,  # type: ignore[arg-type]
                random_state=self.seed,
                early_stopping=False,  # type: ignore[arg-type]
            )
            return trees.fit(features, truth)

        with threadpool_limits(1):
            self.classifiers = {label: learned(label) for label in LABELS}

    def posterior(self, traces: MovingTraces) -> Posterior:
        features, (secrets, useful) = self._features(traces), self.prior.shape
        with threadpool_limits(1):
            return from_marginals(
                predicted(self.classifiers["secret"], features, secrets),
                predicted(self.classifiers["useful"], features, useful),
                self.prior,
            )

    def _features(self, traces: MovingTraces) -> Float[np.ndarray, "N F"]:
        said, begins = traces.said, traces.begins
        ends = np.append(begins[1:] != begins[:-1], True)
        ends = np.flatnonzero(ends)[np.cumsum(ends) - ends] + 1
        evidence = [_centred(self.law.T[said]), (said == 0)[:, None]]
        if traces.likelihood is not None:
            evidence.append(_centred(traces.likelihood.reshape(len(traces), -1)))
        sums = np.cumsum(np.concatenate(evidence, axis=1), axis=0)
        sums = np.concatenate([np.zeros((1, sums.shape[1])), sums])
        row = np.arange(len(traces))
        windows = []
        for reach in REACHES:
            windows.append(sums[row + 1] - sums[np.maximum(row + 1 - reach, begins)])
            windows.append(sums[np.minimum(row + 1 + reach, ends)] - sums[row + 1])
        near = [_shifted(said, offset, begins, ends) for offset in range(-NEAR, NEAR + 1)]
        place = np.stack([row - begins, ends - row], axis=1)
        return np.concatenate([np.stack(near, axis=1), *windows, place], axis=1, dtype=np.float32)


def _centred(chances: Float[np.ndarray, "N X"]) -> Float[np.ndarray, "N X"]:
    logs = np.log(np.maximum(chances, LEAST_CHANCE))
    return logs - logs.mean(1, keepdims=True)


def _shifted(
    said: Int[np.ndarray, " N"], offset: int, begins: Int[np.ndarray, " N"], ends: Int[np.ndarray, " N"]
) -> Int[np.ndarray, " N"]:
    """What was said so many steps later; silence before the beginning and after the end."""
    row = np.arange(len(said)) + offset
    return np.where((row >= begins) & (row < ends), said[np.clip(row, 0, len(said) - 1)], 0)
