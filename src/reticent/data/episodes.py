"""Where episodes start in recordings, drawn inside compiled code."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from reticent.data.readings import Readings
from reticent.data.windows import suggestion
from reticent.errors import InputError
from reticent.types import Array, Index, PRNGKey


class Episodes(eqx.Module):
    """Rows of the readings that an episode may start from, those of one person and pair of labels side by side.

    A person who was recorded with the pair is drawn first, then the start, so that everybody counts alike.
    """

    starts: Int[Array, " K"]
    # Of each person and pair: where its starts begin, and how many there are; of each pair: the same of its people.
    offset: Int[Array, " G"]
    count: Int[Array, " G"]
    pair_offset: Int[Array, " P"]
    pair_count: Int[Array, " P"]

    def begin(self, key: PRNGKey, pair: Index) -> Index:
        """A row to start from with this pair of labels (secret * U + useful)."""
        person_key, start_key = jax.random.split(key)
        group = self.pair_offset[pair] + jax.random.randint(person_key, (), 0, self.pair_count[pair])
        return self.starts[self.offset[group] + jax.random.randint(start_key, (), 0, self.count[group])]


def _advice(recorded: Readings, pair: np.ndarray, lost: list[int], horizon: int) -> str:
    """How long windows may be, so that every pair has a stream with so many."""
    found = min(int(recorded.left[pair == one].max()) for one in lost)
    if recorded.kind.kind == "sample" or recorded.interval is None:
        return f"the longest has {found}. Record longer streams, or take shorter episodes"
    longest = found * recorded.kind.seconds / horizon
    return f"the longest has {found} of {recorded.kind.seconds:g} s. Take {suggestion(longest, recorded.interval)}"


def episodes_of(recorded: Readings, horizon: int) -> Episodes:
    """Starts that leave `horizon` readings before their stream ends."""
    pair = recorded.secret * len(recorded.useful_values) + recorded.useful
    able = np.flatnonzero(recorded.left >= horizon)
    if lost := sorted(set(pair.tolist()) - set(pair[able].tolist())):
        names = [
            (
                recorded.secrets[i // len(recorded.useful_values)],
                recorded.useful_values[i % len(recorded.useful_values)],
            )
            for i in lost
        ]
        raise InputError(
            f"No stream of {names} has {horizon} readings in a row: {_advice(recorded, pair, lost, horizon)}."
        )
    order = able[np.lexsort((able, recorded.person[able], pair[able]))]
    groups, offset, count = np.unique(
        np.stack([pair[order], recorded.person[order]]), axis=1, return_index=True, return_counts=True
    )
    pairs = np.arange(len(recorded.secrets) * len(recorded.useful_values))
    pair_offset = np.searchsorted(groups[0], pairs)
    pair_count = np.searchsorted(groups[0], pairs, side="right") - pair_offset
    return Episodes(*(jnp.asarray(x) for x in (order, offset, count, pair_offset, pair_count)))
