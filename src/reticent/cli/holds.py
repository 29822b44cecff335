"""`reticent ledger holds` and `reticent ledger repair`, which write to a ledger that a gateway may have open."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from reticent.cli.ledger import shown
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.gateway.ledger import Ledger

WHICH = "`holds lift` needs one of --subject NAME, --everybody (a pause), --clock (all that are ahead of this clock)."


def list_holds(ledger: "Ledger", as_json: bool) -> None:
    """Print all holds, with their reasons."""
    from reticent.gateway.holds import all_holds

    found = list(all_holds(ledger, time.time()))
    if as_json:
        print(json.dumps([{"subject": hold.name or None, "why": hold.why} for hold in found]))
        return
    for hold in found:
        print(f"{_shown(hold.name)}: {hold.why}")
    if not found:
        print("Nobody is held.")


def put_hold(ledger: "Ledger", subject: str | None, everybody: bool) -> None:
    """Hold one subject, or pause everybody: on all gateways of this ledger, once they next look at it."""
    from reticent.gateway.holds import BY_HAND, PAUSED
    from reticent.gateway.ledger import EVERYBODY

    if everybody == (subject is not None):
        raise InputError("`holds put` needs one of --subject NAME, --everybody (a pause).")
    name = EVERYBODY if subject is None else subject
    before = ledger.held([name]).get(name)
    if before is None:
        ledger.hold(name, PAUSED if subject is None else BY_HAND)
    print(f"{_shown(name)}: {'held.' if before is None else 'was held already.'}")


def lift_holds(ledger: "Ledger", subject: str | None, everybody: bool, clock: bool) -> None:
    """Lift the hold of one subject, of everybody, or of all subjects that are ahead of the clock."""
    from reticent.gateway.holds import lift
    from reticent.gateway.ledger import EVERYBODY

    if sum((subject is not None, everybody, clock)) != 1:
        raise InputError(WHICH)
    now = time.time()
    names = [subject] if subject is not None else [EVERYBODY] if everybody else list(_ahead(ledger, now))
    for name in names:
        said = "lifted." if lift(ledger, name, now) else "there was nothing to lift."
        print(f"{_shown(name)}: {said}")
    if not names:
        print("Nobody is ahead of this clock.")


def repair_ledger(ledger: "Ledger", export: Path | None) -> None:
    """Overwrite damaged entries from an export; exit code 1 if it does not fit the ledger."""
    from reticent.gateway.export import read_entries
    from reticent.gateway.repair import repair

    if export is None:
        raise InputError("`reticent ledger repair` needs --against EXPORT, a file written by `reticent ledger export`.")
    found = repair(ledger, read_entries(export))
    for sentence in found.refused:
        print(sentence)
    if found.refused:
        print("Nothing was changed: the export is of another ledger, or this one was rewritten.")
        raise SystemExit(1)
    for entry in found.mended:
        print(f"Entry {entry.number} of {_shown(entry.subject)} was restored.")
    print(
        f"Entries repaired: {len(found.mended):,}. Next: `reticent ledger verify`, then `reticent ledger holds lift`."
    )


def _shown(name: str) -> str:
    if not name:
        return "everybody"
    return shown(name)


def _ahead(ledger: "Ledger", now: float) -> Iterable[str]:
    from reticent.gateway.holds import ahead
    from reticent.gateway.ledger import Damaged

    for name in ledger.subjects():
        try:
            last = ledger.last(name)
        except Damaged:
            continue
        if last is not None and ahead(last, now):
            yield name
