"""Interface of all attackers: `fit` on labelled traces, then `posterior` on others.

Truncated traces (`Traces.until`) give the posterior at that step.
"""

import abc

from reticent.audit.posterior import Posterior
from reticent.audit.traces import Traces


class Attacker(abc.ABC):
    """Infers the secret and the useful value from what was released."""

    name: str

    @abc.abstractmethod
    def fit(self, traces: Traces) -> None:
        """Train on traces, hidden pairs included."""

    @abc.abstractmethod
    def posterior(self, traces: Traces) -> Posterior:
        """Posterior at the end of each trace; does not read the hidden pairs."""
