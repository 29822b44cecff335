"""What an operator may see of subjects whose secret moves: the day as the provider knows it, then and in hindsight.

Neither readings nor which secret is the likeliest are in it: whoever looks over a shoulder learns no secret.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.belief.bayes import secret_marginal, useful_marginal
from reticent.belief.chain import filtered, smoothed
from reticent.gateway.entry import Entry
from reticent.gateway.moving_runtime import MOST_LOCKED, MovingRuntime, MovingStanding
from reticent.gateway.subjects import SubjectState as Place
from reticent.gateway.view import SHOWN_SUBJECTS

# So many steps of the day are shown, and kept of the subjects that were heard last.
SHOWN_STEPS = 240


@dataclass(frozen=True, eq=False)
class Release:
    """What was sent in a step, and what the provider knew then."""

    step: int
    entry: Entry
    likelihood: np.ndarray


class MovingView:
    """How standings look, and the last releases of the subjects that were heard last."""

    def __init__(self, runtime: MovingRuntime) -> None:
        self._runtime = runtime
        self._released: OrderedDict[str, deque[Release]] = OrderedDict()
        model, bound = runtime.task.model, runtime.task.bound
        self._plain = frozenset(model.symbols)
        self.about = {
            "bound": {
                "kind": "information" if bound.on_spending else "confidence",
                "limit": bound.number,
                "start": float(model.prior.sum(1).max()),
            },
            "moving": {"seconds": runtime.seconds, "steps": SHOWN_STEPS},
            "useful": list(model.useful),
            "sensors": list(runtime.sensors),
            "enforce": runtime.task.enforcement.name,
            "policy": runtime.digest[:12],
            "assumption": runtime.assumption,
            "exhausted": "",
        }

    def remember(self, entry: Entry) -> None:
        """One more release."""
        if entry.symbol is None:
            return
        own = self._released.setdefault(entry.subject, deque())
        self._released.move_to_end(entry.subject)
        runtime = self._runtime
        chances = None if entry.chances is None else np.array(entry.chances)
        sensor, symbol = runtime.sensors.index(entry.sensor), runtime.symbols.index(entry.symbol)
        own.append(Release(entry.step, entry, runtime.likelihood(sensor, symbol, chances)))
        while own[0].step <= entry.step - SHOWN_STEPS:
            own.popleft()
        while len(self._released) > SHOWN_SUBJECTS:
            self._released.popitem(last=False)

    def line(self, name: str, place: Place) -> dict[str, Any]:
        """A subject in the list."""
        standing: MovingStanding = place.standing
        return {
            "name": name,
            "state": self._state(place),
            "known": float(standing.belief.sum(1).max()),
            "left": self._runtime.headroom(standing),
            "useful": standing.belief.sum(0).tolist(),
        }

    def subject(self, name: str, place: Place) -> dict[str, Any]:
        """A subject looked at closely, with its day."""
        standing: MovingStanding = place.standing
        released = list(self._released.get(name, ()))
        return {
            **self.line(name, place),
            "session": standing.session,
            "step": standing.step,
            "blocked": place.blocked,
            "history": [self._point(each) for each in released[-120:]],
            "day": self._day(released, standing),
            "free": self._free(standing),
        }

    def _state(self, place: Place) -> str:
        if place.blocked:
            return "blocked"
        if place.entries == 0 and place.decision is None:
            return "new"
        if place.entries and self._runtime.step_at(place.time) == place.standing.at:
            return "has spoken in this step"
        sensor = None if place.decision is None else place.decision.sensor
        return "silent in this step" if sensor is None else f"waits for {self._runtime.sensors[sensor]}"

    def _point(self, release: Release) -> dict[str, Any]:
        entry = release.entry
        point = {name: getattr(entry, name) for name in ("time", "session", "step", "sensor", "symbol")}
        belief = np.array(entry.belief)
        known = {"known": entry.confidence, "useful": belief.sum(0).tolist()}
        return {**point, **known, "merged": entry.symbol not in self._plain}

    def _day(self, released: Sequence[Release], standing: MovingStanding) -> dict[str, Any]:
        """Of each step shown: how sure the provider was of the likeliest secret then, and is of it in hindsight; what
        it believed of the useful value; and where nothing was sent."""
        if not released:
            return {"first": 0, "time": 0.0, "then": [], "hindsight": [], "useful": [], "silent": []}
        first, moves = released[0].step, self._runtime.task.model.dynamics
        told = np.ones((standing.step - first + 1, *standing.belief.shape))
        for each in released:
            told[each.step - first] = each.likelihood
        silent = np.ones(len(told), bool)
        silent[[each.step - first for each in released]] = False
        # What was sent before the first step shown is in the belief after it, so the first counts as told already.
        start, told[0] = np.array(released[0].entry.belief), 1.0
        then, late = filtered(start, moves, told), smoothed(start, moves, told)
        return {
            "first": first,
            "time": (standing.at - standing.step + first) * self._runtime.seconds,
            "then": secret_marginal(then).max(-1).tolist(),
            "hindsight": secret_marginal(late).max(-1).tolist(),
            "useful": useful_marginal(then).tolist(),
            "silent": silent.tolist(),
        }

    def _free(self, standing: MovingStanding) -> float | None:
        """The time at which a locked subject may speak again; None where it may now. At least then, if that is far."""
        if standing.settled and standing.bits > 0:
            standing = self._runtime.passed(standing, standing.at + 1)
        steps = self._runtime.locked_for(standing)
        if steps == 0:
            return None
        return (standing.at + (MOST_LOCKED if steps is None else steps)) * self._runtime.seconds
