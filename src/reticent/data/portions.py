"""Portions of people, to learn from or to measure on, rotated so that everybody is measured once."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reticent.data.readings import Readings
from reticent.errors import InputError

People = tuple[int, ...]


@dataclass(frozen=True)
class Portions:
    """Indices of people: to learn the belief from, to train policies on, to train the adversary on, to measure on."""

    predictor: People
    policy: People
    adversary: People
    measured: People


def rotations(recorded: Readings) -> int:
    """How many rotations measure everybody once (the last ones may meet the first again)."""
    people = _ordered(recorded)
    return -(-len(people) // _measured(recorded, len(people)))


def portions(recorded: Readings, rotation: int = 0) -> Portions:
    """About a quarter of the people each; where there are few, one is measured and the others share the rest."""
    people = _ordered(recorded)
    measured = _measured(recorded, len(people))
    rest = len(people) - measured
    if rest < 3:
        raise InputError(
            f"There are {len(people)} people: at least {measured + 3} are needed to learn, train, attack and measure "
            "on different ones."
        )
    start = rotation * measured % len(people)
    ring = people[start:] + people[:start]
    sizes = [(rest + 2 - i) // 3 for i in range(3)]
    edges = np.cumsum([measured, *sizes])
    found = Portions(
        *(tuple(ring[a:b]) for a, b in zip(edges, [*edges[1:]], strict=False)), measured=tuple(ring[:measured])
    )
    for portion, own in vars(found).items():
        if missing := sorted(_pairs(recorded, people) - _pairs(recorded, own)):
            names = [(recorded.secrets[s], recorded.useful_values[u]) for s, u in missing]
            raise InputError(
                f"In rotation {rotation} nobody of the {portion} portion was recorded with (secret, useful) {names}: "
                "there are too few people with them to learn, train, attack and measure on different ones."
            )
    return found


def _pairs(recorded: Readings, people: Iterable[int]) -> set[tuple[int, int]]:
    """Pairs of labels that some people were recorded with."""
    own = np.isin(recorded.person, list(people))
    return set(zip(recorded.secret[own].tolist(), recorded.useful[own].tolist(), strict=True))


def _ordered(recorded: Readings) -> list[int]:
    """People in an order that mixes their secrets, for recordings in which nobody's secret changes."""
    secrets = {
        person: tuple(np.unique(recorded.secret[recorded.person == person])) for person in np.unique(recorded.person)
    }
    turn: dict[tuple, int] = {}
    ranked = []
    for person, secret in secrets.items():
        turn[secret] = turn.get(secret, 0) + 1
        ranked.append((turn[secret], secret, int(person)))
    return [person for *_, person in sorted(ranked)]


def _measured(recorded: Readings, people: int) -> int:
    """A quarter, and so many that every secret is among them."""
    each = [len(np.unique(recorded.secret[recorded.person == person])) for person in np.unique(recorded.person)]
    least = len(recorded.secrets) if min(each) < len(recorded.secrets) else 1
    return max(people // 4, least)
