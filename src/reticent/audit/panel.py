"""Panels of attackers: all of them, or those cheap enough for every part of the traces."""

from collections.abc import Callable

from reticent.audit.attacker import Attacker
from reticent.audit.classifiers import BoostedTrees, Logistic
from reticent.audit.lstm import Lstm
from reticent.audit.naive_bayes import NaiveBayes
from reticent.audit.ngrams import NGrams

Progress = Callable[[str], None]
Make = Callable[[], Attacker]


def full_panel(seed: int, progress: Progress) -> list[Make]:
    """All learned attackers."""
    return [
        *quick_panel(seed),
        lambda: Lstm(seed, lambda done, loss: progress(f"LSTM: update {done}, loss {loss:.3f}")),
    ]


def quick_panel(seed: int) -> list[Make]:
    """Learned attackers without the neural network."""
    return [*part_panel(seed), lambda: BoostedTrees(seed)]


def part_panel(seed: int) -> list[Make]:
    """The fastest attackers, for the many sensors and releases that are attacked one at a time."""
    return [NaiveBayes, lambda: Logistic(seed), lambda: NGrams(seed)]
