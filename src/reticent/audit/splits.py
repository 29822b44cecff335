"""Splits of people or episodes into those that attackers learn from and those they are judged on."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int

from reticent.audit.traces import Names, Traces
from reticent.errors import InputError

# With more people than this one split will do; with fewer everybody's turn comes to be judged.
MANY_PEOPLE, FOLDS = 50, 5


@runtime_checkable
class Labelled(Protocol):
    """Rows of people with labels: episodes whose labels stay, or moments."""

    @property
    def person(self) -> Any: ...
    @property
    def secret(self) -> Any: ...
    @property
    def useful(self) -> Any: ...
    @property
    def names(self) -> Names: ...


def own_units(traces: Traces) -> bool:
    """Whether every episode is somebody's own."""
    return len(np.unique(traces.person)) == len(traces)


def splits_of(traces: Labelled, seed: int) -> list[Bool[np.ndarray, " N"]]:
    """Who is judged: half of many people once, or everybody in turn where there are few.

    People are dealt out by their secrets, so that those who have one for good are in all parts alike: else an attacker
    learns mostly from people with other secrets than those it is judged on.
    """
    people = np.random.default_rng(seed).permutation(np.unique(traces.person))
    secrets = _secrets_of(people, traces)
    people = people[np.lexsort((np.arange(len(people)), secrets))]
    if len(people) > MANY_PEOPLE:
        parts = [people[::2]]
    else:
        # Of the rarest kind of people one in each part, if there are several kinds.
        rarest = np.bincount(secrets).min() if secrets.any() else len(people)
        turns = max(2, min(FOLDS, rarest))
        parts = [people[turn::turns] for turn in range(turns)]
    rows = [np.isin(traces.person, part) for part in parts]
    for judged_rows in rows:
        for label in ("secret", "useful"):
            values = getattr(traces, label)
            if missing := set(values.tolist()) - set(values[~judged_rows].tolist()):
                names = traces.names.secrets if label == "secret" else traces.names.useful
                raise InputError(
                    f"Too few people have the {label} {[names[i] for i in sorted(missing)]}: attackers must be able to "
                    "learn from others than those they are judged on."
                )
    return rows


def _secrets_of(people: Int[np.ndarray, " P"], traces: Labelled) -> Int[np.ndarray, " P"]:
    """Which kind each person is of: all who have the same set of secrets are alike."""
    place = np.searchsorted(np.sort(people), traces.person)
    has = np.zeros((len(people), len(traces.names.secrets)), bool)
    has[place, traces.secret] = True
    return np.unique(has, axis=0, return_inverse=True)[1].reshape(-1)[np.searchsorted(np.sort(people), people)]
