"""Recordings in which nothing changes, played in the order of a Markov chain: real readings, chosen dynamics."""

import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.data.readings import Readings
from reticent.data.trajectories import Trajectories
from reticent.errors import InputError


def switched(
    recorded: Readings,
    codes: Int[np.ndarray, "N A"],
    chain: Float[np.ndarray, "S U S U"],
    start: Float[np.ndarray, "S U"],
    steps: int,
    seed: int = 0,
) -> Trajectories:
    """A trajectory of every person: the pair starts by the law `start` and moves by the chain T(s', u' | s, u).

    While a pair stays, the person's own readings of it follow each other as they were recorded, from a random moment
    on; at the end of a stream they go on from another. Somebody who was recorded with some of the pairs only has a
    start among these, and a chain that leads out of them is refused.
    """
    rng = np.random.default_rng(seed)
    pair, shape = recorded.secret * start.shape[1] + recorded.useful, start.shape
    moves, law = chain.reshape(start.size, start.size), start.reshape(-1)
    people = np.unique(recorded.person)
    rows = []
    for person in people:
        own = np.flatnonzero(recorded.person == person)
        has = np.isin(np.arange(start.size), pair[own])
        _check(recorded, int(person), has, moves, law)
        order = _walk(moves, np.where(has, law, 0.0) / law[has].sum(), steps, rng)
        rows.append(_played(order, pair, own, recorded.left, rng))
    row, place = np.concatenate(rows), np.arange(len(people))
    return Trajectories(
        codes=codes[row],
        secret=pair[row] // shape[1],
        useful=pair[row] % shape[1],
        trajectory=np.repeat(place, steps),
        person=np.repeat(people, steps),
        people=recorded.people,
        sensors=recorded.sensors,
        secrets=recorded.secrets,
        useful_values=recorded.useful_values,
        step=recorded.step,
    )


def _check(
    recorded: Readings,
    person: int,
    has: Bool[np.ndarray, " X"],
    moves: Float[np.ndarray, "X X"],
    law: Float[np.ndarray, " X"],
) -> None:
    name = recorded.people[person]
    if not law[has].sum() > 0:
        raise InputError(f"The chain starts with none of the pairs that {name!r} was recorded with.")
    out, many = moves * np.outer(has, ~has), len(recorded.useful_values)
    for x, y in np.argwhere(out > 0)[:1]:
        here, there = ((recorded.secrets[s], recorded.useful_values[u]) for s, u in (divmod(x, many), divmod(y, many)))
        raise InputError(
            f"The chain leads from {here} to {there}, but {name!r} was not recorded with {there}. Leave such people "
            "out, or give a chain that does not go there."
        )


def _walk(
    moves: Float[np.ndarray, "X X"], law: Float[np.ndarray, " X"], steps: int, rng: np.random.Generator
) -> Int[np.ndarray, " T"]:
    """A path of the chain."""
    path = np.zeros(steps, int)
    for step in range(steps):
        path[step] = rng.choice(len(law), p=law)
        law = moves[path[step]]
    return path


def _played(
    path: Int[np.ndarray, " T"],
    pair: Int[np.ndarray, " N"],
    own: Int[np.ndarray, " M"],
    left: Int[np.ndarray, " N"],
    rng: np.random.Generator,
) -> Int[np.ndarray, " T"]:
    """Which row of the recordings is played at each step."""
    by_pair = {int(x): own[pair[own] == x] for x in np.unique(path)}
    rows, before = np.zeros(len(path), int), -1
    for step, x in enumerate(path):
        goes_on = before >= 0 and pair[before] == x and left[before] > 1
        rows[step] = before = before + 1 if goes_on else int(rng.choice(by_pair[int(x)]))
    return rows
