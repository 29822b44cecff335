"""The gateway of a problem that goes on: the same walk of a batch, with steps of time in place of sessions."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from reticent.gateway.census import CONDITIONS, Census, condition
from reticent.gateway.draws import Draws
from reticent.gateway.moving_runtime import MovingRuntime
from reticent.gateway.moving_turns import MovingTurns
from reticent.gateway.moving_view import MovingView
from reticent.gateway.runtime import Runtime
from reticent.gateway.service import Gateway
from reticent.gateway.subjects import SubjectState


class MovingGateway(Gateway):
    """Decides for many subjects whose secret moves, in every step of the wall clock."""

    @property
    def _moving(self) -> MovingRuntime:
        assert isinstance(self.runtime, MovingRuntime)
        return self.runtime

    def _new_turns(self, rng: Callable[[], Draws]) -> MovingTurns:
        return MovingTurns(self._moving, self._ledger, self.settings.drift_check, rng)

    def _new_view(self) -> MovingView:
        return MovingView(self._moving)

    def _census(self, states: Sequence[SubjectState]) -> Census:
        found = Counter(map(condition, states))
        left = [self._moving.headroom(state.standing) for state in states]
        return Census({each: found[each] for each in CONDITIONS}, np.sort(np.array(left, float)))


def gateway_of(runtime: Runtime | MovingRuntime) -> type[Gateway]:
    """The gateway that serves such a policy."""
    return MovingGateway if isinstance(runtime, MovingRuntime) else Gateway
