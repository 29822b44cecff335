"""Attacker that sees the order of releases: n-grams of (sensor, symbol), and waits."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int

from reticent.audit.classifiers import Classifier
from reticent.audit.features import Bins, Scale, places, scaled, waited
from reticent.audit.traces import PADDING, Traces

# Vocabulary: the most frequent n-grams, each seen at least FEWEST times.
MOST_GRAMS, FEWEST = 4000, 3
# Quantile bins of readings and of waits.
READING_PARTS, WAIT_PARTS = 4, 8
FIRST_WAITS, FIRST_PAIRS = 10, 10
Codes = tuple[Int[np.ndarray, " R"], Int[np.ndarray, " R"]]


class NGrams(Classifier):
    """Logistic regression on n-gram counts: unigrams and bigrams of releases, trigrams of sensors, ordered pairs of
    sensors at any distance, and waits by themselves, with their sensor and as bigrams."""

    name = "n-grams"

    def classifier(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=0.3, max_iter=1000, tol=1e-3)

    def fit(self, traces: Traces) -> None:
        seen = scaled(traces, Scale.of(traces))
        self.bins, self.edges = Bins.of(seen, READING_PARTS), _wait_edges(traces)
        _, code = self._codes(seen)
        known, often = np.unique(code, return_counts=True)
        frequent = np.argsort(-often, kind="stable")[:MOST_GRAMS]
        # A last entry that never occurs, so that every search returns a valid index.
        self.known = np.append(np.sort(known[frequent[often[frequent] >= FEWEST]]), np.iinfo(np.int64).max)
        super().fit(traces)

    def features(self, traces: Traces) -> Any:
        from scipy import sparse

        episode, code = self._codes(traces)
        column = np.searchsorted(self.known, code)
        met = self.known[column] == code
        entries = np.ones(met.sum(), np.float32), (episode[met], column[met])
        counts = sparse.csr_array(entries, shape=(len(traces), len(self.known)))
        counts.data = np.log1p(counts.data)
        ends = np.stack([np.log1p(traces.length), traces.stopped], axis=1)
        rest = np.concatenate([ends, waited(traces, FIRST_WAITS)], axis=1)
        return sparse.hstack([counts, rest.astype(np.float32)], format="csr", dtype=np.float32)

    def _codes(self, traces: Traces) -> Codes:
        """Episode and code of every n-gram; the codes of each kind are offset by those of the kinds before."""
        start, episodes, codes = 0, [], []
        for episode, code, options in self._kinds(traces):
            episodes.append(episode)
            codes.append(start + code)
            start += options
        return np.concatenate(episodes), np.concatenate(codes)

    def _kinds(self, traces: Traces) -> Iterator[tuple[Any, Any, int]]:
        place, options = places(traces, self.bins)
        sensor, sensors = traces.sensor[:, :, None], len(traces.names.sensors)
        spoke = traces.released[:, :, None]
        yield *_rows(spoke, place), options
        yield from _followed(spoke, place, options, 2)
        first = slice(FIRST_PAIRS + 1)
        step = np.arange(traces.longest)[None, :, None]
        yield from _followed(spoke[:, first], place[:, first], options, 2, step[:, first])
        yield from _followed(spoke, sensor, sensors, 3)
        yield *_in_order(traces.sensor, sensors), sensors**2
        if traces.waits is not None:
            ended = np.pad(traces.sensor, ((0, 0), (0, 1)), constant_values=PADDING)
            # The wait of the stop counts as that of one more sensor.
            ended[np.arange(len(traces)), traces.length] = np.where(traces.stopped, sensors, PADDING)
            wait = np.sum([edge < traces.waits for edge in self.edges], axis=0)
            known = np.broadcast_to((ended != PADDING)[:, :, None], wait.shape)
            wait = wait + WAIT_PARTS * np.arange(wait.shape[2])
            parts = WAIT_PARTS * wait.shape[2]
            yield *_rows(known, wait), parts
            yield *_rows(known, ended[:, :, None] * parts + wait), parts * (sensors + 1)
            yield from _followed(known, wait, parts, 2)


def _wait_edges(traces: Traces) -> Any:
    """Bin edges of waits, per clock."""
    if traces.waits is None:
        return ()
    known = np.arange(traces.longest + 1)[None] < (traces.length + traces.stopped)[:, None]
    return np.quantile(traces.waits[known], np.linspace(0, 1, WAIT_PARTS + 1)[1:-1], axis=0)


def _rows(known: np.ndarray, code: np.ndarray) -> Codes:
    known = np.broadcast_to(known, code.shape)
    return np.nonzero(known)[0], code[known]


def _followed(
    known: np.ndarray, code: np.ndarray, options: int, count: int, step: Any = 0
) -> Iterator[tuple[Any, Any, int]]:
    """N-grams of `count` consecutive codes, at any step, or told apart by step."""
    last = code.shape[1] - count + 1
    if last < 1:
        return
    parts = [slice(i, i + last) for i in range(count)]
    whole = np.broadcast_to(known, code.shape)[:, parts[-1]]
    total = sum(code[:, part].astype(np.int64) * options ** (count - 1 - i) for i, part in enumerate(parts))
    total = total + options**count * (step[:, :last] if np.ndim(step) else 0)
    yield *_rows(whole, np.asarray(total)), options**count * (last if np.ndim(step) else 1)


def _in_order(sensor: Int[np.ndarray, "N T"], sensors: int) -> Codes:
    """Ordered pairs of sensors at any distance, counted once per release of the later one."""
    episodes, codes = [], []
    for first in range(sensors):
        before = np.cumsum(sensor == first, axis=1) - (sensor == first) > 0
        episode, step = np.nonzero(before & (sensor != PADDING))
        episodes.append(episode)
        codes.append(first * sensors + sensor[episode, step])
    return np.concatenate(episodes), np.concatenate(codes)
