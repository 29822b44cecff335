"""Codes that keep what can be learned from readings: a classifier per sensor, and codes on what it says.

Codes of a codebook by k-means keep where readings lie, whether that tells anything or not. Here a small network learns
the pair of labels from a reading of one sensor, its probabilities are calibrated by a temperature, and readings with
like probabilities are one code. What a network says of people whom it learned from is too good to be true, so these
people's own codes are by networks that learned from the others: the counts that a model is made of are of such codes.
The network of everybody is for people who are still to come.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar

from reticent.data.readings import Readings
from reticent.fit.codes import centres_of, standardisation
from reticent.problem.codebook import Classifier, Codebook

# As many readings of each person with each pair teach a network, whoever was recorded for longer.
TAUGHT = 150
HIDDEN, PENALTY, PASSES = 24, 1.0, 60
# People are left out one by one, or in so many groups.
FOLDS = 8
# Temperatures that are tried, as powers of e.
COLDEST, HOTTEST = -2.0, 4.0


class LearnedCodes:
    """What the readings of these people say of their labels to networks that learned from others among them."""

    def __init__(self, recorded: Readings, seed: int) -> None:
        self.recorded, self.seed = recorded, seed
        self.mean, self.deviation, self.may_lack = standardisation(recorded)
        self._pair = recorded.secret * len(recorded.useful_values) + recorded.useful
        self._rows = _balanced(recorded, self._pair, seed)
        sensors = range(len(recorded.sensors))
        self._scaled = [(recorded.values[:, a] - self.mean[a]) / self.deviation[a] for a in sensors]
        self._classifiers, self._said = zip(*(self._learn(own) for own in self._scaled), strict=True)

    def codebook(self, codes: int) -> tuple[Codebook, Int[np.ndarray, "N A"]]:
        """A codebook with so many codes per sensor, and those of these people by networks that do not know them."""
        said = [own[self._rows] for own in self._said]
        centres = tuple(centres_of(own[~np.isnan(own).any(1)], codes, self.seed) for own in said)
        book = Codebook(self.mean, self.deviation, centres, self.may_lack, self._classifiers)
        return book, np.stack([book.nearest(a, own) for a, own in enumerate(self._said)], axis=1)

    def _learn(self, scaled: Float[np.ndarray, "N D"]) -> tuple[Classifier, Float[np.ndarray, "N K"]]:
        """The network of everybody, and what networks of others say of each reading."""
        pairs = len(self.recorded.secrets) * len(self.recorded.useful_values)
        there = self._rows[~np.isnan(scaled[self._rows]).any(1)]
        logits = np.full((len(scaled), pairs), np.nan)
        for left_out in _folds(self.recorded.person):
            others = there[~np.isin(self.recorded.person[there], left_out)]
            own = np.isin(self.recorded.person, left_out)
            logits[own] = _taught(scaled[others], self._pair[others], pairs, self.seed).logits(scaled[own])
        temperature = _temperature(logits[there], self._pair[there])
        everybody = _taught(scaled[there], self._pair[there], pairs, self.seed)._replace(temperature=temperature)
        return everybody, everybody.roots(logits)


def _balanced(recorded: Readings, pair: Int[np.ndarray, " N"], seed: int) -> Int[np.ndarray, " B"]:
    rng = np.random.default_rng(seed)
    each = sorted(set(zip(recorded.person.tolist(), pair.tolist(), strict=True)))
    own = [np.flatnonzero((recorded.person == person) & (pair == one)) for person, one in each]
    return np.concatenate([rng.choice(rows, TAUGHT) for rows in own])


def _folds(person: Int[np.ndarray, " N"]) -> list[Int[np.ndarray, " F"]]:
    people = np.unique(person)
    return np.array_split(people, min(len(people), FOLDS))


def _taught(scaled: Float[np.ndarray, "N D"], pair: Int[np.ndarray, " N"], pairs: int, seed: int) -> Classifier:
    from sklearn.neural_network import MLPClassifier

    network: Any = MLPClassifier((HIDDEN,), alpha=PENALTY, random_state=seed)
    classes, rng = np.unique(pair), np.random.default_rng(seed)
    # One pass at a time: its `fit` would call it a failure to stop after so many.
    for _ in range(PASSES):
        order = rng.permutation(len(pair))
        network.partial_fit(scaled[order], pair[order], classes=classes)
    return _as_classifier(network, classes, pairs)


def _as_classifier(network: Any, classes: Int[np.ndarray, " C"], pairs: int) -> Classifier:
    """Its numbers; a pair that nobody of them was recorded with gets a logit far below the others."""
    (first, last), (shift, offset) = network.coefs_, network.intercepts_
    if last.shape[1] == 1:
        # Of two classes the network has one output, the logarithm of the odds of the second.
        last, offset = np.hstack([0 * last, last]), np.append(0.0, offset)
    weights, offsets = np.zeros((len(last), pairs)), np.full(pairs, -30.0)
    weights[:, classes], offsets[classes] = last, offset
    return Classifier(first, shift, weights, offsets, 1.0)


def _temperature(logits: Float[np.ndarray, "N K"], pair: Int[np.ndarray, " N"]) -> float:
    """The one with the lowest loss on people who were left out."""

    def loss(power: float) -> float:
        cooled = logits / np.exp(power)
        cooled = cooled - cooled.max(1, keepdims=True)
        return float((np.log(np.exp(cooled).sum(1)) - cooled[np.arange(len(pair)), pair]).mean())

    found: Any = minimize_scalar(loss, bounds=(COLDEST, HOTTEST), method="bounded")
    return float(np.exp(found.x))
