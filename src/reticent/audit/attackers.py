"""Attackers: what somebody who sees what was released comes to believe about the secret, and about the useful value.

All through one door: `fit` on traces, then `confidence` on others, as they are or cut short (`Traces.until`), which
gives beliefs over time. Exact Bayes needs a model and learns nothing; the others know nothing but the traces that they
are fitted on. Learned attackers see whole episodes and their beginnings, each as a line of numbers or step by step.
"""

import abc
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from reticent.audit.confidence import (
    LABELS,
    Confidence,
    Label,
    confidence_of,
    confidence_of_each,
    frequencies,
)
from reticent.audit.features import Bins, Scale, axes_of, counted, places, said_at, scaled, symbol_places, waited
from reticent.audit.traces import Traces, joined
from reticent.belief.bayes import update
from reticent.errors import InputError

# Columns that the steps of an episode may take up in its line of numbers; later steps count in the mean only.
MOST_COLUMNS = 1500
# The boosted trees read symbols as categories, of which they can tell so many apart.
MOST_CATEGORIES = 250
FIRST_STEPS = 10


class Attacker(abc.ABC):
    """Somebody who learns from traces and then says what others' traces tell."""

    name: str

    @abc.abstractmethod
    def fit(self, traces: Traces) -> None:
        """Learn from traces, the hidden pairs included."""

    @abc.abstractmethod
    def confidence(self, traces: Traces) -> Confidence:
        """What is believed at the end of each trace; the hidden pairs in it are not looked at."""


class Bayes(Attacker):
    """Exact belief with a model and the public rule, which the traces' likelihoods hold. It trusts the policy not to
    know the secret: which sensor spoke, and when it stopped, says nothing by itself."""

    def __init__(self, prior: Float[np.ndarray, "S U"], name: str) -> None:
        self.prior, self.name = prior, name

    def fit(self, traces: Traces) -> None:
        """There is nothing to learn."""

    def confidence(self, traces: Traces) -> Confidence:
        return list(self.along(traces))[-1]

    def along(self, traces: Traces) -> Iterator[Confidence]:
        """The belief at the start, and after every step, in one pass."""
        assert traces.likelihood is not None
        belief = np.broadcast_to(self.prior, (len(traces), *self.prior.shape))
        yield confidence_of(belief, self.prior)
        for step in range(traces.longest):
            belief, possible = update(belief, traces.likelihood[:, step])
            if not possible.all():
                raise InputError(
                    "Some episodes are impossible under the model, although each of their releases is possible: it is "
                    "not the model of these traces."
                )
            yield confidence_of(belief, self.prior)


class Counting(Attacker):
    """Bayes with a model that is counted from the traces: how often each sensor says what, under each hidden pair
    (multinomial naive Bayes). Readings count by the tenth of that sensor's readings that they lie in, axis by axis."""

    name = "naive Bayes"
    parts = 10

    def fit(self, traces: Traces) -> None:
        from sklearn.naive_bayes import MultinomialNB

        self.before, self.scale = frequencies(traces), Scale.of(traces)
        traces = scaled(traces, self.scale)
        self.bins = Bins.of(traces, self.parts)
        pairs = traces.secret * len(traces.names.useful) + traces.useful
        self.model = MultinomialNB(alpha=1.0).fit(self._counts(traces), pairs)

    def confidence(self, traces: Traces) -> Confidence:
        belief = np.zeros((len(traces), self.before.size))
        belief[:, self.model.classes_] = self.model.predict_proba(self._counts(scaled(traces, self.scale)))
        return confidence_of(belief.reshape(-1, *self.before.shape), self.before)

    def _counts(self, traces: Traces) -> Any:
        """How often each sensor said what in each episode, a sparse matrix."""
        return counted(traces, *places(traces, self.bins))


