"""Opens a ledger by its address, a path or a URL."""

from reticent.gateway.ledger import Ledger
from reticent.gateway.postgres import PostgresLedger
from reticent.gateway.sqlite import SqliteLedger

POSTGRES = ("postgresql://", "postgres://")


def open_ledger(where: str, read_only: bool = False, beside: bool = False, worker: bool = False) -> Ledger:
    """The ledger at a path or postgresql://... URL, created if there is none, unless opened in one of these ways:

    `read_only`: a gateway may have it open meanwhile. `beside`: to lift holds or repair entries while a gateway may
    have it open; must not be used to release anything. `worker`: by one of several processes that share the subjects of
    one gateway.
    """
    if where.startswith(POSTGRES):
        return PostgresLedger(where, read_only)
    return SqliteLedger(where, read_only, beside, worker)
