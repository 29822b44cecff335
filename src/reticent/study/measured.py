"""Measures of one policy on recordings: stopping time, confidence, and accuracies of attackers on measured people."""

from typing import Any

import numpy as np

from reticent.audit.classifiers import retrained
from reticent.audit.measures import balanced_accuracy, balanced_over_people, percentiles
from reticent.audit.traces import Traces
from reticent.process.rollout import Episode


def numbers_of(records: Episode, measured: Traces, named: dict[str, np.ndarray] | None, seen: Traces) -> dict[str, Any]:
    """All that a row says. Without an adversary of random traces the best retrained attacker stands for it."""
    numbers: dict[str, Any] = {
        "releases": float(np.mean(records.releases)),
        "confidence_useful": float(np.asarray(records.belief).sum(1).max(1).mean()),
        "violation_rate": float(np.mean(records.violated)),
        "cost": float(np.mean(records.cost)),
    }
    believed = retrained(seen, measured)
    for label in ("useful", "secret"):
        truth = getattr(measured, label)
        guesses = {name: confidence.fair_guess(label) for name, confidence in believed.items()}
        balanced = {name: balanced_accuracy(guess, truth) for name, guess in guesses.items()}
        best = max(balanced, key=lambda name: balanced[name])
        shown = guesses[best] if named is None else named[label]
        numbers |= {
            f"accuracy_{label}": float(np.mean(shown == truth)),
            f"balanced_{label}": balanced_accuracy(shown, truth),
            f"per_{label}": _per_class(shown, truth),
            f"retrained_{label}": balanced[best],
            f"retrained_per_{label}": _per_class(guesses[best], truth),
            f"attacker_{label}": best,
            f"people_{label}": _by_person(guesses[best], truth, measured.person),
        }
    return numbers


def _per_class(guess: np.ndarray, truth: np.ndarray) -> list[float]:
    """How often each class that came was named right."""
    return [float(np.mean(guess[truth == value] == value)) for value in np.unique(truth)]


def _by_person(guess: np.ndarray, truth: np.ndarray, person: np.ndarray) -> list[list[list[int]]]:
    """Of each measured person: how often each class was named right, and how often it came."""
    classes = range(int(truth.max()) + 1)
    mine = [person == one for one in np.unique(person)]
    return [
        [
            [int(((guess == c) & (truth == c) & own).sum()) for c in classes],
            [int(((truth == c) & own).sum()) for c in classes],
        ]
        for own in mine
    ]


def silence(prior: np.ndarray, error_penalty: float) -> dict[str, Any]:
    """What is known of somebody who says nothing: the prior."""
    sure = float(prior.sum(0).max())
    numbers: dict[str, Any] = {"releases": 0.0, "confidence_useful": sure, "violation_rate": 0.0}
    numbers["cost"] = error_penalty * (1 - sure)
    for label, marginal in (("useful", prior.sum(0)), ("secret", prior.sum(1))):
        guess = np.eye(len(marginal))[marginal.argmax()]
        numbers |= {
            f"accuracy_{label}": float(marginal.max()),
            f"balanced_{label}": 1 / len(marginal),
            f"per_{label}": guess.tolist(),
            f"retrained_{label}": 1 / len(marginal),
            f"retrained_per_{label}": guess.tolist(),
            f"attacker_{label}": "prior",
            f"people_{label}": [],
        }
    return numbers


def over_people(rotations: list[dict[str, Any]]) -> dict[str, float | None]:
    """Ends of the 95 % intervals of the retrained attackers' accuracies and of their gap, over all measured people."""
    found: dict[str, float | None] = {}
    drawn, units = {}, 0
    for label in ("useful", "secret"):
        people = np.array([person for each in rotations for person in each[f"people_{label}"]], float)
        # Two people are no sample.
        drawn[label] = balanced_over_people(people[:, 0], people[:, 1]) if len(people) > 2 else None
        units = len(people)
    useful, secret = drawn["useful"], drawn["secret"]
    gap = None if useful is None or secret is None else (useful[0] - secret[0], useful[1] - secret[1])
    for name, numbers in (("retrained_useful", useful), ("retrained_secret", secret), ("gap", gap)):
        interval = None if numbers is None else percentiles(numbers[0], numbers[1], units)
        found |= {f"{name}_low": interval and interval.low, f"{name}_high": interval and interval.high}
    return found
