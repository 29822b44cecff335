"""Attacker that knows the model: the exact posterior, with nothing to train."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from reticent.audit.attacker import Attacker
from reticent.audit.posterior import Posterior, posterior_of
from reticent.audit.traces import Traces
from reticent.belief.bayes import update
from reticent.errors import InputError


class ExactBayes(Attacker):
    """Exact filter with the model and the public rule, both contained in `Traces.likelihood`.

    It assumes that the policy depends on the public belief only: the choice of sensor and the stop carry no information
    beyond the symbols.
    """

    def __init__(self, prior: Float[np.ndarray, "S U"], name: str) -> None:
        self.prior, self.name = prior, name

    def fit(self, traces: Traces) -> None:
        """Does nothing: the model is known."""

    def posterior(self, traces: Traces) -> Posterior:
        return list(self.along(traces))[-1]

    def along(self, traces: Traces) -> Iterator[Posterior]:
        """The prior, then the posterior after every step, in one pass."""
        if traces.likelihood is None:
            raise InputError("Exact Bayes needs the likelihood of each release; these traces have none. Give a model.")
        belief = np.broadcast_to(self.prior, (len(traces), *self.prior.shape))
        yield posterior_of(belief, self.prior)
        for step in range(traces.longest):
            belief, possible = update(belief, traces.likelihood[:, step])
            if not possible.all():
                raise InputError(
                    f"The releases of {int((~possible).sum()):,} episodes up to step {step} have probability zero "
                    "under the model. Give the model that these traces were released under, or none."
                )
            yield posterior_of(belief, self.prior)
