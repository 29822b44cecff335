"""Random draws: from the operating system, so that nothing that was sent tells what is drawn next."""

import os
from typing import Any, Protocol, runtime_checkable

import numpy as np

# Bits of a number from 0 to 1 with 53 digits after the point.
WORD, DROPPED, SCALE = 8, 11, 2.0**-53


@runtime_checkable
class Draws(Protocol):
    """What is asked of a source of draws; generators of numpy are such sources, too."""

    def random(self) -> float:
        """A number from 0 to 1, without 1."""
        ...

    def gumbel(self, *, size: Any) -> np.ndarray:
        """Numbers with the law of Gumbel: the largest of logits with them added is drawn from their softmax."""
        ...


class SystemDraws:
    """Draws from the operating system's generator, each by itself: making and keeping one costs nothing."""

    def random(self) -> float:
        return (int.from_bytes(os.urandom(WORD)) >> DROPPED) * SCALE

    def gumbel(self, *, size: Any) -> np.ndarray:
        words = np.frombuffer(os.urandom(WORD * int(np.prod(size))), np.uint64) >> np.uint64(DROPPED)
        # In the middle of each step, so that neither logarithm is of zero.
        return -np.log(-np.log((words.reshape(size) + 0.5) * SCALE))
