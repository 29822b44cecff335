"""What the provider knows of a subject (its `Standing`), from its newest entry in the ledger.

Numpy is imported on first use: most commands on a ledger do without it.
"""

from typing import TYPE_CHECKING

from reticent.gateway.entry import Entry

if TYPE_CHECKING:
    from reticent.gateway.decisions import Standing


def standing_of(entry: Entry) -> "Standing":
    """What the provider knows since this entry."""
    import numpy as np

    from reticent.gateway.decisions import Standing

    # The step of a release is its own index: one more release was made by then.
    made = entry.step if entry.symbol is None else entry.step + 1
    return Standing(np.array(entry.belief, dtype=float), entry.spent_bits, entry.session, made)
