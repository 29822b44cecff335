"""Linkage attack: combine all episodes of a person whose secret is constant."""

import numpy as np

from reticent.audit.evidence import Evidence
from reticent.audit.findings import Linked, title
from reticent.audit.measures import LEAST_BELIEF
from reticent.evaluate.estimate import rate


def linked(found: Evidence) -> Linked | None:
    """The best attacker on people whose episodes are combined as if independent given the secret.

    None if every person has one episode, or if the secret of some person changes.
    """
    subject, unit = found.subject, found.resampler.unit
    first = np.unique(unit, return_index=True)[1]
    lasting = subject.secret[first]
    if len(first) == len(unit) or (subject.secret != lasting[unit]).any():
        return None
    best = None
    for one in found.whole:
        end = one.end
        gained = np.log(np.maximum(end.secret, LEAST_BELIEF)) - np.log(np.maximum(end.secret_prior, LEAST_BELIEF))
        total = np.stack([np.bincount(unit, column) for column in gained.T], axis=1)
        right = rate(total.argmax(1) == lasting)
        if best is None or right.value > best.secret.value:
            best = Linked(title(one.attack), len(first), len(unit) / len(first), right)
    return best
