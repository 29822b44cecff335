"""Attackers that are scikit-learn classifiers on one feature vector per episode."""

import abc
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from reticent.audit.attacker import Attacker
from reticent.audit.features import Scale, axes_of, counted, said_at, scaled, symbol_places, waited
from reticent.audit.posterior import LABELS, Label, Posterior, frequencies, from_marginals
from reticent.audit.traces import Traces, joined

# Columns for the first steps of an episode in its feature vector; later steps enter the mean only.
MOST_COLUMNS = 1500
# scikit-learn's limit on the categories of one column.
MOST_CATEGORIES = 250
FIRST_STEPS = 10


class Classifier(Attacker):
    """One classifier per label on one feature vector per episode, trained on whole and truncated episodes."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @abc.abstractmethod
    def classifier(self) -> Any:
        """A new scikit-learn classifier."""

    @abc.abstractmethod
    def features(self, traces: Traces) -> Any:
        """Feature matrix, one row per episode; dense or sparse."""

    def fit(self, traces: Traces) -> None:
        from sklearn.exceptions import ConvergenceWarning

        self.longest, self.prior, self.scale = traces.longest, frequencies(traces), Scale.of(traces)
        rows = self.features(_with_truncated(scaled(traces, self.scale), self.seed))

        def learned(label: Label) -> Any:
            truth = np.tile(getattr(traces, label), 2)
            # With one class only there is nothing to fit: it is predicted with certainty.
            return truth[0] if len(np.unique(truth)) == 1 else self.classifier().fit(rows, truth)

        # Both labels at once, in one thread each: nested thread pools spin on a busy machine. The limit of OpenMP holds
        # for the thread that sets it.
        alone = ThreadPoolExecutor(len(LABELS), initializer=threadpool_limits, initargs=(1,))
        with warnings.catch_warnings(), threadpool_limits(1), alone as threads:
            # A classifier that has not converged is still a valid attacker.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.classifiers = dict(zip(LABELS, threads.map(learned, LABELS), strict=True))

    def posterior(self, traces: Traces) -> Posterior:
        rows = self.features(scaled(traces, self.scale).padded(self.longest))
        secrets, useful = self.prior.shape
        return from_marginals(
            predicted(self.classifiers["secret"], rows, secrets),
            predicted(self.classifiers["useful"], rows, useful),
            self.prior,
        )


def predicted(classifier: Any, rows: Any, classes: int) -> Float[np.ndarray, "N C"]:
    """Probabilities of all classes, also of those that the classifier has not met; a class alone is certain."""
    said = np.zeros((rows.shape[0], classes))
    if isinstance(classifier, np.integer):
        said[:, classifier] = 1.0
    else:
        said[:, classifier.classes_] = classifier.predict_proba(rows)
    return said


class Logistic(Classifier):
    """Logistic regression on the release of each step, their mean, the length, the stop and the waits."""

    name = "logistic regression"

    def classifier(self) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        # Not centred, so that the matrix stays sparse.
        return make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=300))

    def features(self, traces: Traces) -> Any:
        from scipy import sparse

        width = len(traces.names.sensors) * (len(traces.names.symbols) or 1 + axes_of(traces))
        first = min(traces.longest, max(1, MOST_COLUMNS // width))
        steps = [sparse.csr_array(said_at(traces, step, width)) for step in range(traces.longest)]
        count = traces.length
        mean = sparse.diags_array(1 / np.maximum(count, 1)) @ sum(steps[1:], steps[0])
        ends = np.stack([count, traces.stopped, *(count == n for n in range(1, min(traces.longest, FIRST_STEPS)))], 1)
        rest = np.concatenate([ends, waited(traces, FIRST_STEPS)], axis=1, dtype=np.float32)
        return sparse.hstack([*steps[:first], mean, rest], format="csr", dtype=np.float32)


class BoostedTrees(Classifier):
    """Gradient-boosted trees on the first releases as categories (or readings), counts (or means) of all releases, the
    length, the stop and the waits."""

    name = "boosted trees"

    def classifier(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        # Few columns are looked at for each split: quicker, and it overfits less.
        return HistGradientBoostingClassifier(
            max_iter=60,
            learning_rate=0.17,
            max_features=0.15,
            max_leaf_nodes=15,
            min_samples_leaf=20,
            categorical_features=self.categories,  # type: ignore[arg-type]
            random_state=self.seed,
            early_stopping=False,  # type: ignore[arg-type]
        )

    def fit(self, traces: Traces) -> None:
        if traces.symbol is not None:
            # The matrix is dense here, so only the most frequent symbols get a column.
            place, options = symbol_places(traces)
            often = counted(traces, place[:, :, None], options).sum(0)
            self.counted = np.sort(np.argsort(-often, kind="stable")[:MOST_COLUMNS])
        super().fit(traces)

    def features(self, traces: Traces) -> Float[np.ndarray, "N F"]:
        ends = np.stack([traces.length, traces.stopped], axis=1)
        ends = np.concatenate([ends, waited(traces, FIRST_STEPS)], axis=1)
        first = min(traces.longest, FIRST_STEPS)
        self.categories = None
        if traces.reading is not None:
            width = len(traces.names.sensors) * (1 + axes_of(traces))
            steps = [said_at(traces, step, width) for step in range(first)]
            total = sum(said_at(traces, step, width) for step in range(traces.longest))
            spoken = np.maximum(traces.length, 1)[:, None]
            return np.concatenate([*steps, total / spoken, ends], axis=1, dtype=np.float32)
        place, options = symbol_places(traces)
        counts = counted(traces, place[:, :, None], options)[:, self.counted].toarray()
        if options < MOST_CATEGORIES:
            self.categories = list(range(first))
        return np.concatenate([place[:, :first], counts, ends], axis=1, dtype=np.float32)


def retrained(fitted_on: Traces, judged_on: Traces) -> dict[str, Posterior]:
    """Posteriors of the attackers that train quickly, by name."""
    found = {}
    for attacker in (Logistic(), BoostedTrees()):
        attacker.fit(fitted_on)
        found[attacker.name] = attacker.posterior(judged_on)
    return found


def _with_truncated(traces: Traces, seed: int) -> Traces:
    """Each episode twice, whole and truncated at a random step, so that a classifier can be applied at any step."""
    moment = np.random.default_rng(seed).integers(traces.length + 1)
    return joined(traces, traces.until(moment))
