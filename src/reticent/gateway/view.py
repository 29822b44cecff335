"""What an operator may see of a gateway: only what follows from what was released, and counts.

Neither readings nor which secret is the likeliest are in it: whoever looks over a shoulder learns no secret.
"""

from collections import OrderedDict, deque
from typing import Any

from reticent.gateway.decisions import Standing
from reticent.gateway.entry import Entry
from reticent.gateway.runtime import Runtime
from reticent.gateway.sessions import ASSUMPTION, EXHAUSTED
from reticent.gateway.standing import standing_of
from reticent.gateway.subjects import SubjectState as Place

SHOWN_SUBJECTS, SHOWN_RELEASES = 200, 120


class View:
    """How standings look, and the last releases of the subjects that were heard last."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._history: OrderedDict[str, deque[Entry]] = OrderedDict()
        model, bound = runtime.task.model, runtime.task.bound
        self._plain = frozenset(model.symbols)
        self._bound = bound
        self.about = {
            "bound": {
                "kind": "information" if bound.on_spending else "confidence",
                "limit": bound.number,
                "start": self._known(runtime.first()),
            },
            "useful": list(model.useful),
            "sensors": list(runtime.sensors),
            "enforce": runtime.task.enforcement.name,
            "policy": runtime.digest[:12],
            "assumption": ASSUMPTION,
            "promise": " ".join(runtime.promise),
            "exhausted": EXHAUSTED,
        }

    def remember(self, entry: Entry) -> None:
        """One more release or stop."""
        if entry.subject not in self._history:
            self._history[entry.subject] = deque(maxlen=SHOWN_RELEASES)
        self._history.move_to_end(entry.subject)
        self._history[entry.subject].append(entry)
        while len(self._history) > SHOWN_SUBJECTS:
            self._history.popitem(last=False)

    def line(self, name: str, place: Place) -> dict[str, Any]:
        """A subject in the list."""
        return {"name": name, "state": self._state(place), **self._standing(place.standing)}

    def subject(self, name: str, place: Place) -> dict[str, Any]:
        """A subject looked at closely."""
        standing = place.standing
        return {
            **self.line(name, place),
            "session": standing.session,
            "step": standing.step,
            "blocked": place.blocked,
            "history": list(map(self._point, self._history.get(name, ()))),
        }

    def _point(self, entry: Entry) -> dict[str, Any]:
        """A release or stop, and what the provider knew after it."""
        point = {name: getattr(entry, name) for name in ("time", "session", "step", "sensor", "symbol")}
        merged = entry.symbol is not None and entry.symbol not in self._plain
        return {**point, "merged": merged, **self._standing(standing_of(entry))}

    def _standing(self, standing: Standing) -> dict[str, Any]:
        return {
            "known": self._known(standing),
            "left": self._runtime.budget_left(standing),
            "useful": self._runtime.own(standing).sum(0).tolist(),
        }

    def _known(self, standing: Standing) -> float:
        """What the bound limits: the confidence in the likeliest secret, whichever it is, or the bits spent."""
        return float(self._bound.level(standing))

    def _state(self, place: Place) -> str:
        if place.blocked:
            return "blocked"
        if place.exhausted:
            return "nothing left to say"
        if place.resting_since is not None:
            return "resting"
        if place.decision is None or place.decision.sensor is None:
            return "new"
        return f"waits for {self._runtime.sensors[place.decision.sensor]}"
