"""Policies change: what the provider knows of each subject is carried over to the next policy, never forgotten.

Of each subject a stop is written, under the next policy, with what holds from then on. Bits spent stay. Over the same
model the belief stays. Over another one, about the same secrets, what is known of the secret stays, and the useful
value is drawn anew:

    beta'(s, u) = beta(s) p'(u | s).

That is safe: a provider who knows the secret so well may still do so, whatever model the device goes by from now on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent.errors import InputError
from reticent.gateway.decisions import Standing
from reticent.gateway.entry import STOP, Entry
from reticent.gateway.ledger import Ledger
from reticent.gateway.runtime import Runtime
from reticent.gateway.standing import standing_of
from reticent.problem.model import Model

# Entries of one transaction.
TOGETHER = 500


@dataclass(frozen=True)
class Migrated:
    """How many subjects were carried over, and how many were under the next policy already."""

    subjects: int
    already: int


def by_digest(runtimes: Iterable[Runtime]) -> dict[str, Runtime]:
    """The policies by the digest that entries name them by."""
    return {runtime.digest: runtime for runtime in runtimes}


def carried_over(standing: Standing, earlier: Runtime, later: Runtime) -> Standing:
    """What the provider knows, as the later policy goes by it."""
    check_carries(earlier.task.model, later.task.model)
    if _same(earlier.task.model, later.task.model):
        return standing
    prior = later.rules.prior
    by_secret = prior.sum(1)
    # A secret that neither prior knows stays at probability zero.
    belief = prior * (standing.belief.sum(1) / np.where(by_secret > 0, by_secret, 1.0))[:, None]
    return replace(standing, belief=belief)


def check_carries(earlier: Model, later: Model) -> None:
    """Refuse a model over which what is known of the secret means something else."""
    if earlier.secrets != later.secrets:
        raise InputError(
            f"The earlier policy keeps secret which of {', '.join(earlier.secrets)} it is, the next one which of "
            f"{', '.join(later.secrets)}: what is known of the one does not say what is known of the other. Fit the "
            "next model with the same secrets, in the same order."
        )
    gone = [name for name, a, b in zip(earlier.secrets, earlier.prior, later.prior, strict=True) if a.any() > b.any()]
    if gone:
        raise InputError(
            f"The next model holds secret {gone[0]!r} for impossible, the earlier one did not: what is known of it "
            "cannot be carried over. Fit the next model with some probability for it."
        )


def _same(earlier: Model, later: Model) -> bool:
    """Whether beliefs over the one are beliefs over the other, and will be updated alike."""
    names = ("secrets", "useful", "sensors", "symbols")
    arrays = ((earlier.prior, later.prior), (earlier.channel, later.channel))
    return all(getattr(earlier, name) == getattr(later, name) for name in names) and all(
        np.array_equal(a, b) for a, b in arrays
    )


def migrate(ledger: Ledger, earlier: Mapping[str, Runtime], later: Runtime, now: float) -> Migrated:
    """Carry all subjects over to a policy; nothing is written unless all can be. Raises `Damaged` for damaged ones."""
    names = ledger.subjects()
    last = [entry for entry in map(ledger.last, names) if entry is not None]
    stops = [_carrying(entry, earlier, later, now) for entry in last if entry.policy != later.digest]
    for some in _parts(stops):
        if not all(ledger.append(some)):
            raise InputError(
                "A gateway has released something meanwhile, under the earlier policy. Stop it, and migrate again: "
                "what was carried over stays so."
            )
    return Migrated(len(stops), len(last) - len(stops))


def _carrying(last: Entry, earlier: Mapping[str, Runtime], later: Runtime, now: float) -> Entry:
    """The stop that carries a subject over."""
    runtime = earlier.get(last.policy)
    if runtime is None:
        raise InputError(
            f"Subject {last.subject!r} was last decided for under the policy file with SHA-256 {last.policy}. Give "
            "that file, too, by --earlier."
        )
    standing = carried_over(standing_of(last), runtime, later)
    return replace(
        last,
        number=last.number + 1,
        time=max(now, last.time),
        step=last.step + (last.symbol is not None),
        sensor=STOP,
        symbol=None,
        chances=None,
        belief=tuple(map(tuple, standing.belief.tolist())),
        policy=later.digest,
        before=last.hash,
    )


def _parts(entries: Sequence[Entry]) -> Iterable[Sequence[Entry]]:
    return (entries[start : start + TOGETHER] for start in range(0, len(entries), TOGETHER))
