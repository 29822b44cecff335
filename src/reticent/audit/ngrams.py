"""An attacker who sees what followed what: pairs of (sensor, symbol) in order, and how long it took."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int

from reticent.audit.attackers import Lines
from reticent.audit.features import Bins, Scale, places, scaled, waited
from reticent.audit.traces import NOTHING, Traces

# The most frequent n-grams count; those that came less often than this do not.
MOST_GRAMS, FEWEST = 4000, 3
# Readings are told apart by the quarter, and waits by the eighth, that they lie in.
READING_PARTS, WAIT_PARTS = 4, 8
FIRST_WAITS, FIRST_PAIRS = 10, 10
Codes = tuple[Int[np.ndarray, " R"], Int[np.ndarray, " R"]]


class NGrams(Lines):
    """Logistic regression on how often each n-gram came: one and two releases in a row, three sensors in a row, two
    sensors in this order at any distance, and waits between releases, with the sensor and in a row."""

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
        # The last one never comes: whatever is looked up finds a place.
        self.known = np.append(np.sort(known[frequent[often[frequent] >= FEWEST]]), np.iinfo(np.int64).max)
        super().fit(traces)

    def line(self, traces: Traces) -> Any:
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
        """Which n-grams came in which episode, numbered so that those of one kind follow those of the last."""
        start, episodes, codes = 0, [], []
        for episode, code, options in self._kinds(traces):
            episodes.append(episode)
            codes.append(start + code)
            start += options
        return np.concatenate(episodes), np.concatenate(codes)

    def _kinds(self, traces: Traces) -> Iterator[tuple[Any, Any, int]]:
        place, options = places(traces, self.bins)
        sensor, sensors = traces.sensor[:, :, None], len(traces.names.sensors)
        spoke = sensor != NOTHING
        yield *_rows(spoke, place), options
        yield from _followed(spoke, place, options, 2)
        first = slice(FIRST_PAIRS + 1)
        step = np.arange(traces.longest)[None, :, None]
        yield from _followed(spoke[:, first], place[:, first], options, 2, step[:, first])
        yield from _followed(spoke, sensor, sensors, 3)
        yield *_in_order(traces.sensor, sensors), sensors**2
        if traces.waits is not None:
            ended = np.pad(traces.sensor, ((0, 0), (0, 1)), constant_values=NOTHING)
            # The stop waits like a sensor of its own.
            ended[np.arange(len(traces)), traces.length] = np.where(traces.stopped, sensors, NOTHING)
            wait = np.sum([edge < traces.waits for edge in self.edges], axis=0)
            known = np.broadcast_to((ended != NOTHING)[:, :, None], wait.shape)
            wait = wait + WAIT_PARTS * np.arange(wait.shape[2])
            parts = WAIT_PARTS * wait.shape[2]
            yield *_rows(known, wait), parts
            yield *_rows(known, ended[:, :, None] * parts + wait), parts * (sensors + 1)
            yield from _followed(known, wait, parts, 2)


def _wait_edges(traces: Traces) -> Any:
    """What lies between the parts, by each clock."""
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
    """So many in a row, wherever it was or at each step by itself."""
    last = code.shape[1] - count + 1
    if last < 1:
        return
    parts = [slice(i, i + last) for i in range(count)]
    whole = np.broadcast_to(known, code.shape)[:, parts[-1]]
    total = sum(code[:, part].astype(np.int64) * options ** (count - 1 - i) for i, part in enumerate(parts))
    total = total + options**count * (step[:, :last] if np.ndim(step) else 0)
    yield *_rows(whole, np.asarray(total)), options**count * (last if np.ndim(step) else 1)


def _in_order(sensor: Int[np.ndarray, "N T"], sensors: int) -> Codes:
    """One sensor before another, at any distance: once per release of the later one that it came before."""
    episodes, codes = [], []
    for first in range(sensors):
        before = np.cumsum(sensor == first, axis=1) - (sensor == first) > 0
        episode, step = np.nonzero(before & (sensor != NOTHING))
        episodes.append(episode)
        codes.append(first * sensors + sensor[episode, step])
    return np.concatenate(episodes), np.concatenate(codes)
