"""A pause by hand: asked for in any thread, kept in the ledger as a hold of EVERYBODY."""

from collections.abc import Iterable

from reticent.gateway.guards import Troubles
from reticent.gateway.holds import PAUSED, SENTENCES
from reticent.gateway.ledger import CLOCK, EVERYBODY, Ledger


class Pause:
    """Whether everybody is paused: takes effect here at once, and for others once it is in the ledger."""

    def __init__(self, ledger: Ledger, troubles: Troubles) -> None:
        self._ledger, self._troubles = ledger, troubles
        # Asked for here, and not yet in the ledger, which belongs to another thread.
        self._asked: bool | None = None

    def ask(self, paused: bool) -> None:
        """Pause or resume."""
        self._asked = paused
        self._show(paused)

    def synchronise(self, names: Iterable[str]) -> dict[str, str]:
        """Write what was asked for here, else take over what others wrote; returns the holds of these subjects, of
        EVERYBODY, and the CLOCK notes."""
        if self._asked is not None:
            self._ledger.hold(EVERYBODY, PAUSED if self._asked else None)
            self._asked = None
        names = list(names)
        held = self._ledger.held([EVERYBODY, *names, *(CLOCK + name for name in names)])
        self._show(EVERYBODY in held)
        return held

    def _show(self, paused: bool) -> None:
        self._troubles.put("paused", SENTENCES[PAUSED] if paused else None)
