"""Verifies the entries of one subject whose secret moves: order, beliefs, and every moment at every entry.

Everything follows from the prior and from what was sent, so the whole life is followed from its first entry: one pass,
with the open moments in memory, and as many slots for them as it takes, whatever the gateway had. The rule by which
something was sent is taken from the entry, as in `verify`.
"""

from dataclasses import replace

import numpy as np

from reticent.belief.information import entropy_bits
from reticent.errors import InputError
from reticent.gateway.entry import Entry
from reticent.gateway.moving_runtime import ROUNDING, MovingRuntime, MovingStanding


class Followed:
    """What follows from the entries of one subject so far."""

    def __init__(self, runtime: MovingRuntime) -> None:
        self._runtime = runtime
        self._standing: MovingStanding | None = None

    def follow(self, before: Entry | None, entry: Entry) -> str | None:
        """What is not as it must be with this entry, if anything is; the sentence goes on after its number."""
        runtime = self._runtime
        if entry.policy != runtime.mark:
            return (
                f"was made under another policy, with digest {entry.policy}; that of the file given is "
                f"{runtime.mark}. Give that policy's file; if there never was one, the entry was changed."
            )
        if (wrong := self._misplaced(before, entry)) is not None:
            return wrong
        now = self._passed(entry.step)
        try:
            self._standing = after = runtime.followed(now, entry)
        except InputError as error:
            return str(error)
        if entry.session > after.session:
            return f"says that moments are open since step {entry.session}, but they are since step {after.session}."
        said, most = entry.spent_bits - now.spent_bits, float(entropy_bits(now.belief.sum(1)))
        if not -ROUNDING <= said <= most + ROUNDING:
            return f"says that {said} bits were spent, which cannot be."
        if runtime.over(after):
            return "brings the secret of a moment, past, present or future, to the bound."
        return None

    def _passed(self, step: int) -> MovingStanding:
        """The standing at this step, with room for every open moment."""
        standing = self._standing
        if standing is None:
            return self._runtime.first()
        while standing.at < step:
            standing = self._runtime.passed(_roomy(standing), standing.at + 1)
        return standing

    def _misplaced(self, before: Entry | None, entry: Entry) -> str | None:
        """The step must be that of the time, counted from the first entry or, where a clock was set back, from then."""
        if before is None:
            return None if entry.step == 0 else f"is the first, but of step {entry.step}."
        if entry.symbol is None:
            return None if entry.step == before.step + (before.symbol is not None) else "ends nothing."
        expected = before.step + self._runtime.step_at(entry.time) - self._runtime.step_at(before.time)
        if entry.step == expected and (entry.step > before.step or before.symbol is None):
            return None
        return f"is of step {entry.step}, but by its time it is of step {expected}, after step {before.step}."


def _roomy(standing: MovingStanding) -> MovingStanding:
    """The same with twice the slots where all are taken."""
    moments = standing.moments
    if not len(moments.open) or not moments.open.all():
        return standing
    wider = moments._replace(
        past=np.concatenate([moments.past, np.zeros_like(moments.past)]),
        open=np.concatenate([moments.open, np.zeros_like(moments.open)]),
    )
    return replace(standing, moments=wider, opened=np.concatenate([standing.opened, np.zeros_like(standing.opened)]))
