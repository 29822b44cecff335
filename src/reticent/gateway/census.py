"""A census of the subjects in memory: in which state they are, and how much of the bound is left to them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from reticent.gateway.holds import DRIFTED
from reticent.gateway.runtime import Runtime
from reticent.gateway.subjects import SubjectState
from reticent.problem.bound import Knowledge

Condition = Literal["waits", "rests", "nothing left", "drifted", "held"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)


@dataclass(frozen=True, eq=False)
class Census:
    """How many subjects are in each condition, and the share of the bound that is left to each, in rising order."""

    conditions: dict[Condition, int]
    headroom: Float[np.ndarray, " N"]


@dataclass(frozen=True, eq=False)
class _Known(Knowledge):
    """What is known of many subjects."""

    belief: Float[np.ndarray, "N R U"]
    spent_bits: Float[np.ndarray, " N"]


def census(runtime: Runtime, states: Iterable[SubjectState]) -> Census:
    """The census of subjects in these states."""
    states = list(states)
    found = Counter(map(condition, states))
    beliefs = np.array([state.standing.belief for state in states]).reshape(-1, *runtime.rules.start.shape)
    spent = np.array([state.standing.spent_bits for state in states], float)
    left = runtime.budget_left(_Known(beliefs, spent))
    return Census({each: found[each] for each in CONDITIONS}, np.sort(left))


def condition(state: SubjectState) -> Condition:
    """Whether the subject speaks, and if not, why."""
    if state.held == DRIFTED:
        return "drifted"
    if state.blocked:
        return "held"
    if state.exhausted:
        return "nothing left"
    return "waits" if state.decision is not None else "rests"