class Lines(Attacker):
    """A classifier per label on one line of numbers per episode."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @abc.abstractmethod
    def classifier(self) -> Any:
        """A fresh one, with `fit` and `predict_proba`."""

    @abc.abstractmethod
    def line(self, traces: Traces) -> Any:
        """The numbers of each episode: a matrix, dense or sparse."""

    def fit(self, traces: Traces) -> None:
        from sklearn.exceptions import ConvergenceWarning

        self.longest, self.before, self.scale = traces.longest, frequencies(traces), Scale.of(traces)
        lines = self.line(_with_beginnings(scaled(traces, self.scale), self.seed))

        def learned(label: Label) -> Any:
            truth = np.tile(getattr(traces, label), 2)
            # Who has seen one class only will never name another.
            return truth[0] if len(np.unique(truth)) == 1 else self.classifier().fit(lines, truth)

        # Both at once, in one thread each: threads that wait for each other crawl on a busy machine.
        with warnings.catch_warnings(), threadpool_limits(1), ThreadPoolExecutor(len(LABELS)) as threads:
            # Whoever stops early is an attacker all the same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.classifiers = dict(zip(LABELS, threads.map(learned, LABELS), strict=True))

    def confidence(self, traces: Traces) -> Confidence:
        lines = self.line(scaled(traces, self.scale).padded(self.longest))
        secrets, useful = self.before.shape
        return confidence_of_each(
            self._said("secret", lines, secrets), self._said("useful", lines, useful), self.before
        )

    def _said(self, label: Label, lines: Any, classes: int) -> Float[np.ndarray, "N C"]:
        said, classifier = np.zeros((lines.shape[0], classes)), self.classifiers[label]
        if isinstance(classifier, np.integer):
            said[:, classifier] = 1.0
        else:
            said[:, classifier.classes_] = classifier.predict_proba(lines)
        return said


class Logistic(Lines):
    """Logistic regression: what each step said, the mean over all steps, how many there were, whether it ended, and
    how long each took."""

    name = "logistic regression"

    def classifier(self) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        # Not centred: most columns are mostly zero, and are kept as such.
        return make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=300))

    def line(self, traces: Traces) -> Any:
        from scipy import sparse

        width = len(traces.names.sensors) * (len(traces.names.symbols) or 1 + axes_of(traces))
        first = min(traces.longest, max(1, MOST_COLUMNS // width))
        steps = [sparse.csr_array(said_at(traces, step, width)) for step in range(traces.longest)]
        count = traces.length
        mean = sparse.diags_array(1 / np.maximum(count, 1)) @ sum(steps[1:], steps[0])
        ends = np.stack([count, traces.stopped, *(count == n for n in range(1, min(traces.longest, FIRST_STEPS)))], 1)
        rest = np.concatenate([ends, waited(traces, FIRST_STEPS)], axis=1, dtype=np.float32)
        return sparse.hstack([*steps[:first], mean, rest], format="csr", dtype=np.float32)


class BoostedTrees(Lines):
    """Gradient-boosted trees: the first steps as categories (or readings), counts (or means) of all, the end, waits."""

    name = "boosted trees"

    def classifier(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=100,
            max_leaf_nodes=15,
            min_samples_leaf=20,
            categorical_features=self.categories,  # type: ignore[arg-type]
            random_state=self.seed,
            early_stopping=False,  # type: ignore[arg-type]
        )

    def fit(self, traces: Traces) -> None:
        if traces.symbol is not None:
            # Trees need every column in memory, so the rarest of very many things that were said are left out.
            place, options = symbol_places(traces)
            often = counted(traces, place[:, :, None], options).sum(0)
            self.counted = np.sort(np.argsort(-often, kind="stable")[:MOST_COLUMNS])
        super().fit(traces)

    def line(self, traces: Traces) -> Float[np.ndarray, "N F"]:
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


def retrained(fitted_on: Traces, judged_on: Traces) -> dict[str, Confidence]:
    """What attackers who are quick to learn believe, by name."""
    found = {}
    for attacker in (Logistic(), BoostedTrees()):
        attacker.fit(fitted_on)
        found[attacker.name] = attacker.confidence(judged_on)
    return found


def _with_beginnings(traces: Traces, seed: int) -> Traces:
    """Each episode twice: whole, and cut at a random moment, so that an attacker learns to judge both."""
    moment = np.random.default_rng(seed).integers(traces.length + 1)
    return joined(traces, traces.until(moment))
